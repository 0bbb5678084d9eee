"""Publishing results: continue from what is published, write it whole, quote it."""

from dataclasses import replace

import polars as pl
import pytest
from made_up import frame, made_up

from elephant_nn.experiments.api import Runner
from elephant_nn.experiments.tables import TABLES
from elephant_nn.report.publishing import publish, published_rows, restore, run_published, some_rows
from elephant_nn.runs.run import local_executor
from elephant_nn.runs.store import read_rows, rows_folder

TABLE = TABLES["activations"]


def row(index, seed, value):
    return made_up(TABLE, TABLE.rows[index], seed, sparsity=value, slope_sparsity=value)


def test_newer_rows_win_and_published_rows_stay(tmp_path):
    publish(tmp_path, TABLE, frame(row(0, 0, 0.1), row(1, 0, 0.2)))
    publish(tmp_path, TABLE, frame(row(1, 0, 0.5), row(2, 0, 0.3)))
    kept = published_rows(tmp_path, TABLE.name).sort("method")
    assert dict(zip(kept["method"], kept["sparsity"], strict=True)) == {
        "relu": 0.1,
        "sigmoid": 0.5,
        "tanh": 0.3,
    }
    text = (tmp_path / TABLE.name / "tables.md").read_text()
    assert "| sigmoid | 0.500 |" in text


def test_everything_published_is_not_run_again(tmp_path):
    table = replace(TABLE, figures=())
    rows = [row(i, 0, 0.25) for i in range(len(table.rows))]
    publish(tmp_path / "kept", table, frame(*rows))
    restore(tmp_path / "kept", table, tmp_path / "out")
    runner = Runner(tmp_path / "out", local_executor(0))
    outcome = run_published(runner, table)
    assert (outcome.ran, outcome.kept) == (0, 5)
    assert set(read_rows(rows_folder(tmp_path / "out", table.name))["sparsity"]) == {0.25}


def test_reported_runs_without_curves_are_run_again(tmp_path):
    sine = TABLES["sine"]
    rows = [made_up(sine, sine.rows[0], seed, mse=0.1) for seed in (0, 1000)]
    publish(tmp_path / "kept", replace(sine, figures=()), frame(*rows))
    restore(tmp_path / "kept", sine, tmp_path / "out")
    assert read_rows(rows_folder(tmp_path / "out", "sine"))["seed"].to_list() == [1000]


def test_curves_of_choosing_runs_are_not_published(tmp_path):
    sine = TABLES["sine"]
    rows = [made_up(sine, sine.rows[0], s, mse=0.1, mse_curve=[0.2, 0.1]) for s in (0, 1000)]
    publish(tmp_path, sine, frame(*rows))
    kept = published_rows(tmp_path, "sine")
    assert kept.filter(pl.col("seed") == 0)["mse_curve"].to_list() == [[0.2, 0.1]]
    assert kept.filter(pl.col("seed") == 1000)["mse_curve"].to_list() == [None]


def test_some_rows_of_a_table():
    text = "**title**\n\n| method | x |\n| --- | --- |\n| relu | 1 |\n| tanh * | 2 |\n\nnote"
    assert some_rows(TABLE, text, ["tanh"]).splitlines()[2:] == ["| tanh * | 2 |"]
    with pytest.raises(ValueError, match="not enough values"):
        some_rows(TABLE, "no table", ["tanh"])
