"""What learns behind the estimators: a model that begins with the first samples."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elephant_nn.estimators.hidden import ElephantLayer, Floats, Scaling, scaling_of

Waiting = tuple[Floats, Floats, Floats]
WAITING = ("waiting.x", "waiting.y", "waiting.weight")

BLOCK = 2000
"""Rows whose features are computed at once."""


class StreamModel:
    """What keeps the first `warm_up` samples until they can decide the scaling.

    Until then, predictions come from a model that is made from the samples there are.
    """

    def __init__(self, inputs: int, outputs: int, warm_up: int, dtype: Any):
        self.warm_up = warm_up
        self.scaling = Scaling(np.zeros(inputs, dtype), np.ones(inputs, dtype))
        self.added: ElephantLayer | None = None  # units of `respread`
        self.waiting: Waiting | None = (
            np.zeros((0, inputs), dtype), np.zeros((0, outputs)), np.zeros(0),
        )  # fmt: skip
        self._current = True

    def begin(self, x: Floats, y: Floats, weight: Floats) -> None:
        """Start from nothing, with settings that fit these samples."""
        self.scaling = scaling_of(x, weight)

    def learn(self, x: Floats, y: Floats, weight: Floats) -> None:
        raise NotImplementedError

    def add(self, x: Floats, y: Floats, weight: Floats) -> None:
        if self.waiting is None:
            self.learn(x, y, weight)
            return
        new: Waiting = (x, y, weight)
        together = [np.concatenate(pair) for pair in zip(self.waiting, new, strict=True)]
        self.waiting, self._current = (together[0], together[1], together[2]), False
        if _counted(together[2]).max(initial=0) >= self.warm_up:
            self.ready()
            self.waiting = None

    def ready(self) -> None:
        """Make the model from waiting samples, if there are new ones."""
        if self.waiting is not None and not self._current:
            x, y, weight = self.waiting
            first = slice(int(np.searchsorted(_counted(weight), self.warm_up)) + 1)
            self.begin(x[first], y[first], weight[first])
            self.learn(x, y, weight)
            self._current = True

    def grow(self, outputs: int) -> None:
        """Make room for outputs whose targets were 0 so far."""
        if self.waiting is not None:
            x, y, weight = self.waiting
            self.waiting = (x, np.pad(y, ((0, 0), (0, outputs - y.shape[1]))), weight)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state besides the settings."""
        if self.waiting is None:
            return {"offset": self.scaling.offset, "scale": self.scaling.scale}
        return dict(zip(WAITING, self.waiting, strict=True))

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `arrays` gave."""
        self._current, self.waiting = False, None
        if WAITING[0] in arrays:
            self.waiting = (arrays[WAITING[0]], arrays[WAITING[1]], arrays[WAITING[2]])
        else:
            self.scaling = Scaling(arrays["offset"], arrays["scale"])


def _counted(weight: Floats) -> Floats:
    """How many samples there are so far: weight 3 counts as three, weight .1 as one."""
    return np.cumsum(np.maximum(weight, weight > 0))


def blocks(n: int) -> Iterator[slice]:
    """Slices of at most `BLOCK` rows; one empty slice if there are no rows."""
    yield from (slice(first, first + BLOCK) for first in range(0, max(n, 1), BLOCK))
