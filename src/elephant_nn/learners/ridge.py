"""Ridge regression as an output layer: nothing is forgotten, whatever the order of samples."""

import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float

from elephant_nn.learners.learner import Batch, Contract, Learner, outside
from elephant_nn.learners.ridge_sketch import (
    RIDGE,
    SketchSums,
    add_to_sketch,
    empty_sketch,
    solve_sketch,
)
from elephant_nn.learners.ridge_sums import RidgeSums, add_to_sums, empty_sums, solve_ridge
from elephant_nn.nn.networks import Network, Params

WeightedBatch = tuple[Array, Array, Array]


class RidgeState(NamedTuple):
    params: Params
    sums: RidgeSums | SketchSums


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
    regression: bool = False, rank: int | None = None,
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
            features 65 values from 1e-6 to 100 are compared, above that powers of ten. What
            float32 cannot resolve in G is a lower limit of r.
        forgetting: sums are multiplied by it before every batch; below 1, old batches fade.
        balanced: scale the targets of each class by the inverse of its frequency.
        raw_inputs: use the inputs beside the features.
        regression: targets are numbers, one column per output.
        rank: keep the diagonal of $G$ and this many of its columns only, and take the rest for
            what a matrix of that rank plus a diagonal has there. The ridge is 1e-3 by default then.
            With 0 only the diagonal is left, which is what elastic weight consolidation keeps.

    A batch may have a third array, the weight of each sample: weight 3 counts as three samples.
    Instead of labels, targets may be rows of numbers, one per class, unless the head is balanced.

    The state has m^2 numbers for m features, or m times the rank. It holds sums by class, as linear
    discriminant analysis does, so a stream must grant class statistics.
    """
    if outputs < 1:
        raise ValueError(f"ridge_head: outputs must be 1 or more, got {outputs}")
    if ridge is not None and outside(ridge, sys.float_info.min):
        raise ValueError(f"ridge_head: ridge must be above 0, or None to choose it, got {ridge}")
    if outside(forgetting, 1e-6, 1):
        raise ValueError(f"ridge_head: forgetting must be above 0 and at most 1, got {forgetting}")
    if rank is not None and rank < 0:
        raise ValueError(f"ridge_head: rank must be 0 or more, or None for all sums, got {rank}")
    if balanced and regression:
        raise ValueError("ridge_head: balanced is for classes, not for regression")

    def features(params: Params, x: Array) -> Array:
        h = network.features(params, x)
        return jnp.concatenate([h, x.reshape(len(x), -1)], 1) if raw_inputs else h

    def one_column_per_output(y: Array) -> Array:
        if not regression and y.ndim == 1:
            return jax.nn.one_hot(y, outputs)
        if balanced:
            raise ValueError(
                "ridge_head: a balanced head learns from labels, not from numbers; in an edit of "
                "one, leave keep out"
            )
        columns = y[:, None] if y.ndim == 1 else y
        if columns.shape[1:] != (outputs,):
            raise ValueError(
                f"ridge_head: made for {outputs} targets per sample, got shape {y.shape[1:]}"
            )
        return columns.astype(jnp.float32)

    def init(key: Array, x: Array) -> RidgeState:
        params = network.start(key, x)
        m = jax.eval_shape(features, params, x).shape[1]
        if rank is None:
            return RidgeState(params, empty_sums(m, outputs))
        return RidgeState(params, empty_sketch(m, outputs, min(rank, m)))

    def update(state: RidgeState, batch: Batch | WeightedBatch) -> RidgeState:
        h, y = features(state.params, batch[0]), one_column_per_output(batch[1])
        weight = batch[2] if len(batch) == 3 else None
        if isinstance(state.sums, RidgeSums):
            return state._replace(sums=add_to_sums(state.sums, h, y, forgetting, weight))
        return state._replace(sums=add_to_sketch(state.sums, h, y, forgetting, weight))

    def prepare(state: RidgeState | RidgeSolution) -> RidgeSolution:
        if isinstance(state, RidgeSolution):
            return state
        sums, n = state.sums, jnp.maximum(state.sums.samples, 1)
        if isinstance(sums, RidgeSums):
            weights, relative = solve_ridge(sums, ridge)
        else:
            weights, relative = solve_sketch(sums, RIDGE if ridge is None else ridge)
        mean = sums.targets / n  # negative where an edit has kept points with low scores
        seen = (sums.targets != 0) | (sums.cross != 0).any(0)
        if balanced:
            scale = 1 / jnp.where(seen, jnp.sum(seen) * mean, 1)
            weights, mean = weights * scale, mean * scale
        everything = jnp.ones(outputs, bool)
        return RidgeSolution(
            state.params, sums.origin + sums.sums / n, weights, mean,
            everything if regression else seen, relative,
        )  # fmt: skip

    def predict(state: RidgeState | RidgeSolution, x: Array) -> Array:
        params, centre, weights, offset, seen, _ = prepare(state)
        scores = (features(params, x) - centre) @ weights + offset
        return jnp.where(seen, scores, scores.min(1, keepdims=True) - 1)

    needs = Contract(class_statistics=not regression)
    return Learner(init, update, predict, needs, prepare=prepare)
