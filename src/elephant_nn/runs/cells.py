"""A cell is one run: table, method, hyper-parameters, seed. Its id is a hash of exactly that."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

Value = float | int | str
Hyper = Mapping[str, Value]
Axes = Mapping[str, tuple[Value, ...]]


@dataclass(frozen=True, eq=False)
class Cell:
    """One run. `revision` counts changes of the code behind it that may change its numbers."""

    experiment: str
    method: str
    settings: tuple[tuple[str, Value], ...]
    seed: int
    revision: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.id == other.id  # 8 and 8.0 are different settings

    def __hash__(self) -> int:
        return hash(self.id)

    @classmethod
    def of(cls, experiment: str, method: str, hyper: Hyper, seed: int, revision: int = 0) -> "Cell":
        return cls(experiment, method, tuple(sorted(hyper.items())), seed, revision)

    @property
    def hyper(self) -> dict[str, Value]:
        return dict(self.settings)

    @cached_property
    def id(self) -> str:
        # Revision 0 is not part of the hash, so that ids of older rows stay valid.
        revision = (self.revision,) if self.revision else ()
        return digest(self.experiment, self.method, self.hyper, self.seed, *revision)

    @cached_property
    def setting(self) -> str:
        """The id without the seed: equal for the runs that one mean is taken over."""
        return setting_id(self.experiment, self.method, self.hyper, self.revision)


def setting_id(experiment: str, method: str, hyper: Hyper, revision: int = 0) -> str:
    return digest("setting", experiment, method, dict(hyper), revision)


def digest(*parts: object) -> str:
    """A short hash of plain values, the same on every machine."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def grid(axes: Mapping[str, Iterable[Value]]) -> Iterator[dict[str, Value]]:
    """Every combination of the axes' values, the last axis fastest."""
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))
