"""Tables, figures and compact rows under this folder, from a store, and back.

    collect.py STORE             add what the store holds to this folder
    collect.py --restore STORE   begin a store with the rows kept here

The Makefile's results, results-classes and results-rl call it, with the commands between.
Documents quote the tables between marks, `<!-- split-mnist -->` and `<!-- /split-mnist -->`.
"""

import fcntl
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.experiments.spec import SELECTION_SEED
from elephant_nn.files import write_whole
from elephant_nn.report.figures import draw_figures, draw_returns
from elephant_nn.report.tables import as_markdown, choices, comparison
from elephant_nn.runs.store import read_rows, rows_folder, write_rows

HERE = Path(__file__).parent
PROTOCOLS = ("split-protocols", "split-protocols-cifar10")
CLASSES = ("split-digits", "split-mnist", "split-cifar10", *PROTOCOLS)
TASKS = ("rl-mountain-car", "rl-acrobot", "rl-catcher", "rl-pixelcopter")
GAMES = (*TASKS, "rl-buffers")
KEPT = (*CLASSES, *GAMES)
"""Experiments whose runs are too long to repeat: their reported curves are kept as well, and rows
kept once stay, whatever the store lacks."""

DOCUMENTS = {"classes.md": CLASSES, "rl.md": TASKS}
"""Which tables they quote."""

README_METHODS = ("mlp", "mlp-ewc", "emlp", "cnn", "ecnn")


@contextmanager
def alone() -> Iterator[None]:
    """Wait for others that collect: rows are read, added to and written whole."""
    folder = os.open(HERE, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def collect(store: Path) -> None:
    for experiment in EXPERIMENTS.values():
        rows = read_rows(rows_folder(store, experiment.name))
        if not rows.height:
            continue
        folder = HERE / experiment.name
        if experiment.name in KEPT:
            rows = with_kept(rows, folder / "rows.parquet")
        grids = [comparison(experiment, rows), choices(experiment, rows)]
        text = "\n\n".join(as_markdown(grid) for grid in grids if grid.lines)
        write_whole(folder / "tables.md", f"{text}\n".encode())
        draw_figures(experiment.name, rows, folder)
        curves = [name for name, kind in rows.schema.items() if isinstance(kind, pl.List)]
        if experiment.name in GAMES:
            reported = pl.col("seed") < SELECTION_SEED
            rows = rows.with_columns(pl.when(reported).then(pl.col(name)) for name in curves)
        elif experiment.name not in KEPT:
            rows = rows.drop(curves)
        packed = io.BytesIO()
        rows.sort("method", "hyper", "seed").write_parquet(
            packed, compression="zstd", compression_level=19
        )
        write_whole(folder / "rows.parquet", packed.getvalue())
    draw_returns(store, HERE)


def with_kept(rows: pl.DataFrame, kept: Path) -> pl.DataFrame:
    """The rows, and those kept of other runs; of the same run the newer."""
    if not kept.exists():
        return rows
    both = pl.concat([rows, pl.read_parquet(kept)], how="diagonal_relaxed")
    return both.unique("cell", keep="first", maintain_order=True)


def quote() -> None:
    """Put the tables where the documents quote them."""
    root = HERE.parent.parent
    for document, names in DOCUMENTS.items():
        for name in names:
            kept = HERE / name / "tables.md"
            if kept.exists():
                _between(root / "docs" / document, name, kept.read_text().strip())
    _between(root / "README.md", "split-digits", readme_table())


def readme_table() -> str:
    """The digits' table with a few of its rows."""
    _, table, *_ = (HERE / "split-digits" / "tables.md").read_text().split("\n\n")
    header, rule, *rows = table.splitlines()
    by_title = {row.split(" | ")[0].removeprefix("| "): row for row in rows}
    titles = {entry.method: entry.label for entry in EXPERIMENTS["split-digits"].entries}
    return "\n".join([header, rule, *(by_title[titles[method]] for method in README_METHODS)])


def _between(document: Path, mark: str, text: str) -> None:
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.S)
    quoted, found = pattern.subn(lambda _: f"{start}\n\n{text}\n\n{end}", document.read_text())
    if not found:
        raise ValueError(f"{document} has no mark {start}")
    write_whole(document, quoted.encode())


def restore(store: Path) -> None:
    for name in KEPT:
        kept = HERE / name / "rows.parquet"
        if kept.exists():
            for older in rows_folder(store, name).glob("kept-*.parquet"):
                older.unlink()
            write_rows(rows_folder(store, name), "kept", pl.read_parquet(kept).to_dicts())


if __name__ == "__main__":
    if "--restore" in sys.argv:
        restore(Path(sys.argv[-1]))
    else:
        with alone():
            collect(Path(sys.argv[-1]))
            quote()
