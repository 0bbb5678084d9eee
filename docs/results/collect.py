"""Tables, figures and compact rows under this folder, from a store, and back.

    collect.py STORE             copy what the store holds into this folder
    collect.py --restore STORE   begin a store with the class-incremental rows kept here

`make results` and `make results-classes` call it; see the Makefile for the commands between.
"""

import sys
from pathlib import Path

import polars as pl

from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.files import write_whole
from elephant_nn.report.figures import draw_figures
from elephant_nn.report.tables import as_markdown, choices, comparison
from elephant_nn.runs.store import read_rows, rows_folder, write_rows

HERE = Path(__file__).parent
KEPT_WHOLE = ("split-digits", "split-mnist", "split-cifar10")
"""Experiments whose curves are short enough to keep, and whose runs are too long to repeat."""


def collect(store: Path) -> None:
    for experiment in EXPERIMENTS.values():
        rows = read_rows(rows_folder(store, experiment.name))
        if not rows.height:
            continue
        folder = HERE / experiment.name
        grids = [comparison(experiment, rows), choices(experiment, rows)]
        text = "\n\n".join(as_markdown(grid) for grid in grids if grid.lines)
        write_whole(folder / "tables.md", f"{text}\n".encode())
        draw_figures(experiment.name, rows, folder)
        curves = [name for name, kind in rows.schema.items() if isinstance(kind, pl.List)]
        if experiment.name not in KEPT_WHOLE:
            rows = rows.drop(curves)
        rows.sort("method", "hyper", "seed").write_parquet(
            folder / "rows.parquet", compression="zstd", compression_level=19
        )


def restore(store: Path) -> None:
    for name in KEPT_WHOLE:
        kept = HERE / name / "rows.parquet"
        if kept.exists():
            write_rows(rows_folder(store, name), "kept", pl.read_parquet(kept).to_dicts())


if __name__ == "__main__":
    (restore if "--restore" in sys.argv else collect)(Path(sys.argv[-1]))
