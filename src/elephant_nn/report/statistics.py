"""From rows to numbers: mean and standard error over seeds, and the choice of settings."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import polars as pl

from elephant_nn.experiments.spec import SELECTION_SEED, Entry, Experiment, Metric
from elephant_nn.runs.cells import Cell, Hyper


@dataclass(frozen=True)
class Summary:
    """Mean and standard error over the runs of one setting.

    The standard error is the sample standard deviation (n - 1) over sqrt(n); None for one run.
    Diverged runs have no number: they are counted, and left out of the mean. `interval` is the 95%
    percentile bootstrap of the mean.
    """

    mean: float | None
    se: float | None
    runs: int
    diverged: int = 0
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class TableRow:
    """One row of a table, ours beside the paper's."""

    experiment: str
    method: str
    title: str
    metric: Metric
    ours: Summary
    paper: tuple[float, float | None] | None
    hyper: Hyper
    rules: Mapping[str, Any]
    guessed: bool
    rivals: tuple[tuple[str, Summary], ...] = ()

    def as_record(self) -> dict[str, Any]:
        """The row as plain values, as `elephant show --format json` prints it."""
        paper_mean, paper_se = self.paper or (None, None)
        return {
            "experiment": self.experiment,
            "method": self.method,
            "title": self.title,
            "neurons": self.hyper.get("neurons"),
            "buffer": self.hyper.get("buffer"),
            "metric": self.metric.name,
            "mean": self.ours.mean,
            "se": self.ours.se,
            "low": self.ours.interval[0] if self.ours.interval else None,
            "high": self.ours.interval[1] if self.ours.interval else None,
            "runs": self.ours.runs,
            "diverged": self.ours.diverged,
            "paper_mean": paper_mean,
            "paper_se": paper_se,
            **self.rules,
            "guessed": self.guessed,
            "hyper": dict(self.hyper),
        }


RULES = ("passes", "task_boundary", "class_statistics", "scaling", "cut", "buffer_bytes")


def summarise(rows: pl.DataFrame, metric: str, *, interval: bool = False) -> Summary:
    ended = rows.filter(pl.col("status") == "ok")
    values = ended.get_column(metric, default=pl.Series(dtype=pl.Float64)).drop_nulls().to_numpy()
    n = len(values)
    se = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else None
    around = bootstrap_interval(values) if interval and n > 1 else None
    return Summary(float(values.mean()) if n else None, se, n, rows.height - ended.height, around)


def bootstrap_interval(values: np.ndarray) -> tuple[float, float]:
    """The 95% percentile bootstrap of the mean, 10,000 resamples, the same for the same values."""
    resampled = np.random.default_rng(0).choice(values, (10_000, len(values)))
    low, high = np.percentile(resampled.mean(1), [2.5, 97.5])
    return float(low), float(high)


def table(experiment: Experiment, rows: pl.DataFrame) -> list[TableRow]:
    """The experiment's table from the reported seeds' rows; entries without a run are left out."""
    found = []
    for entry in experiment.entries:
        ours = runs_of(rows, experiment, entry, entry.settings)
        if not ours.height:
            continue
        for metric in experiment.metrics:
            rivals = tuple(
                (str(hyper[entry.variant or ""]), summary)
                for hyper in entry.rivals
                if (summary := summarise(runs_of(rows, experiment, entry, hyper), metric.name)).runs
            )
            found.append(_table_row(experiment, entry, metric, entry.settings, ours, rivals))
    return found


def _table_row(
    experiment: Experiment,
    entry: Entry,
    metric: Metric,
    hyper: Hyper,
    rows: pl.DataFrame,
    rivals: tuple[tuple[str, Summary], ...] = (),
) -> TableRow:
    return TableRow(
        experiment.name,
        entry.method,
        entry.label,
        metric,
        summarise(rows, metric.name, interval=experiment.intervals),
        entry.paper.get(metric.name),
        hyper,
        {rule: rows[rule][0] for rule in RULES if rule in rows.columns},
        entry.guessed,
        rivals,
    )


@dataclass(frozen=True)
class SelectionRow:
    """What a sweep chose for one method, on which numbers, and what it gives on fresh seeds."""

    experiment: str
    method: str
    title: str
    metric: Metric
    choice: "Choice"
    fresh: Summary
    paper: tuple[float, float | None] | None
    entry: Entry

    @property
    def hyper(self) -> Hyper:
        return self.choice.hyper

    def as_record(self) -> dict[str, Any]:
        """The row as plain values, as `elephant show --sweep --format json` prints it."""
        paper_mean, paper_se = self.paper or (None, None)
        return {
            "experiment": self.experiment,
            "method": self.method,
            "neurons": self.hyper.get("neurons"),
            "metric": self.metric.name,
            "chosen_mean": self.choice.summary.mean,
            "chosen_se": self.choice.summary.se,
            "chosen_runs": self.choice.summary.runs,
            "coarse": self.choice.coarse,
            "peeked_mean": self.choice.peeked.mean if self.choice.peeked else None,
            "mean": self.fresh.mean,
            "se": self.fresh.se,
            "runs": self.fresh.runs,
            "paper_mean": paper_mean,
            "paper_se": paper_se,
            "hyper": dict(self.hyper),
        }


def selection(experiment: Experiment, rows: pl.DataFrame) -> list[SelectionRow]:
    """The best setting of every method that was swept."""
    metric = experiment.metrics[0]
    found = []
    for entry in experiment.entries:
        best = best_setting(rows, experiment, entry) if entry.grid else None
        if best is not None:
            found.append(
                SelectionRow(
                    experiment.name,
                    entry.method,
                    entry.title,
                    metric,
                    best,
                    summarise(runs_of(rows, experiment, entry, best.hyper), metric.name),
                    entry.paper.get(metric.name),
                    entry,
                )
            )
    return found


def runs_of(rows: pl.DataFrame, experiment: Experiment, entry: Entry, hyper: Hyper) -> pl.DataFrame:
    """The rows of one setting, of the seeds that are reported."""
    if not rows.height:
        return rows
    mine = (pl.col("method") == entry.method) & (pl.col("hyper") == _spelled(experiment, hyper))
    return rows.filter(mine & (pl.col("seed") < SELECTION_SEED)).sort("seed")


def _spelled(experiment: Experiment, hyper: Hyper) -> str:
    """Settings as the rows spell them."""
    return json.dumps(Cell.of(experiment.name, "", hyper, 0).hyper, sort_keys=True)


@dataclass(frozen=True)
class Choice:
    """The best setting of a grid, its numbers, and whether only the coarse grid was complete.

    `peeked` is the best that could have been chosen on the test set itself, as the paper seems to
    have done.
    """

    hyper: Hyper
    summary: Summary
    coarse: bool
    peeked: Summary | None


def best_setting(rows: pl.DataFrame, experiment: Experiment, entry: Entry) -> Choice | None:
    """The setting with the best mean of the first metric on the seeds kept for choosing.

    All settings of the grid are compared on the same seeds, those that every one of them has; a
    setting with a diverged run among them is not eligible. If the best few of them were run on more
    seeds, they are finalists: they are compared once more on all seeds that they share (if all
    diverge there, the best of the others is left). More seeds of others count for nothing: they may
    be the beginning of a larger sweep.
    Where the whole grid is not complete, the coarse one decides; None while that is not either.
    """
    metric = experiment.metrics[0]
    for coarse in (False, True) if entry.coarse else (False,):
        ranked = ranking(rows, experiment, entry, coarse=coarse)
        if ranked:
            tried = _tried(rows, experiment, entry, coarse)
            least = min(len(mine) for _, mine in tried)
            more = [(hyper, mine) for hyper, mine in tried if len(mine) > least]
            on_more = (any(hyper == h for h, _ in more) for hyper, _ in ranked)
            ahead = ranked[: sum(takewhile(bool, on_more))]
            finalists = [pair for pair in more if any(pair[0] == h for h, _ in ahead)]
            if finalists:
                others = ranked[len(finalists) :]
                ranked = _ranked(finalists, metric.name, metric.better) or others
            if ranked:
                return Choice(*ranked[0], coarse, _peeked(rows, experiment, entry, coarse))
    return None


def ranking(
    rows: pl.DataFrame, experiment: Experiment, entry: Entry, *, coarse: bool = False
) -> list[tuple[Hyper, Summary]]:
    """The settings of a grid, best first, on the seeds that all of them have.

    Seeds that only some have change nothing, so a repeated sweep has the same finalists. Empty
    while the grid is not complete.
    """
    metric = experiment.metrics[0]
    return _ranked(_tried(rows, experiment, entry, coarse), metric.name, metric.better)


Tried = list[tuple[Hyper, pl.DataFrame]]


def _tried(rows: pl.DataFrame, experiment: Experiment, entry: Entry, coarse: bool) -> Tried:
    """Every setting of the grid with its rows of the seeds used for choosing, none or more."""
    if not rows.height:
        return [(hyper, rows) for hyper in entry.candidates(coarse=coarse)]
    chosen_on = (pl.col("method") == entry.method) & (pl.col("seed") >= SELECTION_SEED)
    rows = rows.filter(chosen_on).sort("seed")
    by_setting = rows.partition_by("hyper", as_dict=True)
    return [
        (hyper, by_setting.get((_spelled(experiment, {**hyper, **experiment.choosing}),), rows[:0]))
        for hyper in entry.candidates(coarse=coarse)
    ]


def _ranked(tried: Tried, metric: str, better: str) -> list[tuple[Hyper, Summary]]:
    """By mean on the seeds that all of them have, without those that lack a number there."""
    common = set.intersection(*(set(mine["seed"]) if mine.height else set() for _, mine in tried))
    if not common:
        return []
    shared = pl.col("seed").is_in(list(common))
    numbers = [(hyper, summarise(mine.filter(shared), metric)) for hyper, mine in tried]
    whole = [(h, s) for h, s in numbers if s.runs == len(common)]
    sign = 1 if better == "lower" else -1
    return sorted(whole, key=lambda pair: sign * (pair[1].mean or 0.0))


def _peeked(
    rows: pl.DataFrame, experiment: Experiment, entry: Entry, coarse: bool
) -> Summary | None:
    if experiment.peeked not in rows.columns:
        return None
    tried = _tried(rows, experiment, entry, coarse)
    ranked = _ranked(tried, experiment.peeked, experiment.metrics[0].better)
    return ranked[0][1] if ranked else None


def tried_settings(rows: pl.DataFrame, experiment: Experiment, entry: Entry) -> int:
    """How many settings of the grid have at least one run on the seeds kept for choosing."""
    return sum(mine.height > 0 for _, mine in _tried(rows, experiment, entry, coarse=False))
