"""Tables and figures of reinforcement learning, from rows made up by hand."""

import json

import numpy as np
import polars as pl
import pytest
from made_up import frame, made_up

from elephant_nn.experiments.summaries import bootstrap_interval, summarise_table
from elephant_nn.experiments.tables import TABLES
from elephant_nn.report.figures import buffer_sizes, draw_figures, draw_returns, return_curves
from elephant_nn.report.tables import render

CAR = TABLES["rl-mountain-car"]
BUFFERS = TABLES["rl-buffers"]


def run(table, row, seed, value):
    curve = [float("nan"), *np.linspace(-1000, value, 99)]
    memory = 28 * row.settings["buffer"]
    return made_up(table, row, seed, buffer_bytes=memory, return_curve=curve, **{"return": value})


def test_the_interval_by_counting():
    # Two values: the resampled means are 0, 1/2, 1 with chances 1/4, 1/2, 1/4.
    assert bootstrap_interval(np.array([0.0, 1.0])) == (0.0, 1.0)
    low, high = bootstrap_interval(np.arange(1000.0))
    spread = 1.96 * np.arange(1000.0).std() / np.sqrt(1000)
    assert (low, high) == pytest.approx((499.5 - spread, 499.5 + spread), rel=0.01)


def test_the_table_shows_memory_and_interval():
    rows = frame(*(run(CAR, CAR.rows[0], seed, -100.0 - seed) for seed in range(3)))
    text = render(CAR, rows, "markdown")
    assert "| EMLP, buffer 32 | 896 | -101.0 ± 0.6 | [-102.0, -100.0] | 3 |" in text
    (record,) = json.loads(render(CAR, rows, "json"))
    assert (record["low"], record["high"]) == (-102.0, -100.0)
    (alone,) = summarise_table(CAR, rows.head(1))
    assert alone.ours.interval is None


def test_curves_are_drawn_for_rows_that_have_runs():
    rows = frame(*(run(CAR, row, s, -100.0) for row in CAR.rows[:3] for s in range(2)))
    labels = [line.get_label() for line in return_curves(CAR, rows).axes[0].lines]
    assert labels == ["EMLP, buffer 32", "MLP, buffer 32", "MLP, buffer 10,000"]
    assert return_curves(CAR, rows.filter(pl.col("seed") > 5)) is None


def test_memory_is_the_axis_of_the_buffers():
    rows = frame(*(run(BUFFERS, row, s, -100.0 - s) for row in BUFFERS.rows for s in range(2)))
    panels = buffer_sizes(BUFFERS, rows).axes
    assert [ax.get_title() for ax in panels] == ["MountainCar", "Acrobot"]
    assert [len(ax.containers) for ax in panels] == [2, 2]
    line = panels[0].containers[0].lines[0]
    np.testing.assert_array_equal(
        line.get_xdata(), [28 * n for n in (32, 100, 300, 1000, 3000, 10_000)]
    )
    assert buffer_sizes(BUFFERS, rows.clear()) is None


def test_the_figure_of_all_tasks_needs_all_tasks(tmp_path):
    tables = {name: table for name, table in TABLES.items() if "return_curves" in table.figures}
    stored = {
        name: (
            table,
            frame(*(run(table, row, seed, -9.0) for row in table.rows[:2] for seed in (0, 1))),
        )
        for name, table in tables.items()
    }
    some = {name: stored[name] for name in list(stored)[:3]}
    assert draw_returns(some, tmp_path) == []
    assert not list(tmp_path.iterdir())  # what was drawn from all tasks is not overwritten
    (drawn,) = draw_returns(stored, tmp_path)
    assert drawn.png.stat().st_size > 1000
    assert len(draw_figures(*stored["rl-mountain-car"], tmp_path)) == 1
