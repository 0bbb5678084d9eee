"""The commands. Heavy libraries are imported only by those that need them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from elephant_nn.cli.arguments import (
    HERE,
    Count,
    File,
    Folder,
    Name,
    Names,
    Place,
    Protocol,
    named_tables,
    selected,
)
from elephant_nn.cli.bench import bench
from elephant_nn.cli.calibrating import calibrate
from elephant_nn.cli.data import data
from elephant_nn.cli.playing import play
from elephant_nn.cli.status import status
from elephant_nn.experiments.names import UsageError, known
from elephant_nn.experiments.spec import Row, Search, Table
from elephant_nn.experiments.tables import TABLES


def list_experiments() -> int:
    """List the experiments: their table or figure in the paper, and their methods."""
    width = max(map(len, TABLES))
    for table in TABLES.values():
        grid = sum(len(row.candidates()) for row in table.rows if row.grid)
        print(f"{table.name:{width}}  {table.title} ({table.source})")
        print(f"{'':{width}}  methods: {', '.join(table.methods)}")
        size = f"; the grid has {grid} settings" if grid else ""
        print(f"{'':{width}}  {table.seeds} seed{'s' * (table.seeds > 1)}{size}")
    print("\nelephant reproduce NAME runs one; elephant reproduce all runs everything, for days.")
    return 0


def reproduce(
    names: Names, /, seeds: Count = None, methods: str = "", neurons: str = "", rows: File = None,
    protocol: Protocol = "", quick: bool = False, again: bool = False,
    out: Folder = Path("results"), where: Place = HERE,
) -> int:  # fmt: skip
    """Regenerate tables and figures of the paper with the chosen settings, ours beside theirs.

    Runs in the store are not repeated, so the same command continues after a stop.

    Args:
        names: experiments (see `elephant list`), or `all`.
        seeds: runs per method; default: the paper's number.
        methods: only these, separated by commas.
        neurons: only these widths, separated by commas.
        rows: a Python file with rows of your own, ROWS = [Row(...)], to run beside ours.
        protocol: other settings of the experiment than the published ones, such as
            legacy_order=3 or scaling=none.
        quick: one seed only, for a first look.
        again: run what is in the store, too, and replace it.
        out: folder of the store, the figures and the report.
        where: here or on a cluster.
    """
    from elephant_nn.cli.running import (
        each,
        open_runner,
        run_and_report,
        show_and_draw,
    )
    from elephant_nn.experiments.api import check_seeds

    if quick and seeds is not None:
        raise UsageError("give --quick (one seed) or --seeds, not both")
    count = check_seeds(1 if quick else seeds)
    chosen = list(selected(named_tables(names, rows, protocol), methods, neurons))

    def one(table: Table) -> int:
        mine = next(rows for t, rows in chosen if t is table)
        work = lambda runner: runner.reproduce(table, mine, count)
        outcome = run_and_report(table, mine, runner, work)
        return len(outcome.failed) + show_and_draw(table, out, runner)

    with open_runner(out, where, again) as runner:
        return each([table for table, _ in chosen], one)


def sweep(
    names: Names, /, seeds: Count = None, methods: str = "", neurons: str = "",
    coarse: bool = False, finalists: int = 0, rows: File = None, protocol: Protocol = "",
    again: bool = False,
    write: File = None, out: Folder = Path("results"), where: Place = HERE,
) -> int:  # fmt: skip
    """Run the paper's grid, choose each method's setting, and report it on other seeds.

    Settings are chosen on seeds that no table reports, and on held-out training data if there is a
    test set; both numbers are printed, because the paper does neither.

    Args:
        names: experiments with a grid (see `elephant list`), or `all`.
        seeds: runs per setting; default: the paper's number.
        methods: only these, separated by commas.
        neurons: only these widths, separated by commas.
        coarse: fewer values per axis, where the whole grid would take days.
        finalists: run this many of the best settings on four times as many seeds before one is
            chosen: the best of many noisy means is too good to be true.
        rows: a Python file with rows of your own, ROWS = [Row(...)], to sweep beside ours.
        protocol: other settings of the experiment than the published ones, such as
            legacy_order=3 or scaling=none.
        again: run what is in the store, too, and replace it.
        write: write the chosen settings and what they were chosen on to this JSON file.
        out: folder of the store.
        where: here or on a cluster.
    """
    from elephant_nn.cli.running import each, open_runner, run_and_report
    from elephant_nn.experiments.api import check_seeds
    from elephant_nn.experiments.choosing import write_choices
    from elephant_nn.report.tables import as_text, chosen_settings

    if finalists < 0:
        raise UsageError(f"--finalists must be 0 or more, got {finalists}")
    if not names:
        some = [name for name, table in TABLES.items() if any(row.grid for row in table.rows)]
        raise UsageError(f"name an experiment: {', '.join(some)}, or all")
    if write is not None and protocol:
        raise UsageError("--write keeps choices for the published table; leave out --set")
    if write is not None and (len(names) > 1 or "all" in names):
        raise UsageError("--write takes one experiment at a time")
    count = check_seeds(seeds)
    swept: list[tuple[Table, list[Row]]] = []
    for table, mine in selected(named_tables(names, rows, protocol), methods, neurons):
        with_grid = [row for row in mine if row.grid]
        if not with_grid and len(names) == 1 and "all" not in names:
            what = f"{methods} of {table.name}" if methods else table.name
            others = dict.fromkeys(row.method for row in table.rows if row.grid)
            hint = f"; there is one for {', '.join(others)}" if others else ""
            raise UsageError(f"{what} has no grid to sweep{hint}")
        swept += [(table, with_grid)] if with_grid else []

    def one(table: Table) -> int:
        mine = next(rows for t, rows in swept if t is table)
        search = Search(count or table.seeds, coarse, finalists)
        work = lambda runner: runner.sweep(table, mine, search, count)
        outcome = run_and_report(table, mine, runner, work)
        stored = runner.rows(table)
        print(as_text(chosen_settings(table, stored)))
        if write is not None:
            print(f"chosen settings: {write_choices(write, table, stored)}")
        return len(outcome.failed)

    with open_runner(out, where, again) as runner:
        return each([table for table, _ in swept], one)


def results(
    names: Names, /, kept: Folder = Path("docs/results"), out: Folder = Path("results"),
    where: Place = HERE,
) -> int:  # fmt: skip
    """Run everything behind published tables, and publish them: rows, tables, figures, quotes.

    Continues from the published rows: only what they lack is run. From nothing, the sine takes five
    minutes on two cores, reinforcement learning a day, the class-incremental tables days.

    Args:
        names: experiments (see `elephant list`), or `all`.
        kept: folder of the published results; documents beside it quote them.
        out: folder of the store.
        where: here or on a cluster.
    """
    from elephant_nn.cli.running import each, open_runner, run_and_report
    from elephant_nn.report.publishing import publish, quote, restore, run_published

    if not kept.is_dir():
        raise UsageError(f"there is no folder {kept}; run this in a checkout, or give --kept")

    def one(table: Table) -> int:
        restore(kept, table, out)
        work = lambda runner: run_published(runner, table)
        outcome = run_and_report(table, table.rows, runner, work)
        if outcome.failed:
            print(f"not published: {len(outcome.failed)} runs of {table.name} failed")
        else:
            publish(kept, table, runner.rows(table))
            quote(kept.resolve().parent.parent, kept)
            print(f"published: {kept / table.name}")
        return len(outcome.failed)

    tables = named_tables(names)
    with open_runner(out, where) as runner:
        return each(tables, one)


def show(
    name: Name,
    /,
    format: Literal["table", "json", "csv", "markdown"] = "table",  # noqa: A002
    sweep: bool = False,
    rows: File = None,
    protocol: Protocol = "",
    out: Folder = Path("results"),
) -> int:
    """Print what the store holds of an experiment, ours beside the paper's.

    Args:
        name: an experiment (see `elephant list`).
        format: how to print it.
        sweep: instead of the chosen settings' results, what `elephant sweep` chose, and on what.
        rows: a Python file with rows of your own, to show beside ours.
        protocol: other settings of the experiment than the published ones, such as
            legacy_order=3 or scaling=none.
        out: folder of the store.
    """
    from elephant_nn.experiments.api import Runner
    from elephant_nn.experiments.choosing import tried_settings
    from elephant_nn.experiments.summaries import summarise_table
    from elephant_nn.report.tables import render
    from elephant_nn.runs.run import local_executor

    (table,) = named_tables([known(name, TABLES, "experiment")], rows, protocol)
    runner = Runner(out, local_executor(0))
    stored = runner.rows(table)
    for sentence in runner.outdated(table, table.rows):
        print(f"elephant: {sentence}", file=sys.stderr)
    swept = any(tried_settings(stored, table, row) for row in table.rows if row.grid)
    if not (swept if sweep else summarise_table(table, stored)):
        stored = stored.clear()
    if not stored.height:
        verb, what = ("sweep", "no sweep") if sweep else ("reproduce", "nothing")
        command = f"elephant {verb} {name} --out {shlex.quote(str(out))}"
        other = f", or see what was swept: elephant show {name} --sweep" if swept else ""
        print(f"{what} of {name} in {out} yet; run: {command}{other}", file=sys.stderr)
        if format != "json":
            return 0
    print(render(table, stored, format, sweep=sweep))
    return 0


def report(out: Folder = Path("results")) -> int:
    """Write one self-contained page with every table and figure from what the store holds.

    Args:
        out: folder of the store; the page is report.html in it.
    """
    from elephant_nn.report.page import write_page

    print(f"page: {write_page(out)}")
    return 0


COMMANDS: dict[str, Callable[..., int]] = {
    "list": list_experiments,
    "reproduce": reproduce,
    "sweep": sweep,
    "results": results,
    "show": show,
    "play": play,
    "report": report,
    "status": status,
    "data": data,
    "calibrate": calibrate,
    "bench": bench,
}
