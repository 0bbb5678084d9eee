"""What the commands that run things share: run cells and say what came of it; read the store."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from elephant_nn.cli.arguments import UsageError
from elephant_nn.experiments.spec import Experiment

if TYPE_CHECKING:
    import polars as pl

    from elephant_nn.runs.cells import Cell
    from elephant_nn.runs.run import Outcome


def run_and_report(
    experiment: Experiment,
    cells: list[Cell],
    out: Path,
    workers: int | None,
    *,
    keep: bool = False,
) -> Outcome:
    from elephant_nn.runs.executors import cores
    from elephant_nn.runs.progress import progress
    from elephant_nn.runs.run import run_cells

    if workers is not None and workers < 0:
        raise UsageError(f"--workers must be 0 or more, got {workers}")
    if experiment.data and cells:
        _fetch_if_absent(experiment.data)
    started = time.monotonic()
    with progress(experiment.name) as tell:
        outcome = run_cells(
            experiment.program,
            cells,
            out,
            lanes=experiment.lanes,
            workers=cores() if workers is None else workers,
            keep=keep,
            report=tell,
        )
    for cell, reason in outcome.failed.items():
        print(f"failed: {cell.method} {cell.hyper} seed {cell.seed}: {reason}", file=sys.stderr)
    if outcome.ran or outcome.failed:
        print(
            f"{experiment.name}: {outcome.ran} runs in {time.monotonic() - started:.1f} s, "
            f"{outcome.kept} were in the store, {outcome.diverged} diverged, "
            f"{len(outcome.failed)} failed",
            file=sys.stderr,
        )
    return outcome


def _fetch_if_absent(name: str) -> None:
    from elephant_nn.data.catalog import CATALOG, cached, fetch

    if cached(CATALOG[name]) is None:
        fetch(CATALOG[name], notice=lambda text: print(text, file=sys.stderr))


def stored_rows(experiment: Experiment, out: Path) -> pl.DataFrame:
    from elephant_nn.runs.store import read_rows, rows_folder

    return read_rows(rows_folder(out, experiment.name))
