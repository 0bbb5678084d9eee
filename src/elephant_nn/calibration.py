"""Choose the width of the bells and the spread of the biases from a sample of inputs.

NumPy only, so that adapters to other libraries can use it.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Calibration:
    """Settings of an elephant layer for some inputs, and what explains them.

    Attributes:
        a: width of the bells.
        sigma_bias: spread of the biases.
        lr: learning rate for a gradient learner, or None if there is no rule for it.
        active: mean share of the units that respond to an input (values above 1/2).
        overlap: mean cosine similarity between the features of two inputs.
        distance: typical difference of a unit's pre-activations between two inputs.
        neurons: units of the layer.
        d: sharpness of the bells.
    """

    a: float
    sigma_bias: float
    lr: float | None
    active: float
    overlap: float
    distance: float
    neurons: int
    d: float

    def __str__(self) -> str:
        return (
            f"a={self.a:.3g}, sigma_bias={self.sigma_bias:.3g} for {self.neurons:,} units with "
            f"d={self.d:g}\n"
            f"{self.active:.1%} of the units respond to an input; the features of two inputs have "
            f"a cosine similarity of {self.overlap:.2f}"
        )


def calibrate(
    x: np.ndarray, neurons: int = 1000, *, d: float = 4, seed: int = 0
) -> Calibration:
    """Suggest `a` and `sigma_bias` of an elephant layer for inputs like those of `x`.

    Args:
        x: a sample of inputs exactly as the network sees them, one per row.
        neurons: units of the layer.
        d: sharpness of the bells.
        seed: for the units on which shares are measured.
    """
    x = np.asarray(x, float).reshape(len(x), -1)
    if len(x) < 2 or not np.isfinite(x).all():
        raise ValueError("calibrate: x needs two or more rows of finite numbers")
    inputs = x.shape[1]
    distance = float(np.sqrt(2 * x.var(0).sum() / (3 * inputs)))
    if distance == 0:
        raise ValueError("calibrate: all rows of x are the same")
    a, sigma_bias = 0.4 * distance, 2.4 * distance
    generator = np.random.default_rng(seed)
    rows = x[generator.permutation(len(x))[:500]]
    weights = generator.uniform(-1, 1, (inputs, neurons)) / np.sqrt(inputs)
    biases = np.sqrt(3) * sigma_bias * np.linspace(-1, 1, neurons)
    with np.errstate(over="ignore"):
        features = 1 / (1 + np.abs((rows @ weights + biases) / a) ** d)
    lengths = np.sqrt((features**2).sum(1, keepdims=True))
    unit = features / np.maximum(lengths, np.finfo(float).tiny)
    n = len(rows)
    overlap = float((np.square(unit.sum(0)).sum() - n) / (n * (n - 1)))
    active = float((features > 0.5).mean())
    return Calibration(a, sigma_bias, None, active, overlap, distance, neurons, d)
