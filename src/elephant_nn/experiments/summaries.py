"""From rows to numbers: mean and standard error over seeds, ours beside the paper's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import bootstrap

from elephant_nn.experiments.spec import SELECTION_SEED, Metric, Paper, Row, Table
from elephant_nn.runs.cells import Hyper


@dataclass(frozen=True)
class Summary:
    """Mean and standard error over the runs of one setting.

    The standard error is the sample standard deviation (n - 1) over sqrt(n); None for one run.
    Diverged runs are counted, and left out of the mean. `interval` is the 95% percentile bootstrap
    of the mean.
    """

    mean: float | None
    se: float | None
    runs: int
    diverged: int = 0
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class TableRow:
    """One row of a table and one metric, ours beside the paper's.

    `variants` has the other values of the row's variant, such as SR-NN's activations.
    """

    table: str
    method: str
    title: str
    metric: Metric
    ours: Summary
    paper: Paper | None
    hyper: Hyper
    rules: Mapping[str, Any]
    guessed: bool
    variants: tuple[tuple[str, Summary], ...] = ()

    def as_record(self) -> dict[str, Any]:
        """The row as plain values, as `elephant show --format json` prints it."""
        paper_mean, paper_se = self.paper or (None, None)
        low, high = self.ours.interval or (None, None)
        return {
            "experiment": self.table, "method": self.method, "title": self.title,
            "neurons": self.hyper.get("neurons"), "buffer": self.hyper.get("buffer"),
            "metric": self.metric.name, "mean": self.ours.mean, "se": self.ours.se,
            "low": low, "high": high, "runs": self.ours.runs, "diverged": self.ours.diverged,
            "paper_mean": paper_mean, "paper_se": paper_se,
            **self.rules, "guessed": self.guessed, "hyper": dict(self.hyper),
        }  # fmt: skip


RULES = ("passes", "task_boundary", "class_statistics", "scaling", "cut", "buffer_bytes")


def summarise(rows: pl.DataFrame, metric: str, *, interval: bool = False) -> Summary:
    if not rows.height:
        return Summary(None, None, 0)
    ended = rows.filter(pl.col("status") == "ok")
    values = ended.get_column(metric, default=pl.Series(dtype=pl.Float64)).drop_nulls().to_numpy()
    n = len(values)
    se = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else None
    around = bootstrap_interval(values) if interval and n > 1 else None
    return Summary(float(values.mean()) if n else None, se, n, rows.height - ended.height, around)


def bootstrap_interval(values: np.ndarray) -> tuple[float, float]:
    """The 95% percentile bootstrap of the mean, 10,000 resamples, the same for the same values."""
    found = bootstrap(
        (values,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(0)
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def runs_of(rows: pl.DataFrame, table: Table, row: Row, hyper: Hyper) -> pl.DataFrame:
    """The stored rows of one setting, on the reported seeds."""
    if not rows.height:
        return rows
    mine = pl.col("setting") == table.cell(row, hyper, 0).setting
    return present_code(rows.filter(mine & (pl.col("seed") < SELECTION_SEED)), row).sort("seed")


def present_code(rows: pl.DataFrame, row: Row) -> pl.DataFrame:
    """The rows of a user's present code, if there are any: versions of it are never averaged."""
    if not row.source or "source" not in rows.columns:
        return rows
    present = rows.filter(pl.col("source") == row.source)
    return present if present.height else rows


def summarise_table(table: Table, rows: pl.DataFrame) -> list[TableRow]:
    """The table from stored rows; rows without a run are left out."""
    found = []
    for row in table.rows:
        runs = runs_of(rows, table, row, row.settings)
        if not runs.height:
            continue
        for metric in table.metrics:
            variants = tuple(
                (str(hyper[row.variant or ""]), other)
                for hyper in row.variants
                if (other := summarise(runs_of(rows, table, row, hyper), metric.name)).runs
            )
            ours = summarise(runs, metric.name, interval=table.intervals)
            rules = {rule: runs[rule][0] for rule in RULES if rule in runs.columns}
            found.append(TableRow(
                table.name, row.method, row.label, metric, ours, row.paper.get(metric.name),
                row.settings, rules, row.guessed, variants,
            ))  # fmt: skip
    return found
