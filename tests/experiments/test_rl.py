"""Reinforcement learning experiments: what a life's number is, and that a short one runs."""

import numpy as np
import pytest

from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.experiments.rl import life, mountain_car_program
from elephant_nn.rl import TASKS
from elephant_nn.runs.cells import Cell
from elephant_nn.runs.shard import Shard, run_shard


def test_a_life_by_hand():
    returns = np.full(1000, np.nan)
    returns[9::10] = np.arange(100)  # an episode every ten steps, each one better
    row = life(returns)
    assert row["return"] == pytest.approx(np.arange(90, 100).mean())
    assert row["episodes"] == 100
    assert row["return_curve"][0] == 0  # one episode within the first hundredth
    assert row["return_curve"][9] == pytest.approx(np.arange(10).mean())
    assert row["return_curve"][99] == pytest.approx(np.arange(50, 100).mean())


def test_a_life_without_an_end_has_no_number():
    row = life(np.full(500, np.nan))
    assert np.isnan(row["return"])
    assert row["episodes"] == 0


def test_one_episode_is_the_last_tenth():
    returns = np.full(100, np.nan)
    returns[50] = -7
    row = life(returns)
    assert row["return"] == -7
    assert np.isnan(row["return_curve"][:50]).all()
    assert row["return_curve"][51] == -7


@pytest.mark.parametrize("task", TASKS)
def test_each_task_has_its_three_rows_and_the_papers_grid(task):
    experiment = EXPERIMENTS[f"rl-{task}"]
    assert [(e.method, e.settings["buffer"]) for e in experiment.entries] == [
        ("emlp", 32),
        ("mlp", 32),
        ("mlp", 10_000),
    ]
    assert [len(e.candidates()) for e in experiment.entries] == [8 * 2 * 4 * 5, 16, 16]
    assert experiment.seeds == 10


def test_a_short_life_runs_and_resumes_exactly(tmp_path):
    settings = {"neurons": 30, "buffer": 32, "lr": 1e-3, "E": 1, "steps": 3000}
    cell = Cell.of("rl-mountain-car", "mlp", settings, 0)
    shard = Shard(mountain_car_program, (cell,), 1)
    (row,) = run_shard(shard, tmp_path / "one")
    (again,) = run_shard(shard, tmp_path / "two", checkpoint_seconds=0.0)
    assert row["status"] == "ok"
    assert row["episodes"] >= 2
    assert row["return"] == again["return"] >= -1000
    assert row["buffer_bytes"] == 32 * 7 * 4
