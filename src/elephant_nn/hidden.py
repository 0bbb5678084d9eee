"""A random elephant layer on scaled inputs under ridge regression, in NumPy."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elephant_nn.online_ridge import OnlineRidge

Floats = NDArray[np.floating]
Waiting = tuple[Floats, Floats, Floats]
WAITING = ("waiting.x", "waiting.y", "waiting.weight")

BLOCK = 2000
"""Rows whose features are computed at once."""


@dataclass(frozen=True)
class Scaling:
    """arcsinh((x - offset) / scale): near 0 a standardisation, far outside it grows slowly.

    So later inputs that are far from the first ones, as in a stream sorted by class, stay within
    reach of the layer.
    """

    offset: Floats
    scale: Floats

    def __call__(self, x: Floats) -> Floats:
        return np.arcsinh((x - self.offset) / self.scale)


def scaling_of(x: Floats, weight: Floats) -> Scaling:
    """Mean and deviation of each column.

    The deviation is at least a tenth of the median deviation of the columns that vary: a column
    that is constant in the first samples need not be so later.
    """
    share = (weight / weight.sum())[:, None]
    mean = np.sum(share * x, 0)
    deviation = np.sqrt(np.sum(share * (x - mean) ** 2, 0))
    varying = deviation[deviation > 16 * np.finfo(x.dtype).eps * np.abs(x).max(0)]
    floor = 0.1 * np.median(varying) if len(varying) else 1.0
    return Scaling(mean.astype(x.dtype), np.maximum(deviation, floor).astype(x.dtype))


@dataclass(frozen=True)
class ElephantLayer:
    """Units 1 / (1 + |(x w + b) / a|^d)."""

    weights: Floats
    biases: Floats
    a: float
    d: float

    def pre_activations(self, x: Floats) -> Floats:
        return x @ self.weights + self.biases

    def __call__(self, x: Floats) -> Floats:
        return bell(self.pre_activations(x), self.a, self.d)


def bell(z: Floats, a: float, d: float) -> Floats:
    """1 / (1 + |z/a|^d), in place."""
    with np.errstate(over="ignore"):  # 1 / inf is exact
        z /= a
        if d == 4:
            np.square(z, out=z)
            np.square(z, out=z)
        else:
            np.power(np.abs(z, out=z), d, out=z)
        z += 1
        return np.reciprocal(z, out=z)


def random_layer(
    seed: int, inputs: int, units: int, a: float, sigma_bias: float, d: float, dtype: Any
) -> ElephantLayer:
    """The paper's initial weights and biases of an elephant layer."""
    weights = np.random.default_rng(seed).uniform(-1, 1, (inputs, units)) / np.sqrt(inputs)
    biases = np.sqrt(3) * sigma_bias * np.linspace(-1, 1, units)
    return ElephantLayer(weights.astype(dtype), biases.astype(dtype), a, d)


class StreamModel:
    """What keeps the first `warm_up` samples until they can decide the scaling.

    Until then, predictions come from a model that is made from the samples there are.
    """

    def __init__(self, inputs: int, outputs: int, warm_up: int, dtype: Any):
        self.warm_up = warm_up
        self.scaling = Scaling(np.zeros(inputs, dtype), np.ones(inputs, dtype))
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
        if together[2].sum() >= self.warm_up:
            self.ready()
            self.waiting = None

    def ready(self) -> None:
        """Make the model from waiting samples, if there are new ones."""
        if self.waiting is not None and not self._current:
            x, y, weight = self.waiting
            first = slice(int(np.searchsorted(np.cumsum(weight), self.warm_up)) + 1)
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


class RidgeModel(StreamModel):
    """Ridge regression on a random layer, and with `raw` on the scaled inputs beside it."""

    def __init__(
        self, inputs: int, outputs: int, *, units: int, a: float, sigma_bias: float, d: float,
        raw: bool, warm_up: int, ridge: float | None, forgetting: float, seed: int, dtype: Any,
    ):  # fmt: skip
        super().__init__(inputs, outputs, warm_up, dtype)
        self.a, self.sigma_bias = a, sigma_bias
        self.layer = random_layer(seed, inputs, units, a, sigma_bias, d, dtype)
        self.raw = raw
        self.head = OnlineRidge(units + raw * inputs, outputs, ridge=ridge, forgetting=forgetting)

    @property
    def counts(self) -> Floats:
        """The sum of the targets of each output: samples per class."""
        self.ready()
        return self.head.targets

    def begin(self, x: Floats, y: Floats, weight: Floats) -> None:
        super().begin(x, y, weight)
        self.head.clear()

    def learn(self, x: Floats, y: Floats, weight: Floats) -> None:
        for rows in blocks(len(x)):
            self.head.add(self.features(x[rows]), y[rows], weight[rows])

    def scores(self, x: Floats) -> NDArray[np.float64]:
        self.ready()
        solution = self.head.solution()
        found = [solution.predict(self.features(x[rows])) for rows in blocks(len(x))]
        return np.concatenate(found)

    def logits(self, scores: Floats) -> Floats:
        """Scores of classes are the target of the true class with Gaussian noise, whose variance is
        the squared error that is expected on new samples."""
        return scores / max(self.head.solution().error, 1e-6)

    def std(self, x: Floats) -> NDArray[np.float64]:
        self.ready()
        return np.concatenate([self.head.std(self.features(x[rows])) for rows in blocks(len(x))])

    def features(self, x: Floats) -> Floats:
        scaled, units = self.scaling(x), len(self.layer.biases)
        h = np.empty((len(x), units + self.raw * x.shape[1]), x.dtype)
        np.matmul(scaled, self.layer.weights, out=h[:, :units])
        h[:, :units] += self.layer.biases
        bell(h[:, :units], self.layer.a, self.layer.d)
        if self.raw:
            h[:, units:] = scaled
        return h

    def hidden(self, x: Floats) -> tuple[Floats, Floats]:
        """Pre-activations and values of the units."""
        self.ready()
        scaled = self.scaling(x)
        return self.layer.pre_activations(scaled), self.layer(scaled)

    def grow(self, outputs: int) -> None:
        super().grow(outputs)
        self.head.grow(len(self.head.sums), outputs)

    def arrays(self) -> dict[str, NDArray[Any]]:
        found = super().arrays()
        if self.waiting is None:
            found |= {"weights": self.layer.weights, "biases": self.layer.biases}
            found |= {f"sums.{name}": array for name, array in self.head.arrays().items()}
        return found

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().load(arrays)
        if self.waiting is None:
            a, d = self.layer.a, self.layer.d
            self.layer = ElephantLayer(arrays["weights"], arrays["biases"], a, d)
            self.head.load({name.removeprefix("sums."): array for name, array in arrays.items()})


def blocks(n: int) -> Iterator[slice]:
    """Slices of at most `BLOCK` rows; one empty slice if there are no rows."""
    yield from (slice(first, first + BLOCK) for first in range(0, max(n, 1), BLOCK))
