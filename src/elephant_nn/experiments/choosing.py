"""Choose settings from the rows of a sweep, on seeds and data that no table reports."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import polars as pl

from elephant_nn.experiments.spec import SELECTION_SEED, Paper, Row, Table, read_choices
from elephant_nn.experiments.summaries import Summary, present_code, runs_of, summarise
from elephant_nn.files import write_whole
from elephant_nn.runs.cells import Hyper

Tried = list[tuple[Hyper, pl.DataFrame]]
Ranking = list[tuple[Hyper, Summary]]


@dataclass(frozen=True)
class Choice:
    """The best setting of a grid and what it was chosen on.

    `on_test` is the best mean on the test set itself among the same runs, which the paper seems to
    report; it plays no part in the choice.
    """

    hyper: Hyper
    summary: Summary
    coarse: bool
    compared: int
    on_test: Summary | None


@dataclass(frozen=True)
class ChoiceRow:
    """What a sweep chose for one row, and what the choice gives on other seeds."""

    table: Table
    row: Row
    choice: Choice
    reported: Summary

    @property
    def hyper(self) -> Hyper:
        return self.choice.hyper

    @property
    def paper(self) -> Paper | None:
        return self.row.paper.get(self.table.metrics[0].name)

    def as_record(self) -> dict[str, Any]:
        """The row as plain values, as `elephant show --sweep --format json` prints it."""
        paper_mean, paper_se = self.paper or (None, None)
        choice, best, reported = self.choice, self.choice.summary, self.reported
        return {
            "experiment": self.table.name, "method": self.row.method,
            "neurons": self.hyper.get("neurons"), "metric": self.table.metrics[0].name,
            "chosen_mean": best.mean, "chosen_se": best.se, "chosen_runs": best.runs,
            "coarse": choice.coarse,
            "on_test_mean": choice.on_test.mean if choice.on_test else None,
            "mean": reported.mean, "se": reported.se, "runs": reported.runs,
            "paper_mean": paper_mean, "paper_se": paper_se, "hyper": dict(self.hyper),
        }  # fmt: skip


def choices(table: Table, rows: pl.DataFrame) -> list[ChoiceRow]:
    """The best setting of every row that was swept."""
    found = []
    for row in table.rows:
        best = choose(rows, table, row) if row.grid else None
        if best is not None:
            reported = summarise(runs_of(rows, table, row, best.hyper), table.metrics[0].name)
            found.append(ChoiceRow(table, row, best, reported))
    return found


def choose(rows: pl.DataFrame, table: Table, row: Row) -> Choice | None:
    """The setting with the best mean on the seeds that all settings of the grid have.

    A setting with a diverged run among them is not eligible. If the best few settings were run on
    more seeds, they are finalists, and are compared once more on all seeds that they share (if all
    of them diverge there, the best of the others wins). More seeds of other settings do not count:
    they may be the beginning of a larger sweep. While the whole grid is incomplete, the coarse one
    decides; None while that is incomplete too.
    """
    metric = table.metrics[0]
    for coarse in (False, True) if row.coarse else (False,):
        compared = tried(rows, table, row, coarse=coarse)
        ranked = _rank(compared, metric.name, metric.better)
        if not ranked:
            continue
        least = min(len(mine) for _, mine in compared)
        more = [(hyper, mine) for hyper, mine in compared if len(mine) > least]
        on_more = (any(hyper == h for h, _ in more) for hyper, _ in ranked)
        ahead = ranked[: sum(takewhile(bool, on_more))]
        finalists = [pair for pair in more if any(pair[0] == h for h, _ in ahead)]
        if finalists:
            ranked = _rank(finalists, metric.name, metric.better) or ranked[len(finalists) :]
        if ranked:
            on_test = _rank(compared, table.test_metric, metric.better) if table.test_metric else []
            best_on_test = on_test[0][1] if on_test else None
            return Choice(*ranked[0], coarse, len(compared), best_on_test)
    return None


def rank(rows: pl.DataFrame, table: Table, row: Row, *, coarse: bool = False) -> Ranking:
    """The settings of a grid, best first, on the seeds that all of them have.

    Seeds that only some have change nothing, so a repeated sweep has the same finalists. Empty
    while the grid is incomplete.
    """
    metric = table.metrics[0]
    return _rank(tried(rows, table, row, coarse=coarse), metric.name, metric.better)


def tried(rows: pl.DataFrame, table: Table, row: Row, *, coarse: bool = False) -> Tried:
    """Every setting of the grid with its rows on the seeds used for choosing."""
    candidates = row.candidates(coarse=coarse)
    if not rows.height:
        return [(hyper, rows) for hyper in candidates]
    chosen_on = (pl.col("method") == row.method) & (pl.col("seed") >= SELECTION_SEED)
    mine = present_code(rows.filter(chosen_on), row)
    by_setting = mine.sort("seed").partition_by("setting", as_dict=True)
    setting = lambda hyper: table.cell(row, {**hyper, **table.choosing}, 0).setting
    return [(hyper, by_setting.get((setting(hyper),), rows[:0])) for hyper in candidates]


def tried_settings(rows: pl.DataFrame, table: Table, row: Row) -> int:
    """How many settings of the grid have a run on the seeds used for choosing."""
    return sum(mine.height > 0 for _, mine in tried(rows, table, row))


def _rank(compared: Tried, metric: str, better: str) -> Ranking:
    """By mean on the seeds that all settings have, without settings that lack a number there."""
    common = set.intersection(
        *(set(mine["seed"]) if mine.height else set() for _, mine in compared)
    )
    if not common:
        return []
    shared = pl.col("seed").is_in(list(common))
    numbers = [(hyper, summarise(mine.filter(shared), metric)) for hyper, mine in compared]
    complete = [(hyper, summary) for hyper, summary in numbers if summary.runs == len(common)]
    sign = 1 if better == "lower" else -1
    return sorted(complete, key=lambda pair: sign * (pair[1].mean or 0.0))


def variant_choices(rows: pl.DataFrame, table: Table, row: Row, best: Hyper) -> list[Hyper]:
    """For each value of the row's variant that did not win, its best setting, best first."""
    if not row.compare_variants or row.variant is None:
        return []
    others: dict[Any, Hyper] = {}
    for hyper, _ in rank(rows, table, row):
        if hyper[row.variant] != best[row.variant]:
            others.setdefault(hyper[row.variant], {axis: hyper[axis] for axis in row.grid})
    return list(others.values())


def evidence(table: Table, rows: pl.DataFrame) -> list[dict[str, Any]]:
    """What sweeps chose, with what the choice is based on, for the file beside the table."""
    found = []
    for one in choices(table, rows):
        choice, grid = one.choice, one.row.grid
        variants = variant_choices(rows, table, one.row, choice.hyper)
        found.append({
            "row": one.row.key,
            "settings": {axis: choice.hyper[axis] for axis in grid},
            table.metrics[0].name: _rounded(choice.summary.mean),
            "se": _rounded(choice.summary.se),
            "seeds": choice.summary.runs,
            "compared": choice.compared,
            "of": len(one.row.candidates()),
            **({"variants": variants} if variants else {}),
        })  # fmt: skip
    return found


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def write_choices(path: Path, table: Table, rows: pl.DataFrame) -> Path:
    """Write what sweeps chose, one row per line; rows of the file that were not swept here stay."""
    kept = read_choices(path) | {entry["row"]: entry for entry in evidence(table, rows)}
    order = dict.fromkeys([*(row.key for row in table.rows if row.key in kept), *kept])
    return write_whole(path, _lines([kept[key] for key in order]).encode())


def _lines(entries: Sequence[dict[str, Any]]) -> str:
    body = ",\n".join(json.dumps(entry) for entry in entries)
    return f"[\n{body}\n]\n" if entries else "[]\n"
