"""Tables and figures of reinforcement learning, from rows made up by hand."""

import json

import numpy as np
import polars as pl
import pytest

from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.report.figures import draw_figures, draw_returns
from elephant_nn.report.rl_figures import against_memory, four_panels, returns
from elephant_nn.report.statistics import bootstrap_interval, table
from elephant_nn.report.tables import as_json, as_markdown, comparison
from elephant_nn.runs.store import rows_folder, write_rows

CAR = EXPERIMENTS["rl-mountain-car"]
BUFFERS = EXPERIMENTS["rl-buffers"]


def run(experiment, entry, seed, earned):
    (cell,) = experiment.cells(entry, [entry.settings], [seed])
    return {
        "cell": cell.id,
        "experiment": experiment.name,
        "method": entry.method,
        "hyper": json.dumps(cell.hyper, sort_keys=True),
        "seed": seed,
        "status": "ok",
        "versions": "elephant-nn 0, jax 0",
        "buffer_bytes": 28 * entry.settings["buffer"],
        "return": earned,
        "return_curve": [float("nan"), *np.linspace(-1000, earned, 99)],
    }


def test_the_interval_by_counting():
    # Two values: the resampled means are 0, 1/2, 1 with chances 1/4, 1/2, 1/4.
    assert bootstrap_interval(np.array([0.0, 1.0])) == (0.0, 1.0)
    low, high = bootstrap_interval(np.arange(1000.0))
    spread = 1.96 * np.arange(1000.0).std() / np.sqrt(1000)
    assert (low, high) == pytest.approx((499.5 - spread, 499.5 + spread), rel=0.01)


def test_the_table_shows_memory_and_interval():
    rows = pl.DataFrame([run(CAR, CAR.entries[0], seed, -100.0 - seed) for seed in range(3)])
    text = as_markdown(comparison(CAR, rows))
    assert "| EMLP, buffer 32 | 896 | -101.0 ± 0.6 | [-102.0, -100.0] | 3 |" in text
    (record,) = json.loads(as_json(table(CAR, rows)))
    assert (record["low"], record["high"]) == (-102.0, -100.0)
    (alone,) = table(CAR, rows.head(1))
    assert alone.ours.interval is None


def test_curves_are_drawn_for_rows_that_have_runs():
    rows = pl.DataFrame([run(CAR, e, s, -100.0) for e in CAR.entries[:3] for s in range(2)])
    labels = [line.get_label() for line in returns(CAR, rows).axes[0].lines]
    assert labels == ["EMLP, buffer 32", "MLP, buffer 32", "MLP, buffer 10,000"]
    assert returns(CAR, rows.filter(pl.col("seed") > 5)) is None
    assert len(four_panels({"rl-mountain-car": (CAR, rows)}).axes) == 1
    assert four_panels({}) is None


def test_memory_is_the_axis_of_the_buffers():
    rows = pl.DataFrame([run(BUFFERS, e, s, -100.0 - s) for e in BUFFERS.entries for s in range(2)])
    panels = against_memory(BUFFERS, rows).axes
    assert [ax.get_title() for ax in panels] == ["MountainCar", "Acrobot"]
    assert [len(ax.containers) for ax in panels] == [2, 2]
    line = panels[0].containers[0].lines[0]
    np.testing.assert_array_equal(
        line.get_xdata(), [28 * n for n in (32, 100, 300, 1000, 3000, 10_000)]
    )
    assert against_memory(BUFFERS, rows.clear()) is None


def test_the_figure_of_all_tasks_is_drawn_from_a_store(tmp_path):
    assert draw_returns(tmp_path, tmp_path / "figures") == []
    rows = [run(CAR, CAR.entries[0], seed, -100.0) for seed in range(2)]
    write_rows(rows_folder(tmp_path, CAR.name), "made-up", rows)
    (drawn,) = draw_returns(tmp_path, tmp_path / "figures")
    assert drawn.png.stat().st_size > 1000
    assert len(draw_figures(CAR.name, pl.DataFrame(rows), tmp_path)) == 1
