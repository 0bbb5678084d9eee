"""What a table is: a problem, its rows with their settings and grids, the paper's numbers.

Nothing here imports JAX: `elephant list` and `--help` answer at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from elephant_nn.runs.cells import Axes, Cell, Hyper, grid

SELECTION_SEED = 1000
"""Settings are chosen on seeds from here on; results are reported on seeds from 0 on."""

Paper = tuple[float, float | None]
Dashes = str | tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class Metric:
    """A number of each run. With `detail`, only `show --format json` and `csv` have it."""

    name: str
    title: str
    better: Literal["lower", "higher"]
    digits: int = 4
    detail: bool = False


@dataclass(frozen=True)
class Search:
    """How the settings of a row are found: `elephant results` runs exactly this.

    Attributes:
        seeds: runs per setting.
        coarse: whether the coarse grid is searched, because the whole grid would take days.
        finalists: how many of the best settings run on four times as many seeds before one is
            chosen: the best of many noisy means is too good to be true.
    """

    seeds: int = 1
    coarse: bool = False
    finalists: int = 0

    def __post_init__(self) -> None:
        if self.seeds < 1 or self.finalists < 0:
            raise ValueError(
                "Search: seeds must be 1 or more and finalists 0 or more, got "
                f"seeds={self.seeds}, finalists={self.finalists}"
            )


@dataclass(frozen=True)
class Row:
    """One line of a table: a method, its settings, and how they were found.

    Attributes:
        method: its name for `--methods`, part of the identity of its runs.
        build: its builder, as "module:function"; in a file for `--rows`, the function itself. The
            builder's keyword-only parameters declare the settings: `float` is traced, `int` and
            `str` are static.
        settings: what `reproduce` runs, unless a sweep has chosen otherwise.
        grid: the values that `sweep` tries for some settings.
        coarse: fewer values for some of these settings, for `sweep --coarse`.
        paper: the paper's mean and standard error of each metric it reports.
        search: how the settings are found.
        runs: the number of reported seeds; default: the table's.
        variant: a setting whose chosen value is part of the title (SR-NN's activation).
        compare_variants: whether the best settings for its other values are run and shown as well.
        variants: those settings.
        pictured: added to the settings for one more run of the first seed that records what a
            figure shows.
        evaluations: how often to evaluate, if not as often as the table says.
        line: colour and dashes in figures; default: the next ones.
        drawn: whether figures of curves show the row.
        chosen: whether a sweep has chosen the settings.
        revision: raise it when the method's numbers may change.
        source: a hash of the user's file with the builder, if it is one.
    """

    method: str
    title: str
    build: str | Callable[..., Any]
    settings: Hyper = field(default_factory=dict)
    grid: Axes = field(default_factory=dict)
    coarse: Axes = field(default_factory=dict)
    paper: Mapping[str, Paper] = field(default_factory=dict)
    search: Search | None = None
    runs: int | None = None
    variant: str | None = None
    compare_variants: bool = False
    variants: tuple[Hyper, ...] = ()
    pictured: Hyper | None = None
    evaluations: float | None = None
    line: tuple[str, Dashes] | None = None
    drawn: bool = True
    chosen: bool = False
    revision: int = 0
    source: str = ""

    @property
    def key(self) -> str:
        """The row's name within its table."""
        width = self.settings.get("neurons")
        return self.title if width is None else f"{self.title}, {width:,} neurons"

    @property
    def guessed(self) -> bool:
        """No sweep has chosen the settings yet; tables and figures mark the row."""
        return bool(self.grid) and not self.chosen

    @property
    def label(self) -> str:
        return f"{self.title} ({self.settings[self.variant]})" if self.variant else self.title

    @property
    def marked_label(self) -> str:
        return f"{self.label} *" if self.guessed else self.label

    def candidates(self, *, coarse: bool = False) -> list[Hyper]:
        """Every setting of the grid, or of the coarse one if there is one."""
        axes = {**self.grid, **self.coarse} if coarse else self.grid
        return [{**self.settings, **point} for point in grid(axes)]


@dataclass(frozen=True)
class Table:
    """A table or figure that one command regenerates.

    Attributes:
        problem: what is learned, as "module:name".
        seeds: the paper's number of runs.
        published_seeds: the number of runs in the published table, if not `seeds`.
        data: the data set it needs.
        columns: the settings and rules that the table shows.
        defaults: settings that rows of users need not repeat.
        choosing: added to the settings of runs that settings are chosen on.
        test_metric: the metric of those runs that the paper seems to choose on.
        intervals: whether to show bootstrap intervals of the mean.
        evaluations: how often runs are evaluated, in the problem's unit.
        figures: names of functions in `elephant_nn.report.figures`.
        revision: raise it when the numbers of the problem may change.
    """

    name: str
    title: str
    source: str
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    problem: str
    seeds: int = 5
    published_seeds: int | None = None
    notes: str = ""
    data: str | None = None
    columns: tuple[str, ...] = ()
    defaults: Hyper = field(default_factory=dict)
    choosing: Hyper = field(default_factory=dict)
    test_metric: str | None = None
    intervals: bool = False
    evaluations: float = 1.0
    figures: tuple[str, ...] = ()
    revision: int = 0

    @cached_property
    def methods(self) -> list[str]:
        return list(dict.fromkeys(row.method for row in self.rows))

    def cell(self, row: Row, hyper: Hyper, seed: int) -> Cell:
        return Cell.of(self.name, row.method, hyper, seed, self.revision + row.revision)

    def cells(self, row: Row, settings: Iterable[Hyper], seeds: Iterable[int]) -> list[Cell]:
        return [self.cell(row, hyper, seed) for hyper in settings for seed in seeds]

    def reproduction(self, row: Row, seeds: int) -> list[Cell]:
        """The settings of a row on the reported seeds, and what figures need."""
        cells = self.cells(row, (row.settings, *row.variants), range(seeds))
        if row.pictured and seeds:
            cells += self.cells(row, [{**row.settings, **row.pictured}], [0])
        return cells

    def choosing_cells(self, row: Row, settings: Iterable[Hyper], seeds: int) -> list[Cell]:
        """These settings on the seeds used for choosing."""
        held_out = [{**hyper, **self.choosing} for hyper in settings]
        return self.cells(row, held_out, range(SELECTION_SEED, SELECTION_SEED + seeds))


def read_choices(path: Path) -> dict[str, dict[str, Any]]:
    """By row key: what a sweep chose, and on which evidence. One row per line of the file."""
    if not path.exists():
        return {}
    return {entry["row"]: entry for entry in json.loads(path.read_text("utf-8"))}


def with_choices(rows: Sequence[Row], choices: Mapping[str, Mapping[str, Any]]) -> tuple[Row, ...]:
    """The rows with the settings that sweeps have chosen."""

    def settled(row: Row) -> Row:
        choice = choices.get(row.key)
        if choice is None:  # a guess: where nothing is given, the first value of each axis
            first = {axis: values[0] for axis, values in row.grid.items()}
            return replace(row, settings={**first, **row.settings})
        settings = {**row.settings, **choice["settings"]}
        variants = tuple({**settings, **other} for other in choice.get("variants", ()))
        return replace(row, settings=settings, variants=variants, chosen=True)

    return tuple(settled(row) for row in rows)
