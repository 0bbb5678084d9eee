"""Copy tables, figures and compact rows from a store into this folder: collect.py STORE.

`make results` makes the store first; see the Makefile for the commands.
"""

import sys
from pathlib import Path

import polars as pl

from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.files import write_whole
from elephant_nn.report.figures import draw_figures
from elephant_nn.report.tables import as_markdown, choices, comparison
from elephant_nn.runs.store import read_rows, rows_folder

HERE = Path(__file__).parent


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
        rows.drop(curves).sort("method", "hyper", "seed").write_parquet(
            folder / "rows.parquet", compression="zstd", compression_level=19
        )


if __name__ == "__main__":
    collect(Path(sys.argv[1]))
