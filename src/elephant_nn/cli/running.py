"""What the commands that run things share."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from elephant_nn.cli.arguments import Where
from elephant_nn.experiments.api import Runner
from elephant_nn.experiments.names import UsageError
from elephant_nn.experiments.spec import Row, Table
from elephant_nn.files import DataError, StorageError
from elephant_nn.runs.executors import Executor
from elephant_nn.runs.progress import progress
from elephant_nn.runs.run import Outcome, local_executor


@contextmanager
def open_runner(out: Path, where: Where, again: bool = False) -> Iterator[Runner]:
    """A runner here or on a cluster, which is left at the end."""
    with ExitStack() as stack:
        try:
            executor = stack.enter_context(_executor(where))
        except ValueError as error:
            raise UsageError(f"--{error}") from error
        yield Runner(out, executor, again)


@contextmanager
def _executor(where: Where) -> Iterator[Executor]:
    if not where.cluster:
        yield local_executor(where.workers)
        return
    from elephant_nn.runs.cluster import cluster_executor
    from elephant_nn.runs.connection import silence_dask

    silence_dask()
    with cluster_executor(
        where.cluster, checkpoints=where.checkpoints or "", send_data=where.send_data,
        notice=lambda text: print(text, file=sys.stderr),
    ) as executor:  # fmt: skip
        yield executor


def run_and_report(
    table: Table, rows: Sequence[Row], runner: Runner, work: Callable[[Runner], Outcome]
) -> Outcome:
    """Do some work with progress, and report its outcome."""
    for sentence in runner.outdated(table, rows):
        print(f"elephant: {sentence}", file=sys.stderr)
    started = time.monotonic()
    with progress(table.name) as report:
        outcome = work(replace(runner, report=report))
    for sentence in outcome.failures:
        print(sentence, file=sys.stderr)
    if outcome.ran or outcome.failed:
        print(
            f"{table.name}: {outcome.ran} runs in {time.monotonic() - started:.1f} s, "
            f"{outcome.kept} were in the store, {outcome.diverged} diverged, "
            f"{len(outcome.failed)} failed",
            file=sys.stderr,
        )
    return outcome


def each(tables: Sequence[Table], one: Callable[[Table], int]) -> int:
    """The exit status after `one`, which counts failures, for each table.

    A table whose data cannot be fetched does not stop the others.
    """
    failed = 0
    for table in tables:
        try:
            failed += one(table)
        except DataError as error:
            print(f"elephant: {error}", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


def show_and_draw(table: Table, out: Path, runner: Runner) -> int:
    """Print the table, then draw its figures; returns how much of that failed."""
    from elephant_nn.experiments.tables import TABLES
    from elephant_nn.report.figures import draw_figures, draw_returns
    from elephant_nn.report.tables import as_text, comparison

    rows = runner.rows(table)
    print(as_text(comparison(table, rows)))
    try:
        figures = draw_figures(table, rows, out / table.name / "figures")
        if "return_curves" in table.figures:
            tasks = {
                n: (t, runner.rows(t)) for n, t in TABLES.items() if "return_curves" in t.figures
            }
            figures += draw_returns(tasks, out / "figures")
    except StorageError as error:
        print(f"elephant: {error}", file=sys.stderr)
        return 1
    for drawn in figures:
        print(f"figure: {drawn.png}")
    return 0
