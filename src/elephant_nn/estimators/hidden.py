"""Scaling by the first samples, and random elephant layers, in NumPy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


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


def layer_at(
    x: Floats, units: int, a: float, d: float, seed: int, *, quiet: float = 0.05
) -> ElephantLayer:
    """Random units that respond to these inputs, which are far from 0, and hardly near 0.

    Each has its own direction; its bell is as wide as the inputs are spread in this direction and
    is centred on one of them. Of many candidates those are chosen that respond least to 0.
    """
    rng, inputs = np.random.default_rng(seed), x.shape[1]
    weights = rng.uniform(-1, 1, (inputs, 20 * units)) / np.sqrt(inputs)
    some = x[rng.integers(len(x), size=(2, 500))].astype(float)
    spread = np.quantile(np.abs((some[0] - some[1]) @ weights), 0.9, axis=0)
    centres = np.sum(x[rng.integers(len(x), size=20 * units)] * weights.T, 1)
    found = np.flatnonzero(spread > 1e-6 * np.abs(centres))
    ratio = np.abs(centres[found]) / spread[found]
    best = found[np.argsort(-ratio)[:units]]
    silent = np.abs(centres[best]) > (1 / quiet) ** (1 / d) * spread[best]
    if len(best) < units or not silent.all():
        raise ValueError(
            "respread needs inputs that are far from the first samples and differ from each other: "
            f"only {silent.sum()} of {units} units would respond to them alone"
        )
    weights = weights[:, best] * (a / spread[best])
    return ElephantLayer(
        weights.astype(x.dtype), (-centres[best] * a / spread[best]).astype(x.dtype), a, d
    )
