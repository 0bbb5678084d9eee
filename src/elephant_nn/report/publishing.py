"""Published results: tables, figures and compact rows in a folder, quoted by documents.

docs/results/NAME/rows.parquet, tables.md and figures
README.md and docs/*.md: <!-- NAME --> ... <!-- /NAME -->, or <!-- NAME: method, method -->
"""

import fcntl
import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from elephant_nn.experiments.api import Runner
from elephant_nn.experiments.spec import SELECTION_SEED, Row, Search, Table
from elephant_nn.experiments.tables import TABLES
from elephant_nn.files import make_folder, write_whole
from elephant_nn.report.figures import draw_figures, draw_returns
from elephant_nn.report.tables import as_markdown, chosen_settings, comparison
from elephant_nn.runs.run import Outcome
from elephant_nn.runs.store import merge, rows_folder, with_settings, write_rows


def published_rows(kept: Path, name: str) -> pl.DataFrame:
    """The published rows of a table; an empty frame if there are none."""
    path = kept / name / "rows.parquet"
    return with_settings(pl.read_parquet(path)) if path.exists() else pl.DataFrame()


def restore(kept: Path, table: Table, out: Path) -> None:
    """Put published rows into a store; reported runs without their curves are run again."""
    rows = published_rows(kept, table.name)
    if not rows.height:
        return
    if table.figures and not _curves(rows):
        rows = rows.filter(pl.col("seed") >= SELECTION_SEED)
    folder = rows_folder(out, table.name)
    older = set(folder.glob("kept-*.parquet"))
    if rows.height:
        written = write_rows(folder, "kept", rows.to_dicts())
        os.utime(written, ns=(0, 0))  # older than whatever else the store holds
        older.discard(written)
    for path in older:
        path.unlink(missing_ok=True)


def run_published(runner: Runner, table: Table) -> Outcome:
    """Run everything behind the published table that the store lacks: searches, then seeds."""
    default = table.seeds if table.published_seeds is None else table.published_seeds
    searched: dict[tuple[Search, int], list[Row]] = {}
    reported: dict[int, list[Row]] = {}
    for row in table.rows:
        seeds = default if row.runs is None else row.runs
        reported.setdefault(seeds, []).append(row)
        if row.search and row.grid:
            searched.setdefault((row.search, seeds), []).append(row)
    outcome = Outcome()
    for (search, seeds), rows in searched.items():
        outcome = outcome + runner.sweep(table, rows, search, seeds)
    for seeds, rows in reported.items():
        outcome = outcome + runner.reproduce(table, rows, seeds)
    return outcome


def publish(kept: Path, table: Table, rows: pl.DataFrame) -> None:
    """Add rows to the published ones, and rewrite the table and its figures.

    Of the same run the newer row counts; rows that were published stay.
    """
    with _exclusive(make_folder(kept)):
        folder = kept / table.name
        rows = merge([rows, published_rows(kept, table.name)])
        if not rows.height:
            return
        reported = pl.col("seed") < SELECTION_SEED
        compact = rows.with_columns(
            pl.when(reported).then(pl.col(name)) for name in _curves(rows)
        ).sort("method", "hyper", "seed")
        packed = io.BytesIO()
        compact.write_parquet(packed, compression="zstd", compression_level=19)
        write_whole(folder / "rows.parquet", packed.getvalue())
        texts = [comparison(table, rows), chosen_settings(table, rows)]
        text = "\n\n".join(as_markdown(text) for text in texts if text.lines)
        write_whole(folder / "tables.md", f"{text}\n".encode())
        draw_figures(table, rows, folder)
        tasks = {
            name: (table, published_rows(kept, name))
            for name, table in TABLES.items()
            if "return_curves" in table.figures
        }
        draw_returns(tasks, kept)


def quote(root: Path, kept: Path) -> None:
    """Put published tables where README and documents quote them."""
    documents = [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    for document in filter(Path.is_file, documents):
        before = document.read_text("utf-8")
        after = _MARK.sub(lambda match: _quoted(match, kept), before)
        if after != before:
            write_whole(document, after.encode())


_MARK = re.compile(r"<!-- ([\w-]+)(?:: ([^>]*?))? -->.*?<!-- /\1 -->", re.DOTALL)


def _quoted(match: re.Match[str], kept: Path) -> str:
    name, methods = match[1], match[2]
    tables = kept / name / "tables.md"
    if not tables.exists():
        return match[0]
    text = tables.read_text("utf-8").strip()
    start = f"<!-- {name}: {methods} -->" if methods else f"<!-- {name} -->"
    if methods:
        text = some_rows(TABLES[name], text, [method.strip() for method in methods.split(",")])
    return f"{start}\n\n{text}\n\n<!-- /{name} -->"


def some_rows(table: Table, text: str, methods: Sequence[str]) -> str:
    """The first table of a published text, with the lines of some methods."""
    _, lines, *_ = text.split("\n\n")
    header, rule, *rest = lines.splitlines()
    titles = {row.label for row in table.rows if row.method in methods}
    title = lambda line: line.split(" | ")[0].removeprefix("| ").removesuffix(" *")
    return "\n".join([header, rule, *(line for line in rest if title(line) in titles)])


def _curves(rows: pl.DataFrame) -> list[str]:
    return [name for name, kind in rows.schema.items() if isinstance(kind, pl.List)]


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Wait for other commands that publish: rows are read, extended and written as a whole."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
