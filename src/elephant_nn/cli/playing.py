"""The command `elephant play`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elephant_nn.cli.arguments import Count, Folder, Name
from elephant_nn.experiments.names import UsageError, known
from elephant_nn.experiments.spec import SELECTION_SEED, Row, Table
from elephant_nn.experiments.tables import TABLES
from elephant_nn.files import make_folder, write_whole

if TYPE_CHECKING:
    from elephant_nn.runs.cells import Cell

PLAYED = {name: table for name, table in TABLES.items() if "return_curves" in table.figures}
"""Experiments with agents that `elephant play` can show."""


def play(
    name: Name, /, method: str = "emlp", buffer: Count = None, seed: int = 0, episodes: int = 20,
    frames: int = 400, out: Folder = Path("results"),
) -> int:  # fmt: skip
    """Let a trained agent play: the returns of its greedy policy, and a film of one episode.

    An agent that is not in the store is trained first, which takes from seconds (rl-mountain-car)
    to minutes (rl-pixelcopter).

    Args:
        name: rl-mountain-car, rl-acrobot, rl-catcher or rl-pixelcopter.
        method: a row of its table: emlp, mlp, fta, lwta, maxout or later-emlp.
        buffer: size of the replay buffer in training, if rows differ in it; default: the smallest.
        seed: which run.
        episodes: the number of episodes of the mean; the film shows another one.
        frames: the film stops after this many.
        out: folder of the store; the film goes into its figures.
    """
    if name in TABLES and name not in PLAYED:
        raise UsageError(f"{name} has no agent to show; there are: {', '.join(PLAYED)}")
    table = PLAYED[known(name, PLAYED, "experiment with an agent")]
    known(method, table.methods, "method")
    by_buffer = {row.settings["buffer"]: row for row in table.rows if row.method == method}
    row = by_buffer.get(min(by_buffer) if buffer is None else buffer)
    if row is None:
        raise UsageError(
            f"{name} has no {method} with a buffer of {buffer}; there is: "
            f"{', '.join(map(str, by_buffer))}"
        )
    for option, value in (("episodes", episodes), ("frames", frames)):
        if value < 1:
            raise UsageError(f"--{option} must be 1 or more, got {value}")
    if not 0 <= seed < SELECTION_SEED:
        raise UsageError(f"--seed must be from 0 to {SELECTION_SEED - 1}, got {seed}")

    import jax
    import numpy as np

    from elephant_nn.experiments.api import work_of
    from elephant_nn.report.tables import number
    from elephant_nn.rl.policy import evaluate, record_episode, write_gif
    from elephant_nn.runs.program import resolve

    cell = table.cell(row, row.settings, seed)
    figures = make_folder(out / name / "figures")
    params = _learned(table, row, cell, out)
    if params is None:
        return 1
    bound = work_of(table, row).bind(cell)
    environment = resolve(table.problem).environment(**bound.own)
    network = bound.method.recipe(environment.size, environment.actions)(bound.floats)
    play_key, film_key = jax.random.split(jax.random.key(seed))
    returns = np.asarray(evaluate(environment, network, params, play_key, episodes))
    se = float(returns.std(ddof=1) / np.sqrt(episodes)) if episodes > 1 else None
    print(
        f"{table.title}, {row.title}, seed {seed}: greedy return "
        f"{number(float(returns.mean()), se, 1)} ({episodes} episode{'s' * (episodes > 1)})"
    )
    pictures, total = record_episode(environment, network, params, film_key, frames)
    path = figures / f"{name}-{method}-{row.settings['buffer']}-{seed}.gif"
    print(f"film of an episode with return {total:.1f}: {write_gif(path, pictures)}")
    return 0


def _learned(table: Table, row: Row, cell: Cell, out: Path) -> Any | None:
    """The parameters that a run learned, from the store; if need be it is run now.

    It is run apart from the store, so that playing changes no table. None if it diverged or failed.
    """
    from tempfile import TemporaryDirectory

    import polars as pl

    from elephant_nn.cli.running import run_and_report
    from elephant_nn.experiments.api import Runner, work_of
    from elephant_nn.runs.run import local_executor
    from elephant_nn.runs.shard import learned_file, load_learned

    work, kept = work_of(table, row), learned_file(out / table.name, cell)
    learned = load_learned(work, cell, kept)
    if learned is not None:
        return learned
    with TemporaryDirectory() as apart:
        rows = Runner(out, local_executor(0)).rows(table)
        rows = rows.filter(pl.col("cell") == cell.id) if rows.height else rows
        if not rows.height or rows["status"][0] == "ok":
            runner = Runner(Path(apart), local_executor(1))
            train = lambda runner: runner.run(table, [(row, cell)], keep=True)
            run_and_report(table, [row], runner, train)
            rows = runner.rows(table)
        if rows.height and rows["status"][0] != "ok":
            message = f"there is nothing to play, the run diverged: {rows['reason'][0]}"
            print(f"elephant: {message}", file=sys.stderr)
        source = learned_file(Path(apart) / table.name, cell)
        if source.exists():
            write_whole(kept, source.read_bytes())
    return load_learned(work, cell, kept)
