"""A cell is one run: experiment, method, hyper-parameters, seed. Its id is a hash of just that."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

Value = float | int | str
Hyper = Mapping[str, Value]


@dataclass(frozen=True, eq=False)
class Cell:
    """One run. Floats among the hyper-parameters are traced; whole numbers and names are static.

    Cells with equal static parts share one compiled program, however their floats differ.
    """

    experiment: str
    method: str
    settings: tuple[tuple[str, Value], ...]
    seed: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.id == other.id  # 8 and 8.0 are different settings

    def __hash__(self) -> int:
        return hash(self.id)

    @classmethod
    def of(cls, experiment: str, method: str, hyper: Hyper, seed: int) -> "Cell":
        return cls(experiment, method, tuple(sorted(hyper.items())), seed)

    @property
    def hyper(self) -> dict[str, Value]:
        return dict(self.settings)

    @property
    def floats(self) -> dict[str, float]:
        return {name: value for name, value in self.settings if isinstance(value, float)}

    @property
    def static(self) -> tuple[tuple[str, int | str], ...]:
        return tuple((name, v) for name, v in self.settings if not isinstance(v, float))

    @cached_property
    def id(self) -> str:
        return digest(self.experiment, self.method, self.hyper, self.seed)


def digest(*parts: object) -> str:
    """A short name for some plain values: the same values, the same name, on every machine."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def grid(axes: Mapping[str, Iterable[Value]]) -> Iterator[dict[str, Value]]:
    """Every combination of the axes' values, the last axis fastest."""
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def group_cells(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells that share one compiled program, together, in the order they come, each once."""
    groups: dict[str, list[Cell]] = {}
    for cell in dict.fromkeys(cells):
        shared = digest(cell.experiment, cell.method, cell.static, sorted(cell.floats))
        groups.setdefault(shared, []).append(cell)
    return list(groups.values())
