"""Ridge regression with too many features for all sums of products.

Of the matrix of sums, the diagonal and a few columns are kept. The others follow as Nystroem's
approximation has it: the matrix is taken for one of low rank plus a diagonal.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, ArrayLike, Float

from elephant_nn.ridge_solver import RESOLVED

RIDGE = 1e-3
"""The evidence of an approximate matrix misleads, so the ridge has a default."""


class SketchSums(NamedTuple):
    """Sums over samples of features h, as differences from `origin`, and targets y.

    `squares_of_features` is the diagonal of the sums of products, `columns` has those of evenly
    spaced features.
    """

    origin: Float[Array, " m"]
    samples: Float[Array, ""]
    sums: Float[Array, " m"]
    squares_of_features: Float[Array, " m"]
    columns: Float[Array, "m s"]
    targets: Float[Array, " k"]
    cross: Float[Array, "m k"]


def empty_sketch(features: int, outputs: int, rank: int) -> SketchSums:
    m, k = features, outputs
    return SketchSums(
        jnp.zeros(m), jnp.zeros(()), jnp.zeros(m), jnp.zeros(m), jnp.zeros((m, rank)),
        jnp.zeros(k), jnp.zeros((m, k)),
    )  # fmt: skip


def add_to_sketch(
    sums: SketchSums, h: Array, y: Array, forgetting: ArrayLike = 1.0, weight: Array | None = None
) -> SketchSums:  # fmt: skip
    """The sums with the rows of a batch added; the first batch sets the origin."""
    origin = jnp.where(sums.samples > 0, sums.origin, h.mean(0))
    h, forgetting = h - origin, jnp.asarray(forgetting)
    samples: ArrayLike = len(h)
    root, weighted = h, y
    if weight is not None:
        samples, root = weight.sum(), jnp.sqrt(weight)[:, None] * h
        h, weighted = weight[:, None] * h, weight[:, None] * y
    return SketchSums(
        origin,
        forgetting * sums.samples + samples,
        forgetting * sums.sums + h.sum(0),
        forgetting * sums.squares_of_features + (root**2).sum(0),
        forgetting * sums.columns + root.T @ root[:, _places(*sums.columns.shape)],
        forgetting * sums.targets + weighted.sum(0),
        forgetting * sums.cross + h.T @ y,
    )


def solve_sketch(
    sums: SketchSums, ridge: ArrayLike
) -> tuple[Float[Array, "m k"], Float[Array, ""]]:
    """The weights, and the ridge relative to the mean diagonal of the centred sums of products.

    With S the kept columns, the matrix is taken for U U^T + D, where U U^T = S core^-1 S^T, the
    core is the rows of S that are also columns, and D makes the diagonal right.
    """
    n = jnp.maximum(sums.samples, 1)
    mean, places = sums.sums / n, _places(*sums.columns.shape)
    cross = sums.cross - jnp.outer(mean, sums.targets)
    diagonal = jnp.maximum(sums.squares_of_features - sums.sums * mean, 0)
    unit = diagonal.mean()
    unit = jnp.where(unit > 0, unit, 1.0)
    penalty = jnp.maximum(jnp.asarray(ridge) * unit, 1e-30)
    if not len(places):
        return cross / (diagonal + penalty)[:, None], penalty / unit
    columns = sums.columns - jnp.outer(mean, sums.sums[places])
    core = columns[places]
    jitter = RESOLVED * jnp.finfo(core.dtype).eps * jnp.linalg.norm(core) + 1e-30
    factor = jnp.linalg.cholesky(core + jitter * jnp.eye(len(core)))
    root = solve_triangular(factor, columns.T, lower=True).T
    rest = jnp.maximum(diagonal - (root**2).sum(1), 0) + penalty
    scaled = root / rest[:, None]
    inner = jnp.linalg.cholesky(jnp.eye(len(core)) + root.T @ scaled)
    weights = cross / rest[:, None] - scaled @ cho_solve((inner, True), scaled.T @ cross)
    return weights, penalty / unit


def _places(features: int, rank: int) -> np.ndarray:
    """Evenly spaced features."""
    return np.linspace(0, features - 1, rank).round().astype(int)
