"""The command `elephant play`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elephant_nn.cli.arguments import Count, Folder, Name, UsageError, known
from elephant_nn.cli.running import run_and_report, stored_rows
from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.experiments.spec import SELECTION_SEED, Experiment
from elephant_nn.files import make_folder, write_whole
from elephant_nn.rl import TASKS

if TYPE_CHECKING:
    from elephant_nn.runs.cells import Cell

PLAYED = {f"rl-{task}": task for task in TASKS}
"""Experiments with agents that `elephant play` can show."""


def play(
    name: Name,
    /,
    method: str = "emlp",
    buffer: Count = None,
    seed: int = 0,
    episodes: int = 20,
    frames: int = 400,
    out: Folder = Path("results"),
) -> int:
    """Let a trained agent play: the returns of its greedy policy, and a film of one episode.

    Shows what `elephant reproduce` learned; an agent that is not in the store is trained first,
    which takes from seconds (rl-mountain-car) to minutes (rl-pixelcopter).

    Args:
        name: rl-mountain-car, rl-acrobot, rl-catcher or rl-pixelcopter.
        method: a row of its table: emlp, mlp, fta, lwta, maxout or later-emlp.
        buffer: transitions remembered while learning, where rows differ in it; default: the fewest.
        seed: which run.
        episodes: how many are played for the mean; the film shows another one.
        frames: the film is cut after so many.
        out: folder of the store; the film goes into its figures.
    """
    if name in EXPERIMENTS and name not in PLAYED:
        raise UsageError(f"{name} has no agent to show; there are: {', '.join(PLAYED)}")
    experiment = EXPERIMENTS[known(name, PLAYED, "experiment with an agent")]
    known(method, list(dict.fromkeys(e.method for e in experiment.entries)), "method")
    entries = {e.settings["buffer"]: e for e in experiment.entries if e.method == method}
    entry = entries.get(min(entries) if buffer is None else buffer)
    if entry is None:
        raise UsageError(
            f"{name} has no {method} with a buffer of {buffer}; there is: "
            f"{', '.join(map(str, entries))}"
        )
    for option, value in (("episodes", episodes), ("frames", frames)):
        if value < 1:
            raise UsageError(f"--{option} must be 1 or more, got {value}")
    if not 0 <= seed < SELECTION_SEED:
        raise UsageError(f"--seed must be from 0 to {SELECTION_SEED - 1}, got {seed}")

    import jax
    import numpy as np

    from elephant_nn.experiments.rl import network_of
    from elephant_nn.report.tables import number
    from elephant_nn.rl import make_environment
    from elephant_nn.rl.policy import evaluate, film, write_gif

    cell = experiment.cells(entry, [entry.settings], [seed])[0]
    figures = make_folder(out / name / "figures")
    params = _learned(experiment, cell, out)
    if params is None:
        return 1
    environment = make_environment(PLAYED[name])
    network = network_of(method, cell.hyper, cell.hyper, environment.size, environment.actions)
    play_key, film_key = jax.random.split(jax.random.key(seed))
    returns = np.asarray(evaluate(environment, network, params, play_key, episodes))
    se = float(returns.std(ddof=1) / np.sqrt(episodes)) if episodes > 1 else None
    print(
        f"{experiment.title}, {entry.title}, seed {seed}: greedy return "
        f"{number(float(returns.mean()), se, 1)} ({episodes} episode{'s' * (episodes > 1)})"
    )
    pictures, earned = film(environment, network, params, film_key, frames)
    path = figures / f"{name}-{method}-{entry.settings['buffer']}-{seed}.gif"
    print(f"film of an episode with return {earned:.1f}: {write_gif(path, pictures)}")
    return 0


def _learned(experiment: Experiment, cell: Cell, out: Path) -> Any | None:
    """What a run learned, from the store; if need be it is run now. None if there is nothing.

    It is run apart from the store, so that playing changes no table.
    """
    from tempfile import TemporaryDirectory

    import polars as pl

    from elephant_nn.runs.shard import Shard, keepsake_file, load_keepsake

    shard = Shard(experiment.program, (cell,), experiment.lanes(cell))
    kept = keepsake_file(out / experiment.name, cell)
    learned = load_keepsake(shard, kept)
    if learned is not None:
        return learned
    with TemporaryDirectory() as apart:
        rows = stored_rows(experiment, out)
        rows = rows.filter(pl.col("cell") == cell.id) if rows.height else rows
        if not rows.height or rows["status"][0] == "ok":
            run_and_report(experiment, [cell], Path(apart), 1, keep=True)
            rows = stored_rows(experiment, Path(apart))
        if rows.height and rows["status"][0] != "ok":
            sentence = f"there is nothing to play, the run diverged: {rows['reason'][0]}"
            print(f"elephant: {sentence}", file=sys.stderr)
        source = keepsake_file(Path(apart) / experiment.name, cell)
        if source.exists():
            write_whole(kept, source.read_bytes())
    return load_keepsake(shard, kept)
