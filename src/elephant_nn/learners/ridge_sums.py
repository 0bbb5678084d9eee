"""Ridge regression from sums of products, which have no order in them.

The solution after n samples depends on the sums only, so one pass is enough. The sums are the
state; the solution is derived from them when it is needed.
"""

from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, ArrayLike, Float
from numpy.typing import NDArray

from elephant_nn.ridge_solver import EXACT, RESOLVED, solve_in_place

BLOCKS = 8
"""Of the sums of products of more than `EXACT` features, which are symmetric, this many blocks of
rows are computed from the diagonal on: a little more than half of them."""

Numbers = NDArray[np.float32]


class RidgeSums(NamedTuple):
    """Sums over samples of features h, as differences from `origin`, and targets y.

    With more than `EXACT` features only the upper triangle of `products` is meaningful. The names
    are those of `OnlineRidge`.
    """

    origin: Float[Array, " m"]
    samples: Float[Array, ""]
    sums: Float[Array, " m"]
    products: Float[Array, "m m"]
    targets: Float[Array, " k"]
    squares: Float[Array, " k"]
    cross: Float[Array, "m k"]


def empty_sums(features: int, outputs: int) -> RidgeSums:
    m, k = features, outputs
    return RidgeSums(
        jnp.zeros(m), jnp.zeros(()), jnp.zeros(m), jnp.zeros((m, m)),
        jnp.zeros(k), jnp.zeros(k), jnp.zeros((m, k)),
    )  # fmt: skip


def add_to_sums(
    sums: RidgeSums, h: Array, y: Array, forgetting: ArrayLike = 1.0, weight: Array | None = None
) -> RidgeSums:  # fmt: skip
    """The sums with the rows of a batch added; the first batch sets the origin."""
    origin = jnp.where(sums.samples > 0, sums.origin, h.mean(0))
    h, forgetting = h - origin, jnp.asarray(forgetting)
    samples: ArrayLike = len(h)
    root, weighted = h, y
    if weight is not None:
        samples, root = weight.sum(), jnp.sqrt(weight)[:, None] * h
        h, weighted = weight[:, None] * h, weight[:, None] * y
    return RidgeSums(
        origin,
        forgetting * sums.samples + samples,
        forgetting * sums.sums + h.sum(0),
        _add_products(sums.products, root, forgetting),
        forgetting * sums.targets + weighted.sum(0),
        forgetting * sums.squares + (weighted * y).sum(0),
        forgetting * sums.cross + h.T @ y,
    )


def _add_products(products: Array, h: Array, forgetting: Array) -> Array:
    m = len(products)
    if m <= EXACT:
        return forgetting * products + h.T @ h
    for first, last in pairwise(round(m * i / BLOCKS) for i in range(BLOCKS + 1)):
        block = forgetting * products[first:last, first:] + h[:, first:last].T @ h[:, first:]
        products = jax.lax.dynamic_update_slice(products, block, (first, first))
    return products


def solve_ridge(
    sums: RidgeSums, ridge: ArrayLike | None
) -> tuple[Float[Array, "m k"], Float[Array, ""]]:
    """The weights, and the ridge relative to the mean diagonal of the centred sums of products.

    More than `EXACT` features are solved by LAPACK on the host, which overwrites one copy of the
    products; the compiled program would need several.
    """
    n, m = jnp.maximum(sums.samples, 1), len(sums.products)
    mean = sums.sums / n
    cross = sums.cross - jnp.outer(mean, sums.targets)
    squares = sums.squares - sums.targets**2 / n
    diagonal = jnp.diag(sums.products) - sums.sums * mean
    unit, eps = diagonal.mean(), jnp.finfo(cross.dtype).eps
    rounding = n * jnp.mean((16 * eps * sums.origin) ** 2) + 1e-30
    unit = jnp.where(unit > rounding, unit, 1.0)  # no feature has varied so far
    if m > EXACT:
        given = jnp.nan if ridge is None else jnp.asarray(ridge, jnp.float32)
        like = jax.eval_shape(lambda: (cross, unit))
        weights, penalty = jax.pure_callback(
            _solve_on_host, like, sums.products, sums.sums, cross, squares, n, unit, given,
            vmap_method="sequential",
        )  # fmt: skip
        return weights, penalty / unit
    gram = sums.products - jnp.outer(sums.sums, mean)
    if ridge is not None:
        lowest = RESOLVED * eps * jnp.linalg.norm(gram)  # not below the largest eigenvalue
        penalty = jnp.maximum(ridge * unit, lowest)
        return cho_solve(cho_factor(gram + penalty * jnp.eye(m)), cross), penalty / unit
    values, vectors = jnp.linalg.eigh(gram)
    values, rotated = jnp.maximum(values, 0), vectors.T @ cross
    grid = jnp.maximum(unit * 10 ** jnp.linspace(-6, 2, 65), RESOLVED * eps * values[-1])
    fit = lambda r: (rotated**2 / (values + r)[:, None]).sum(0)
    volume = lambda r: jnp.log1p(values / r).sum()
    evidence = jax.vmap(lambda r: _log_evidence(fit(r), volume(r), squares, n))(grid)
    penalty = grid[jnp.argmax(evidence)]
    return vectors @ (rotated / (values + penalty)[:, None]), penalty / unit


def _log_evidence(fit: Array, volume: Array, squares: Array, n: Array) -> Array:
    """Log evidence up to a constant, with the variance of the noise profiled out."""
    varies = squares > 0
    rest = jnp.maximum(squares - fit, 1e-6 * squares)
    return -0.5 * jnp.where(varies, n * jnp.log(jnp.where(varies, rest, 1)) + volume, 0).sum()


def _solve_on_host(
    products: ArrayLike, sums: ArrayLike, cross: ArrayLike, squares: ArrayLike, n: ArrayLike,
    unit: ArrayLike, ridge: ArrayLike,
) -> tuple[Numbers, Numbers]:  # fmt: skip
    """The weights and the penalty; a ridge of NaN is chosen by the evidence."""
    gram, mean = np.array(products), np.asarray(sums) / np.asarray(n)
    for row, total in zip(gram, np.asarray(sums), strict=True):
        row -= total * mean
    chosen = None if np.isnan(ridge) else float(np.asarray(ridge))
    weights, penalty = solve_in_place(
        gram.T, np.asarray(cross), np.asarray(squares), float(np.asarray(n)),
        float(np.asarray(unit)), chosen,
    )  # fmt: skip
    return weights, np.asarray(penalty, np.float32)
