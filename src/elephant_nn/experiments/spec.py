"""What an experiment is: the rows of a table, their settings and grids, the paper's numbers.

Nothing here imports JAX: `elephant list` and `--help` answer at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from elephant_nn.runs.cells import Cell, Hyper, Value, grid

if TYPE_CHECKING:
    from elephant_nn.runs.program import Program

SELECTION_SEED = 1000
"""Settings are chosen on seeds from here on; results are reported on seeds from 0 on."""


@dataclass(frozen=True)
class Metric:
    name: str
    title: str
    better: Literal["lower", "higher"]
    digits: int = 4
    detail: bool = False
    """Left out of tables for reading; `show --format json` and `csv` have it."""


@dataclass(frozen=True)
class Entry:
    """One row of a table.

    Attributes:
        settings: the tuned hyper-parameters that `reproduce` runs.
        grid: the axes that `sweep` varies around them: the paper's.
        paper: the paper's mean and standard error for each metric it reports.
        variant: an axis of the grid of which the table names the winner (SR-NN's activation).
        rivals: the tuned settings of the variants that did not win; run and shown as well.
        pictured: added to the settings for one more run of the first seed, that records what a
            figure shows.
        coarse: fewer values for some axes of the grid, for `sweep --coarse`: what hours allow.
        guessed: no sweep has chosen the settings yet; tables and figures mark the row.
    """

    method: str
    title: str
    settings: Hyper
    grid: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    paper: Mapping[str, tuple[float, float | None]] = field(default_factory=dict)
    variant: str | None = None
    rivals: tuple[Hyper, ...] = ()
    pictured: Hyper | None = None
    coarse: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    guessed: bool = False

    @property
    def label(self) -> str:
        return f"{self.title} ({self.settings[self.variant]})" if self.variant else self.title

    @property
    def marked_label(self) -> str:
        return f"{self.label} *" if self.guessed else self.label

    def candidates(self, *, coarse: bool = False) -> list[Hyper]:
        """Every setting of the grid, or of the coarse one where there is one."""
        axes = {**self.grid, **self.coarse} if coarse else self.grid
        return [{**self.settings, **point} for point in grid(axes)]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper that one command regenerates.

    `program(method, static)` builds the compiled run; `lanes(cell)` says how many runs like that
    cell go side by side; `seeds` is the paper's number of runs. `data` names the data set it needs,
    `columns` the settings and rules that its table shows. `choosing` is added to the settings of
    runs that settings are chosen on; `peeked` is the metric of those runs that the paper chose on.
    `intervals`: its table shows bootstrap intervals of the mean too.
    """

    name: str
    title: str
    source: str
    metrics: tuple[Metric, ...]
    entries: tuple[Entry, ...]
    program: Callable[[str, Mapping[str, Any]], Program]
    lanes: Callable[[Cell], int]
    seeds: int = 5
    notes: str = ""
    data: str | None = None
    columns: tuple[str, ...] = ()
    choosing: Hyper = field(default_factory=dict)
    peeked: str | None = None
    intervals: bool = False

    def cells(self, entry: Entry, settings: Iterable[Hyper], seeds: Iterable[int]) -> list[Cell]:
        return [
            Cell.of(self.name, entry.method, hyper, seed) for hyper in settings for seed in seeds
        ]

    def reproduction(self, entries: Iterable[Entry], seeds: int) -> list[Cell]:
        """The tuned settings of some rows, on the reported seeds, and what the figures need."""
        cells = []
        for entry in entries:
            cells += self.cells(entry, (entry.settings, *entry.rivals), range(seeds))
            if entry.pictured:
                cells += self.cells(entry, [{**entry.settings, **entry.pictured}], [0])
        return cells

    def search(self, entries: Iterable[Entry], seeds: int, *, coarse: bool = False) -> list[Cell]:
        """The whole grid of some rows, or the coarse one, on the seeds kept for choosing."""
        chosen_on = range(SELECTION_SEED, SELECTION_SEED + seeds)
        return [
            cell
            for entry in entries
            for hyper in entry.candidates(coarse=coarse)
            for cell in self.cells(entry, [{**hyper, **self.choosing}], chosen_on)
        ]
