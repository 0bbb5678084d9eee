"""Reinforcement learning experiments: what a life's number is, and that a short one runs."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest
from PIL import Image

from elephant_nn.cli import main
from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.experiments.rl import (
    BUFFERS,
    COPY_EVERY,
    RL_ACROBOT,
    RL_BUFFERS,
    RL_MOUNTAIN_CAR,
    STEPS,
    life,
    mountain_car_program,
    network_of,
)
from elephant_nn.rl import TASKS, make_environment
from elephant_nn.runs import shard as shard_module
from elephant_nn.runs.cells import Cell
from elephant_nn.runs.checkpoint import save_checkpoint
from elephant_nn.runs.shard import Shard, run_shard
from elephant_nn.runs.store import read_rows, rows_folder, write_rows


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
def test_each_task_has_the_papers_three_rows_and_grid(task):
    experiment = EXPERIMENTS[f"rl-{task}"]
    in_the_paper = experiment.entries[:3]
    assert [(e.method, e.settings["buffer"]) for e in in_the_paper] == [
        ("emlp", 32),
        ("mlp", 32),
        ("mlp", 10_000),
    ]
    assert [len(e.candidates()) for e in in_the_paper] == [8 * 2 * 4 * 5, 16, 16]
    assert experiment.seeds == 10


def test_no_rival_has_more_weights_than_the_mlp():
    def weights(entry):
        network = network_of(entry.method, entry.settings, entry.settings, 2, 3)
        return sum(leaf.size for leaf in jax.tree.leaves(network.init(jax.random.key(0))))

    sizes = {e.method: weights(e) for e in EXPERIMENTS["rl-mountain-car"].entries}
    assert sizes["mlp"] == sizes["emlp"] == sizes["lwta"] == 6003
    assert max(sizes["fta"], sizes["maxout"]) < 6003
    assert sizes["later-emlp"] == 6003 + 4 * 1000


def test_the_buffers_are_swept_for_both_networks_on_two_tasks():
    found = [(e.settings["task"], e.method, e.settings["buffer"]) for e in RL_BUFFERS.entries]
    assert len(set(found)) == 2 * 2 * 6
    assert {buffer for _, _, buffer in found} == {32, 100, 300, 1_000, 3_000, 10_000}


class KilledError(Exception):
    pass


def test_a_short_life_runs_and_resumes_exactly(tmp_path, monkeypatch):
    settings = {"neurons": 30, "buffer": 32, "lr": 1e-3, "E": 1, "steps": 3000}
    cell = Cell.of("rl-mountain-car", "mlp", settings, 0)
    shard = Shard(mountain_car_program, (cell,), 1)
    (row,) = run_shard(shard, tmp_path / "one")

    def save_then_die(path, chunk, tree):
        save_checkpoint(path, chunk, tree)
        if chunk == 2:  # after it has begun to learn
            raise KilledError

    monkeypatch.setattr(shard_module, "save_checkpoint", save_then_die)
    with pytest.raises(KilledError):
        run_shard(shard, tmp_path / "two", checkpoint_seconds=0.0)
    monkeypatch.undo()
    (resumed,) = run_shard(shard, tmp_path / "two")
    assert json.dumps(resumed) == json.dumps(row)
    assert row["status"] == "ok"
    assert row["episodes"] >= 2
    assert row["return"] >= -1000
    assert row["buffer_bytes"] == 32 * 7 * 4


@pytest.fixture
def short(monkeypatch):
    """MountainCar with lives of a thousand steps and a small network."""
    experiment = EXPERIMENTS["rl-mountain-car"]
    entries = tuple(
        replace(entry, settings={**entry.settings, "neurons": 20, "steps": 1000})
        for entry in experiment.entries[:2]
    )
    short = replace(experiment, entries=entries, lanes=lambda cell: 1)
    monkeypatch.setitem(EXPERIMENTS, "rl-mountain-car", short)
    return short


@pytest.mark.filterwarnings("default::elephant_nn.files.StoreWarning")
def test_playing_trains_once_then_uses_what_was_learned(short, tmp_path, capsys):
    call = ["play", "rl-mountain-car", "--out", str(tmp_path), "--episodes", "3", "--frames", "7"]
    assert main(call) == 0
    first = capsys.readouterr()
    assert "1 runs in" in first.err
    assert "greedy return -" in first.out
    with Image.open(tmp_path / "rl-mountain-car/figures/rl-mountain-car-emlp-32-0.gif") as film:
        assert (film.format, film.n_frames) == ("GIF", 7)
    assert not read_rows(rows_folder(tmp_path, "rl-mountain-car")).height  # no table changes
    assert main(call) == 0
    again = capsys.readouterr()
    assert again.out == first.out
    assert "runs in" not in again.err

    (kept,) = (tmp_path / "rl-mountain-car" / "learned").iterdir()
    kept.write_bytes(kept.read_bytes()[:-8])  # cut short: set aside, and learned once more
    assert main(call) == 0
    once_more = capsys.readouterr()
    assert "damaged" in once_more.err
    assert once_more.out == first.out


def test_playing_refuses_what_it_does_not_know(capsys):
    assert main(["play", "sine"]) == 2
    assert "sine has no agent to show; there are: rl-mountain-car" in capsys.readouterr().err
    assert main(["play", "rl-catcher", "--method", "nothing"]) == 2
    assert main(["play", "rl-catcher", "--buffer", "33"]) == 2
    assert "there is: 32" in capsys.readouterr().err
    assert main(["play", "rl-catcher", "--frames", "0"]) == 2
    assert main(["play", "rl-catcher", "--seed", "-1"]) == 2
    assert main(["play", "rl-catcher", "--seed", "1000"]) == 2


def test_a_run_that_diverged_is_said_to_and_not_repeated(short, tmp_path, capsys):
    (cell,) = short.cells(short.entries[0], [short.entries[0].settings], [0])
    row = {"cell": cell.id, "status": "diverged", "reason": "numbers stopped being finite"}
    write_rows(rows_folder(tmp_path, "rl-mountain-car"), "made-up", [row])
    assert main(["play", "rl-mountain-car", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "diverged: numbers stopped being finite" in said
    assert "runs in" not in said


def test_what_the_paper_and_the_authors_code_fix():
    assert STEPS == {
        "mountain-car": 50_000,
        "acrobot": 30_000,
        "catcher": 500_000,
        "pixelcopter": 1_000_000,
    }
    assert COPY_EVERY == {"mountain-car": 100, "acrobot": 100, "catcher": 200, "pixelcopter": 200}
    caps = [make_environment(task).cap for task in TASKS]
    assert caps == [1000, 500, 2000, 500]


@pytest.mark.parametrize("experiment", [RL_MOUNTAIN_CAR, RL_ACROBOT], ids=lambda e: e.name)
@pytest.mark.parametrize("method", ["emlp", "mlp"])
def test_sizes_of_the_tables_keep_their_settings_and_the_others_are_searched(experiment, method):
    task = experiment.name.removeprefix("rl-")
    sizes = {
        e.settings["buffer"]: e
        for e in RL_BUFFERS.entries
        if (e.settings["task"], e.method) == (task, method)
    }
    assert tuple(sizes) == BUFFERS
    table = {e.settings["buffer"]: e for e in experiment.entries if e.method == method}
    for buffer, entry in sizes.items():
        if buffer in table:
            assert entry.settings == {**table[buffer].settings, "task": task}
            assert not entry.grid
        else:
            assert entry.settings in entry.candidates()
            for name in ("a", "sigma_bias"):
                assert entry.settings.get(name) == table[32].settings.get(name)
