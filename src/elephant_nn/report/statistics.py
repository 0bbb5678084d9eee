"""From rows to numbers: mean and standard error over seeds, and the choice of settings."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from elephant_nn.experiments.spec import SELECTION_SEED, Entry, Experiment, Metric
from elephant_nn.runs.cells import Cell, Hyper


@dataclass(frozen=True)
class Summary:
    """Mean and standard error over the runs of one setting.

    The standard error is the sample standard deviation (n - 1) over sqrt(n); None for one run.
    Diverged runs have no number: they are counted, and left out of the mean.
    """

    mean: float | None
    se: float | None
    runs: int
    diverged: int = 0


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
    passes: int | None
    task_boundary: bool | None
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
            "runs": self.ours.runs,
            "diverged": self.ours.diverged,
            "paper_mean": paper_mean,
            "paper_se": paper_se,
            "passes": self.passes,
            "task_boundary": self.task_boundary,
            "hyper": dict(self.hyper),
        }


def summarise(rows: pl.DataFrame, metric: str) -> Summary:
    values = rows.filter(pl.col("status") == "ok")[metric].drop_nulls().to_numpy()
    n = len(values)
    se = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else None
    return Summary(float(values.mean()) if n else None, se, n, rows.height - n)


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
        summarise(rows, metric.name),
        entry.paper.get(metric.name),
        hyper,
        rows["passes"][0],
        rows["task_boundary"][0],
        rivals,
    )


@dataclass(frozen=True)
class SelectionRow:
    """What a sweep chose for one method, on which numbers, and what it gives on fresh seeds."""

    experiment: str
    method: str
    title: str
    metric: Metric
    chosen_on: Summary
    fresh: Summary
    paper: tuple[float, float | None] | None
    hyper: Hyper
    swept: tuple[str, ...]

    def as_record(self) -> dict[str, Any]:
        """The row as plain values, as `elephant show --sweep --format json` prints it."""
        paper_mean, paper_se = self.paper or (None, None)
        return {
            "experiment": self.experiment,
            "method": self.method,
            "metric": self.metric.name,
            "chosen_mean": self.chosen_on.mean,
            "chosen_se": self.chosen_on.se,
            "chosen_runs": self.chosen_on.runs,
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
        best = best_setting(rows, experiment, entry)
        if best is not None:
            hyper, chosen_on = best
            fresh = summarise(runs_of(rows, experiment, entry, hyper), metric.name)
            paper = entry.paper.get(metric.name)
            found.append(
                SelectionRow(
                    experiment.name,
                    entry.method,
                    entry.title,
                    metric,
                    chosen_on,
                    fresh,
                    paper,
                    hyper,
                    tuple(entry.grid),
                )
            )
    return found


def runs_of(
    rows: pl.DataFrame, experiment: Experiment, entry: Entry, hyper: Hyper, *, reported: bool = True
) -> pl.DataFrame:
    """The rows of one setting: of the seeds that are reported, or of those used for choosing."""
    if not rows.height:
        return rows
    spelled = json.dumps(Cell.of(experiment.name, entry.method, hyper, 0).hyper, sort_keys=True)
    mine = (pl.col("method") == entry.method) & (pl.col("hyper") == spelled)
    seeds = pl.col("seed") < SELECTION_SEED
    return rows.filter(mine & (seeds if reported else ~seeds)).sort("seed")


def best_setting(
    rows: pl.DataFrame, experiment: Experiment, entry: Entry
) -> tuple[Hyper, Summary] | None:
    """The setting with the best mean of the first metric on the seeds kept for choosing.

    All settings of the grid are compared on the same seeds, those that every one of them has; a
    setting with a diverged run among them is not eligible. None while the grid is incomplete.
    """
    metric = experiment.metrics[0]
    tried = [
        (hyper, runs_of(rows, experiment, entry, hyper, reported=False))
        for hyper in entry.candidates()
    ]
    common = set.intersection(*(set(mine["seed"]) if mine.height else set() for _, mine in tried))
    compared = [
        (hyper, summarise(mine.filter(pl.col("seed").is_in(list(common))), metric.name))
        for hyper, mine in tried
        if common
    ]
    whole = [(h, s) for h, s in compared if s.mean is not None and not s.diverged]
    sign = 1 if metric.better == "lower" else -1
    return min(whole, key=lambda pair: sign * (pair[1].mean or 0.0), default=None)


def tried_settings(rows: pl.DataFrame, experiment: Experiment, entry: Entry) -> int:
    """How many settings of the grid have at least one run on the seeds kept for choosing."""
    found = (runs_of(rows, experiment, entry, h, reported=False) for h in entry.candidates())
    return sum(mine.height > 0 for mine in found)
