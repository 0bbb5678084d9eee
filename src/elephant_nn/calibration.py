"""Choose the width of the bells, the spread of the biases and a rate from a sample of inputs.

NumPy only: estimators and other frameworks use it without JAX.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

Head = Literal["gradient", "ridge"]

QUANTILES: dict[str, float] = {"gradient": 0.3, "ridge": 0.9}
"""By head: the share of differences of pre-activations that are below `a`."""
UNITS_PER_ROOT = 4.5
"""With a gradient learner, this times the square root of the width is how many units respond."""
STEP = 0.0075
"""How far, relative to `a`, the largest possible step of an adaptive optimiser moves a unit."""

_PAIRS, _UNITS, _ROWS, _MEASURED_UNITS = 1000, 200, 300, 2000


@dataclass(frozen=True)
class Calibration:
    """Settings of an elephant layer for some inputs, and what they do there.

    Attributes:
        a: half width of the bells.
        sigma_bias: spread of the biases.
        lr: a first learning rate for RMSProp or Adam; None for a ridge head, which has none.
        active: mean share of the units that respond to an input, with values above 1/2.
        overlap: mean cosine similarity between the features of two inputs.
        neurons: units of the layer.
        d: sharpness of the bells.
        head: what learns from the features: "gradient" or "ridge".
    """

    a: float
    sigma_bias: float
    lr: float | None
    active: float
    overlap: float
    neurons: int
    d: float
    head: Head

    def __str__(self) -> str:
        rate = "" if self.lr is None else f", lr={self.lr:.1g}"
        return (
            f"a={self.a:.3g}, sigma_bias={self.sigma_bias:.3g}{rate}: {self.neurons:,} units, "
            f"d={self.d:g}, {self.head} head\n"
            f"{self.active:.1%} of the units respond to an input; features of two inputs have a "
            f"cosine similarity of {self.overlap:.2f}"
        )


def calibrate(
    x: ArrayLike, neurons: int = 1000, *, d: float = 4, seed: int = 0, head: Head = "gradient"
) -> Calibration:
    r"""Suggest `a`, `sigma_bias` and a learning rate from a sample of a layer's inputs.

    `a` is a quantile of $|w \cdot (x - y)|$, the difference of a unit's pre-activations between
    two inputs: 0.3 of all differences are below it for a gradient learner, 0.9 for a ridge head.
    Narrow bells keep what one sample changes away from the others; a ridge head forgets nothing,
    so it can have wide, smooth bells.

    `sigma_bias` is $a \sqrt{m/60.75}$ for m units and a gradient learner, so that about
    $4.5 \sqrt{m}$ of them respond to an input, and `a` for a ridge head.

    `lr` is $0.0075\,a / (1 + \|x\|_1)$, with the mean of the norm: RMSProp and Adam move a weight
    by about the rate, so a step moves a pre-activation by at most 0.0075 a. A search begins there.

    Args:
        x: a sample of inputs exactly as the network sees them, one per row: a few hundred that
            show all that is to come. No labels.
        neurons: units of the layer, whose weights are from U(+-1/sqrt(inputs)).
        d: sharpness of the bells. The rule does not depend on it, `overlap` does.
        seed: of the pairs and the units on which the rule is evaluated.
        head: "gradient" for a network trained by gradient steps, "ridge" for a ridge head.
    """
    rows = _checked(x, neurons, d, head)
    generator = np.random.default_rng(seed)
    a, sigma_bias = settings(_differences(rows, generator), neurons, head)
    active, overlap = _responses(rows, a, sigma_bias, neurons, d, generator)
    norm = float(np.abs(rows.astype(float)).sum(1).mean())
    lr = STEP * a / (1 + norm) if head == "gradient" else None
    return Calibration(a, sigma_bias, lr, active, overlap, neurons, float(d), head)


def settings(differences: np.ndarray, neurons: int, head: Head) -> tuple[float, float]:
    """`a` and `sigma_bias` from differences of pre-activations between inputs, one row per pair."""
    a = float(np.quantile(np.abs(differences), QUANTILES[head]))
    if not 1e-30 < a < 1e30:  # float32 has some room left for powers and slopes
        raise ValueError(
            f"calibrate: a would be {a:.3g}, too far from 1 for float32; scale the inputs first"
        )
    return a, a * math.sqrt(neurons / 3) / UNITS_PER_ROOT if head == "gradient" else a


def responses(features: np.ndarray) -> tuple[float, float]:
    """Mean share of active units, and mean cosine similarity between the features of two inputs."""
    active = float((features > 0.5).mean())
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    directions = features / np.maximum(lengths, np.finfo(float).tiny)
    n = len(features)
    together = np.square(directions.sum(0)).sum() - np.square(directions).sum()
    return active, float(together / (n * (n - 1)))


def _checked(x: ArrayLike, neurons: int, d: float, head: str) -> np.ndarray:
    if head not in QUANTILES:
        raise ValueError(f"calibrate: head must be one of {tuple(QUANTILES)}, got {head!r}")
    if neurons < 1 or neurons != int(neurons):
        raise ValueError(f"calibrate: neurons must be a whole number above 0, got {neurons}")
    if not d > 1:
        raise ValueError(f"calibrate: d must be above 1, got {d}")
    rows = np.asarray(x)
    if rows.dtype.kind not in "buif" or rows.ndim < 2 or len(rows) < 2 or rows.size == 0:
        raise ValueError(
            "calibrate: x must be numbers in shape (samples, inputs) with two or more samples, got "
            f"{rows.dtype} in shape {rows.shape}"
        )
    rows = rows.reshape(len(rows), -1)
    bad = np.flatnonzero(~np.isfinite(rows).all(1))
    if len(bad):
        raise ValueError(
            f"calibrate: x has NaN or infinity in row {bad[0]}; drop or fill such rows first"
        )
    return rows


def _weights(inputs: int, units: int, generator: np.random.Generator) -> np.ndarray:
    return generator.uniform(-1, 1, (inputs, units)) / math.sqrt(inputs)


def _differences(rows: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Differences of pre-activations over pairs of different inputs."""
    first, second = generator.integers(len(rows), size=(2, _PAIRS))
    apart = rows[first].astype(float) - rows[second]
    apart = apart[apart.any(1)]
    if not len(apart):
        raise ValueError("calibrate: all rows of x are the same; give a sample of different inputs")
    return apart @ _weights(rows.shape[1], _UNITS, generator)


def _responses(
    rows: np.ndarray, a: float, sigma_bias: float, neurons: int, d: float,
    generator: np.random.Generator,
) -> tuple[float, float]:  # fmt: skip
    some = rows[generator.permutation(len(rows))[:_ROWS]].astype(float)
    units = min(neurons, _MEASURED_UNITS)
    biases = math.sqrt(3) * sigma_bias * np.linspace(-1, 1, units)
    z = some @ _weights(rows.shape[1], units, generator) + biases
    with np.errstate(over="ignore"):
        features = 1 / (1 + np.abs(z / a) ** d)
    return responses(features)
