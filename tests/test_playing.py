"""`elephant play`, with short training runs of a small network."""

from dataclasses import replace

import jax.numpy as jnp
import pytest
from made_up import made_up
from PIL import Image

from elephant_nn.cli import main, playing
from elephant_nn.experiments.tables import TABLES
from elephant_nn.runs.store import read_rows, rows_folder, write_rows


@pytest.fixture
def short(monkeypatch):
    table = TABLES["rl-mountain-car"]
    rows = tuple(
        replace(row, settings={**row.settings, "neurons": 20, "steps": 1000})
        for row in table.rows[:2]
    )
    short = replace(table, rows=rows)
    monkeypatch.setitem(playing.PLAYED, "rl-mountain-car", short)
    return short


@pytest.mark.slow
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
    kept.write_bytes(kept.read_bytes()[:-8])  # truncated: set aside, and trained once more
    assert main(call) == 0
    once_more = capsys.readouterr()
    assert "damaged" in once_more.err
    assert once_more.out == first.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sine"], "sine has no agent to show; there are: rl-mountain-car"),
        (["rl-catcher", "--method", "nothing"], "no method 'nothing'"),
        (["rl-catcher", "--buffer", "33"], "there is: 32"),
        (["rl-catcher", "--frames", "0"], "--frames must be 1 or more"),
        (["rl-catcher", "--seed", "-1"], "--seed must be from 0 to 999"),
        (["rl-catcher", "--seed", "1000"], "--seed must be from 0 to 999"),
    ],
)
def test_wrong_calls_are_refused(arguments, message, capsys):
    assert main(["play", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_diverged_run_is_reported_and_not_repeated(short, tmp_path, capsys):
    row = made_up(short, short.rows[0], 0, status="diverged")
    row["reason"] = "numbers stopped being finite"
    write_rows(rows_folder(tmp_path, "rl-mountain-car"), "made-up", [row])
    assert main(["play", "rl-mountain-car", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "diverged: numbers stopped being finite" in said
    assert "runs in" not in said


def test_the_environment_follows_the_settings_of_the_run():
    from elephant_nn.experiments.problems import catcher

    plain, old = catcher.environment(), catcher.environment(truncate_pixels=1, buffer=32)
    start = lambda environment: int(environment.start(jnp.array([0.5, 0.5])).x)
    assert (start(plain), start(old)) == (26, 25)
