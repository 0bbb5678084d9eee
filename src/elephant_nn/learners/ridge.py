"""Ridge regression from sums of products: an output layer that forgets nothing.

The solution after n samples depends on the sums only, so the order of samples does not matter and
one pass is enough. The sums are the state; the solution is derived from them when it is needed.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, ArrayLike, Bool, Float

from elephant_nn.learners.learner import Batch, Contract, Learner, outside
from elephant_nn.nn.networks import Network, Params

EXACT = 2500
"""Up to this many features the evidence is evaluated on a fine grid, after one decomposition."""


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
    """The sums, and the solution that belongs to them if `solved`.

    Predictions are `(h - centre) @ weights + offset`.
    """

    params: Params
    sums: RidgeSums
    centre: Float[Array, " m"]
    weights: Float[Array, "m k"]
    offset: Float[Array, " k"]
    ridge: Float[Array, ""]
    solved: Bool[Array, ""]


def ridge_head(
    network: Network, outputs: int, *, ridge: ArrayLike | None = None,
    forgetting: ArrayLike = 1.0, balanced: bool = False, raw_inputs: bool = False,
    regression: bool = False,
) -> Learner:  # fmt: skip
    r"""Ridge regression on the features of `network` as initialised, with an intercept.

    With $G$ and $C$ the sums of products of centred features with themselves and with centred
    targets (one-hot for classes), the weights are $(G + r\,\bar g\,I)^{-1} C$, where $\bar g$ is
    the mean of $G$'s diagonal. They are the weights of scikit-learn's `Ridge(alpha=r * g)` fitted
    to all samples at once.

    Args:
        outputs: the number of classes, or of targets with `regression`.
        ridge: r above; default: the value with the largest evidence (the marginal likelihood of a
            Gaussian linear model), computed from the same sums. Nothing is held out.
        forgetting: sums are multiplied by it before every batch; below 1, old batches fade.
        balanced: weight the targets of each class by the inverse of its frequency.
        raw_inputs: use the inputs beside the features.
        regression: targets are numbers, one column per output.

    The state has m^2 numbers for m features. It holds class sums, as linear discriminant analysis
    does, so a stream must grant class statistics.
    """
    if outputs < 1:
        raise ValueError(f"ridge_head: outputs must be 1 or more, got {outputs}")
    if ridge is not None and outside(ridge, 1e-12):
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
        params = network.init(key)
        m = jax.eval_shape(features, params, x).shape[1]
        sums = RidgeSums(
            jnp.zeros(m), jnp.zeros(()), jnp.zeros(m), jnp.zeros((m, m)),
            jnp.zeros(outputs), jnp.zeros(outputs), jnp.zeros((m, outputs)),
        )  # fmt: skip
        weights = jnp.zeros((m, outputs))
        nothing = jnp.zeros(())
        return RidgeState(
            params, sums, jnp.zeros(m), weights, jnp.zeros(outputs), nothing, jnp.array(False)
        )

    def update(state: RidgeState, batch: Batch) -> RidgeState:
        h, y = features(state.params, batch[0]), one_column_per_output(batch[1])
        sums = add_to_sums(state.sums, h, y, forgetting)
        return state._replace(sums=sums, solved=jnp.array(False))

    def prepare(state: RidgeState) -> RidgeState:
        return jax.lax.cond(state.solved, lambda s: s, solve, state)

    def solve(state: RidgeState) -> RidgeState:
        weights, relative = solve_ridge(state.sums, ridge, balanced)
        n = jnp.maximum(state.sums.samples, 1)
        centre = state.sums.origin + state.sums.features / n
        return state._replace(
            centre=centre, weights=weights, offset=state.sums.targets / n,
            ridge=relative, solved=jnp.array(True),
        )  # fmt: skip

    def predict(state: RidgeState, x: Array) -> Array:
        state = prepare(state)
        scores = (features(state.params, x) - state.centre) @ state.weights + state.offset
        if regression:
            return scores
        lowest = scores.min(1, keepdims=True) - 1
        return jnp.where(state.sums.targets > 0, scores, lowest)  # classes not seen yet

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
    sums: RidgeSums, ridge: ArrayLike | None, balanced: bool = False
) -> tuple[Float[Array, "m k"], Float[Array, ""]]:
    """The weights, and the ridge relative to the mean diagonal of the centred sums of products."""
    n = jnp.maximum(sums.samples, 1)
    mean = sums.features / n
    gram = sums.products - jnp.outer(sums.features, mean)
    cross = sums.cross - jnp.outer(mean, sums.targets)
    squares = sums.squares - sums.targets**2 / n
    if balanced:
        seen = jnp.sum(sums.targets > 0)
        cross = cross * n / (seen * jnp.maximum(sums.targets, 1))
    m = len(gram)
    unit = jnp.trace(gram) / m
    unit = jnp.where(unit > 1e-30, unit, 1.0)  # all features constant so far
    if ridge is None and m <= EXACT:
        values, vectors = jnp.linalg.eigh(gram)
        values, rotated = jnp.maximum(values, 0), vectors.T @ cross
        grid = unit * 10 ** jnp.linspace(-6, 2, 65)
        fit = lambda r: (rotated**2 / (values + r)[:, None]).sum(0)
        volume = lambda r: jnp.log1p(values / r).sum()
        chosen = grid[
            jnp.argmax(jax.vmap(lambda r: _evidence(fit(r), volume(r), squares, n))(grid))
        ]
        return vectors @ (rotated / (values + chosen)[:, None]), chosen / unit
    if ridge is None:
        grid = unit * 10 ** jnp.linspace(-5, 0, 11)
        evidence = jax.lax.map(lambda r: _evidence(*_by_cholesky(gram, cross, r), squares, n), grid)
        evidence = jnp.where(jnp.isfinite(evidence), evidence, -jnp.inf)
        ridge = grid[jnp.argmax(evidence)] / unit
    factor = cho_factor(gram + ridge * unit * jnp.eye(m))
    return cho_solve(factor, cross), jnp.asarray(ridge, jnp.float32)


def _by_cholesky(gram: Array, cross: Array, r: Array) -> tuple[Array, Array]:
    factor = cho_factor(gram + r * jnp.eye(len(gram)))
    volume = 2 * jnp.log(jnp.diag(factor[0])).sum() - len(gram) * jnp.log(r)
    return (cross * cho_solve(factor, cross)).sum(0), volume


def _evidence(fit: Array, volume: Array, squares: Array, n: Array) -> Array:
    """Log evidence up to a constant, with the variance of the noise profiled out."""
    varies = squares > 0
    rest = jnp.maximum(squares - fit, 1e-6 * squares)
    return -0.5 * jnp.where(varies, n * jnp.log(jnp.where(varies, rest, 1)) + volume, 0).sum()
