"""Run tables from Python: `reproduce`, `sweep` and `rows` return polars frames.

The command line is a thin layer over this module.
"""

import inspect
import json
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from elephant_nn.experiments.choosing import choices, choose, rank, write_choices
from elephant_nn.experiments.names import UsageError, known
from elephant_nn.experiments.spec import (
    SELECTION_SEED,
    Row,
    Search,
    Table,
    read_choices,
    with_choices,
)
from elephant_nn.experiments.summaries import summarise_table
from elephant_nn.experiments.tables import TABLES
from elephant_nn.learners.recipe import coerce, declared, parameter_name
from elephant_nn.runs.cells import Cell
from elephant_nn.runs.executors import Executor
from elephant_nn.runs.program import bind, resolve, source_hash
from elephant_nn.runs.run import Job, Outcome, local_executor, run_cells
from elephant_nn.runs.shard import Work
from elephant_nn.runs.store import read_rows, rows_folder

Report = Callable[[float, int], None]
Notice = Callable[[str], None]


def _print(text: str) -> None:
    print(text, file=sys.stderr)


@dataclass(frozen=True)
class Runner:
    """Where and how to run: shared by all commands."""

    out: Path
    executor: Executor
    again: bool = False
    report: Report = lambda done, total: None
    notice: Notice = _print

    def run(
        self, table: Table, cells: Iterable[tuple[Row, Cell]], *, keep: bool = False
    ) -> Outcome:
        """Run the cells of some rows of a table that the store lacks."""
        problem = resolve(table.problem)
        jobs: list[Job] = [(work_of(table, row), cell) for row, cell in cells]
        embeddings = {str(cell.hyper.get("embedding", "")) for _, cell in jobs}

        def report(done: float, total: int) -> None:
            self.report(done, total)
            self.executor.announce(table.name, done, total)

        def fetch() -> None:
            from elephant_nn.data.loading import ensure_data

            if table.data is not None and self.executor.reads_data_here:
                for embedding in embeddings:
                    ensure_data(table.data, embedding, self.notice)

        return run_cells(
            jobs, self.out, lanes=lambda cell: problem.lanes(cell.hyper), executor=self.executor,
            keep=keep, again=self.again, report=report, prepare=fetch, notice=self.notice,
        )  # fmt: skip

    def rows(self, table: Table) -> pl.DataFrame:
        return read_rows(rows_folder(self.out, table.name))

    def reproduce(self, table: Table, rows: Sequence[Row], seeds: int | None) -> Outcome:
        """Run the settings of some rows on the reported seeds."""
        count = table.seeds if seeds is None else seeds
        cells = [(row, cell) for row in rows for cell in table.reproduction(row, count)]
        return self.run(table, cells, keep=True)

    def sweep(
        self, table: Table, rows: Sequence[Row], search: Search, seeds: int | None = None
    ) -> Outcome:
        """Search the grids of some rows, and run what is chosen on the reported seeds."""
        candidates = [
            (row, cell)
            for row in rows
            for cell in table.choosing_cells(
                row, row.candidates(coarse=search.coarse), search.seeds
            )
        ]
        outcome = self.run(table, candidates)
        if search.finalists:
            stored, searched = self.rows(table), {cell for _, cell in candidates}
            finalists = [
                (row, cell)
                for row in rows
                for hyper, _ in rank(stored, table, row, coarse=search.coarse)[: search.finalists]
                for cell in table.choosing_cells(row, [hyper], 4 * search.seeds)
                if cell not in searched
            ]
            outcome = outcome + self.run(table, finalists)
        stored = self.rows(table)
        chosen = []
        for row in rows:
            best = choose(stored, table, row)
            if best is not None:
                hypers, count = [best.hyper], table.seeds if seeds is None else seeds
                chosen += [(row, cell) for cell in table.cells(row, hypers, range(count))]
        return outcome + self.run(table, chosen, keep=True)

    def outdated(self, table: Table, rows: Sequence[Row]) -> list[str]:
        """A sentence per row with stored runs of other code than the user's file has now."""
        stored = pl.DataFrame() if self.again else self.rows(table)
        if "source" not in stored.columns:
            return []
        found = []
        for row in rows:
            other = (pl.col("method") == row.method) & (pl.col("source") != row.source)
            if row.source and (count := stored.filter(other).height):
                found.append(
                    f"{row.key}: {count} stored runs come from an earlier version of its code; "
                    "--again repeats them"
                )
        return found


def work_of(table: Table, row: Row) -> Work:
    evaluations = table.evaluations if row.evaluations is None else row.evaluations
    return Work(table.problem, str(row.build), float(evaluations), row.source)


def find_table(name: str, rows: Path | str | None = None, protocol: str = "") -> Table:
    """A table by name, with the rows of a user's file after its own, and with other settings of
    its problem if `protocol` gives some."""
    table = TABLES[known(name, TABLES, "experiment")]
    if rows is not None:
        table = replace(table, rows=(*table.rows, *load_rows(table, rows)))
    return with_protocol(table, protocol) if protocol else table


def with_protocol(table: Table, changes: str) -> Table:
    """The table with other settings of its problem: "legacy_order=3,scaling=none".

    Settings of methods stay as they were chosen for the published protocol, so rows with a grid
    count as guesses; `sweep` chooses anew. Rows that are about a changed setting are left out.
    """
    kinds = declared(resolve(table.problem).program)
    changed: dict[str, float | int | str] = {}
    for change in changes.split(","):
        name, equals, value = (part.strip() for part in change.partition("="))
        if not equals or not value:
            raise UsageError(f"--set takes NAME=VALUE, separated by commas, got {change!r}")
        kind = kinds[known(name, kinds, f"setting of {table.name}")].kind
        try:
            changed[name] = coerce(name, value if kind is str else float(value), kind)
        except ValueError:
            what = {int: "a whole number", float: "a number", str: "a text"}[kind]
            raise UsageError(f"--set {name} must be {what}, got {value!r}") from None
    usual = lambda row: all(
        name not in row.settings or row.settings[name] == table.defaults.get(name)
        for name in changed
    )
    rows = tuple(
        replace(row, settings={**row.settings, **changed}, chosen=False, paper={}, variants=())
        for row in filter(usual, table.rows)
    )
    what = ", ".join(f"{name} {value}" for name, value in changed.items())
    notes = f"The experiment {table.name} with {what}; its other rules are unchanged."
    return replace(table, rows=rows, title=f"{table.title}; {what}", notes=notes, figures=())


def load_rows(table: Table, path: Path | str) -> list[Row]:
    """The `ROWS` of a Python file, checked against the table's problem.

    Settings of the table's `defaults` need not be repeated. What `elephant sweep --write` has put
    into a JSON file of the same name beside it is used.
    """
    path = Path(path).resolve()
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    if path.suffix != ".py":
        raise UsageError(f"--rows takes a Python file with ROWS = [Row(...)], got {path}")
    try:
        found = resolve(f"{path}:ROWS")
    except AttributeError:
        raise UsageError(f"{path} has no ROWS; it must define ROWS = [Row(...), ...]") from None
    except Exception as error:
        raise UsageError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    if not isinstance(found, Sequence) or not found or not all(isinstance(r, Row) for r in found):
        raise UsageError(f"{path}: ROWS must be a list of elephant_nn.experiments.Row")
    rows: list[Row] = []
    for row in found:
        others = {other.method: other.build for other in rows}
        if row.method in table.methods:
            raise UsageError(
                f"{path}: {table.name} has a method {row.method!r} already; choose another name"
            )
        try:
            rows.append(_resolve_row(table, row, path))
        except (TypeError, ValueError, AttributeError, ImportError) as error:
            raise UsageError(f"{path}: {row.method}: {error}") from error
        if others.get(row.method, rows[-1].build) != rows[-1].build:
            raise UsageError(f"{path}: two builders have the method {row.method!r}; rename one")
        if rows[-1].key in {other.key for other in (*table.rows, *rows[:-1])}:
            raise UsageError(f"{path}: there is a row {rows[-1].key!r} already; change its title")
    return list(with_choices(rows, read_choices(path.with_suffix(".json"))))


def _resolve_row(table: Table, row: Row, path: Path) -> Row:
    build = _builder_name(row.build, path)
    function, problem = resolve(build), resolve(table.problem)
    kinds = {**declared(problem.program), **declared(function)}
    cast = lambda name, value: coerce(name, value, kinds[parameter_name(name, kinds)].kind)
    grid = {name: tuple(values) for name, values in row.grid.items()}
    if empty := [name for name, values in grid.items() if not values]:
        raise ValueError(f"the grid has no values for {', '.join(empty)}")
    first = {name: values[0] for name, values in grid.items()}
    settings = {**table.defaults, **first, **row.settings}
    bind(problem, function, settings)  # raises on undeclared names
    casts = lambda axes: {n: tuple(cast(n, v) for v in values) for n, values in axes.items()}
    return replace(
        row,
        build=build,
        settings={name: cast(name, value) for name, value in settings.items()},
        grid=casts(grid),
        coarse=casts(row.coarse),
        source=source_hash(function),
    )


def _builder_name(build: str | Callable[..., Any], path: Path) -> str:
    if isinstance(build, str):
        return build if ":" in build else f"{path}:{build}"
    home = inspect.getmodule(build)
    if home is None or getattr(home, "__file__", None) == str(path):
        return f"{path}:{build.__name__}"
    return f"{home.__name__}:{build.__name__}"


def select(table: Table, methods: Collection[str] = (), neurons: Collection[int] = ()) -> list[Row]:
    """The rows with these methods and widths; rows without a width stay."""
    rows = list(table.rows)
    for name in methods:
        known(name, table.methods, f"method of {table.name}")
    if methods:
        rows = [row for row in rows if row.method in methods]
    widths = sorted({row.settings["neurons"] for row in rows if "neurons" in row.settings})
    unknown = set(neurons) - set(widths)
    if unknown:
        offered = ", ".join(map(str, widths)) or "no widths"
        raise UsageError(f"--neurons {unknown.pop()}: {table.name} has {offered}")
    if neurons:
        rows = [row for row in rows if row.settings.get("neurons", min(neurons)) in neurons]
    return rows


def check_seeds(seeds: int | None) -> int | None:
    if seeds is not None and not 1 <= seeds < SELECTION_SEED:
        raise UsageError(f"--seeds must be between 1 and {SELECTION_SEED - 1}, got {seeds}")
    return seeds


def reproduce(
    name: str, *, seeds: int | None = None, methods: Collection[str] = (),
    neurons: Collection[int] = (), rows: Path | str | None = None, protocol: str = "",
    out: Path | str = "results", workers: int | None = None, again: bool = False,
    executor: Executor | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Run some rows of a table and return their summary, one line per row and metric.

    Arguments as for `elephant reproduce`; `protocol` is its `--set`, and `executor` replaces local
    workers. Failed runs are warnings; stored runs are not repeated.
    """
    table = find_table(name, rows, protocol)
    table = replace(table, rows=tuple(select(table, methods, neurons)))
    runner = Runner(Path(out), executor or local_executor(workers), again)
    _warn(runner.outdated(table, table.rows))
    _warn(runner.reproduce(table, table.rows, check_seeds(seeds)).failures)
    return pl.DataFrame(
        _flat(row.as_record() for row in summarise_table(table, runner.rows(table)))
    )


def sweep(
    name: str, *, seeds: int | None = None, coarse: bool = False, finalists: int = 0,
    methods: Collection[str] = (), neurons: Collection[int] = (), rows: Path | str | None = None,
    protocol: str = "", out: Path | str = "results", workers: int | None = None,
    again: bool = False, executor: Executor | None = None, write: Path | str | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Search the grids of some rows of a table and return what was chosen, one line per row.

    Arguments as for `elephant sweep`; `protocol` is its `--set`, and `executor` replaces local
    workers.
    """
    table = find_table(name, rows, protocol)
    swept = tuple(row for row in select(table, methods, neurons) if row.grid)
    table = replace(table, rows=swept)
    runner = Runner(Path(out), executor or local_executor(workers), again)
    search = Search(check_seeds(seeds) or table.seeds, coarse, finalists)
    _warn(runner.outdated(table, swept))
    _warn(runner.sweep(table, swept, search, seeds).failures)
    stored = runner.rows(table)
    if write is not None:
        write_choices(Path(write), table, stored)
    return pl.DataFrame(_flat(choice.as_record() for choice in choices(table, stored)))


def rows(name: str, out: Path | str = "results") -> pl.DataFrame:
    """All stored rows of a table, one per run."""
    return read_rows(rows_folder(Path(out), known(name, TABLES, "experiment")))


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        warnings.warn(sentence, RuntimeWarning, stacklevel=3)


def _flat(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records with hyper-parameters as one text, so that all rows have the same columns."""
    return [{**record, "hyper": json.dumps(record["hyper"])} for record in records]
