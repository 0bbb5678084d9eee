"""Ridge regression from sums of products: an output layer whose solution has no order in it.

The solution after n samples depends on the sums only, so the order of samples does not matter and
one pass is enough. The sums are the state; the solution is derived from them when it is needed.
"""

import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, ArrayLike, Bool, Float

from elephant_nn.learners.learner import Batch, Contract, Learner, outside
from elephant_nn.nn.networks import Network, Params

EXACT = 2500
"""Up to this many features the evidence is evaluated on a fine grid, after one decomposition."""

RESOLVED = 32
"""Rounding errors of eigenvalues are a few times the machine's precision of the largest; a ridge of
this many times stays above them."""


class RidgeSums(NamedTuple):
    """Sums over samples of features h, as differences from `origin`, and targets y."""

    origin: Float[Array, " m"]
    samples: Float[Array, ""]
    features: Float[Array, " m"]
    products: Float[Array, "m m"]
    targets: Float[Array, " k"]
    squares: Float[Array, " k"]
    cross: Float[Array, "m k"]


class RidgeState(NamedTuple):
    params: Params
    sums: RidgeSums


class RidgeSolution(NamedTuple):
    """Predictions are `(h - centre) @ weights + offset`, for outputs with a target so far."""

    params: Params
    centre: Float[Array, " m"]
    weights: Float[Array, "m k"]
    offset: Float[Array, " k"]
    seen: Bool[Array, " k"]
    ridge: Float[Array, ""]


def ridge_head(
    network: Network, outputs: int, *, ridge: ArrayLike | None = None,
    forgetting: ArrayLike = 1.0, balanced: bool = False, raw_inputs: bool = False,
    regression: bool = False,
) -> Learner:  # fmt: skip
    r"""Ridge regression on the features of `network` as initialised, with an intercept.

    With $G$ and $C$ the sums of products of centred features with themselves and with centred
    targets (one-hot for classes), the weights are $(G + r\,g\,I)^{-1} C$, where $g$ is the mean of
    $G$'s diagonal: those of scikit-learn's `Ridge(alpha=r * g)` fitted to all samples at once, in
    any order and any batches.

    Args:
        outputs: the number of classes, or of targets with `regression`.
        ridge: r above; default: the value with the largest evidence (the marginal likelihood of a
            Gaussian linear model), computed from the same sums, so nothing is held out. Up to 2,500
            features 65 values from 1e-6 to 100 are compared, above that 8 from 1e-5 to 100. What
            float32 cannot resolve in G is a lower limit of r.
        forgetting: sums are multiplied by it before every batch; below 1, old batches fade.
        balanced: scale the targets of each class by the inverse of its frequency.
        raw_inputs: use the inputs beside the features.
        regression: targets are numbers, one column per output.

    The state has m^2 numbers for m features. It holds sums by class, as linear discriminant
    analysis does, so a stream must grant class statistics.
    """
    if outputs < 1:
        raise ValueError(f"ridge_head: outputs must be 1 or more, got {outputs}")
    if ridge is not None and outside(ridge, sys.float_info.min):
        raise ValueError(f"ridge_head: ridge must be above 0, or None to choose it, got {ridge}")
    if outside(forgetting, 1e-6, 1):
        raise ValueError(f"ridge_head: forgetting must be above 0 and at most 1, got {forgetting}")
    if balanced and regression:
        raise ValueError("ridge_head: balanced is for classes, not for regression")

    def features(params: Params, x: Array) -> Array:
        h = network.features(params, x)
        return jnp.concatenate([h, x.reshape(len(x), -1)], 1) if raw_inputs else h

    def one_column_per_output(y: Array) -> Array:
        if not regression:
            return jax.nn.one_hot(y, outputs)
        columns = y[:, None] if y.ndim == 1 else y
        if columns.shape[1:] != (outputs,):
            raise ValueError(
                f"ridge_head: made for {outputs} targets per sample, got shape {y.shape[1:]}"
            )
        return columns.astype(jnp.float32)

    def init(key: Array, x: Array) -> RidgeState:
        params = network.start(key, x)
        m = jax.eval_shape(features, params, x).shape[1]
        return RidgeState(params, RidgeSums(
            jnp.zeros(m), jnp.zeros(()), jnp.zeros(m), jnp.zeros((m, m)),
            jnp.zeros(outputs), jnp.zeros(outputs), jnp.zeros((m, outputs)),
        ))  # fmt: skip

    def update(state: RidgeState, batch: Batch) -> RidgeState:
        h, y = features(state.params, batch[0]), one_column_per_output(batch[1])
        return state._replace(sums=add_to_sums(state.sums, h, y, forgetting))

    def prepare(state: RidgeState | RidgeSolution) -> RidgeSolution:
        if isinstance(state, RidgeSolution):
            return state
        weights, relative = solve_ridge(state.sums, ridge)
        sums, n = state.sums, jnp.maximum(state.sums.samples, 1)
        mean, seen = sums.targets / n, sums.targets > 0
        if balanced:
            scale = 1 / jnp.where(seen, jnp.sum(seen) * mean, 1)
            weights, mean = weights * scale, mean * scale
        everything = jnp.ones(outputs, bool)
        return RidgeSolution(
            state.params, sums.origin + sums.features / n, weights, mean,
            everything if regression else seen, relative,
        )  # fmt: skip

    def predict(state: RidgeState | RidgeSolution, x: Array) -> Array:
        params, centre, weights, offset, seen, _ = prepare(state)
        scores = (features(params, x) - centre) @ weights + offset
        return jnp.where(seen, scores, scores.min(1, keepdims=True) - 1)

    needs = Contract(class_statistics=not regression)
    return Learner(init, update, predict, needs, prepare=prepare)


def add_to_sums(sums: RidgeSums, h: Array, y: Array, forgetting: ArrayLike = 1.0) -> RidgeSums:
    """The sums with the rows of a batch added; the first batch sets the origin."""
    origin = jnp.where(sums.samples > 0, sums.origin, h.mean(0))
    h, forgetting = h - origin, jnp.asarray(forgetting)
    return RidgeSums(
        origin,
        forgetting * sums.samples + len(h),
        forgetting * sums.features + h.sum(0),
        forgetting * sums.products + h.T @ h,
        forgetting * sums.targets + y.sum(0),
        forgetting * sums.squares + (y**2).sum(0),
        forgetting * sums.cross + h.T @ y,
    )


def solve_ridge(
    sums: RidgeSums, ridge: ArrayLike | None
) -> tuple[Float[Array, "m k"], Float[Array, ""]]:
    """The weights, and the ridge relative to the mean diagonal of the centred sums of products."""
    n = jnp.maximum(sums.samples, 1)
    mean = sums.features / n
    gram = sums.products - jnp.outer(sums.features, mean)
    cross = sums.cross - jnp.outer(mean, sums.targets)
    squares = sums.squares - sums.targets**2 / n
    m = len(gram)
    unit, eps = jnp.trace(gram) / m, jnp.finfo(gram.dtype).eps
    rounding = n * jnp.mean((16 * eps * sums.origin) ** 2) + 1e-30
    unit = jnp.where(unit > rounding, unit, 1.0)  # no feature has varied so far
    if ridge is None and m <= EXACT:
        values, vectors = jnp.linalg.eigh(gram)
        values, rotated = jnp.maximum(values, 0), vectors.T @ cross
        grid = jnp.maximum(unit * 10 ** jnp.linspace(-6, 2, 65), RESOLVED * eps * values[-1])
        fit = lambda r: (rotated**2 / (values + r)[:, None]).sum(0)
        volume = lambda r: jnp.log1p(values / r).sum()
        evidence = jax.vmap(lambda r: _evidence(fit(r), volume(r), squares, n))(grid)
        r = grid[jnp.argmax(evidence)]
        return vectors @ (rotated / (values + r)[:, None]), r / unit
    lowest = RESOLVED * eps * jnp.linalg.norm(gram)  # the norm is not below the largest eigenvalue
    if ridge is None:
        grid = jnp.maximum(unit * 10 ** jnp.linspace(-5, 2, 8), lowest)
        evidence = jax.lax.map(lambda r: _evidence(*_by_cholesky(gram, cross, r), squares, n), grid)
        r = grid[jnp.argmax(jnp.where(jnp.isnan(evidence), -jnp.inf, evidence))]
    else:
        r = jnp.maximum(ridge * unit, lowest)
    return cho_solve(cho_factor(gram + r * jnp.eye(m)), cross), r / unit


def _by_cholesky(gram: Array, cross: Array, r: Array) -> tuple[Array, Array]:
    factor = cho_factor(gram + r * jnp.eye(len(gram)))
    volume = 2 * jnp.log(jnp.diag(factor[0])).sum() - len(gram) * jnp.log(r)
    return (cross * cho_solve(factor, cross)).sum(0), volume


def _evidence(fit: Array, volume: Array, squares: Array, n: Array) -> Array:
    """Log evidence up to a constant, with the variance of the noise profiled out."""
    varies = squares > 0
    rest = jnp.maximum(squares - fit, 1e-6 * squares)
    return -0.5 * jnp.where(varies, n * jnp.log(jnp.where(varies, rest, 1)) + volume, 0).sum()
