"""FlyModel (Shen et al. 2021): a fixed sparse expansion and one Hebbian weight vector per class."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from elephant_nn.learners.learner import Batch, Contract, Learner
from elephant_nn.learners.winners import kth_largest
from elephant_nn.nn.networks import flatten_inputs


class FlyState(NamedTuple):
    projection: Float[Array, "inputs units"]
    weights: Float[Array, "classes units"]
    seen: Float[Array, " classes"]


def flymodel(
    inputs: int, neurons: int, classes: int,
    *, per_unit: int | None = None, lr: ArrayLike = 0.005, active: float = 0.01,
) -> Learner:  # fmt: skip
    """Each unit sums `per_unit` random inputs; the fraction `active` of largest units stays active.

    By default a unit sums 64 inputs, or a quarter of the inputs if there are fewer than 256.

    The active units of a sample, scaled to a maximum of 1, are added with rate `lr` to the weights
    of its class, which are capped at 1. Nothing else changes, so the order of samples does not
    matter and task boundaries are not needed, contrary to the paper's table. The weights are a
    statistic of each class. Classes that were not seen are never predicted.
    """
    if neurons < 1:
        raise ValueError(f"flymodel: neurons must be 1 or more, got {neurons}")
    per_unit = min(64, max(1, inputs // 4)) if per_unit is None else per_unit
    if not 1 <= per_unit < max(inputs, 2):
        raise ValueError(
            f"flymodel: per_unit must be between 1 and {inputs - 1}, got {per_unit}; units "
            "that sum all inputs are identical"
        )
    if not 0 < active <= 1:
        raise ValueError(f"flymodel: active must be a fraction above 0, up to 1, got {active}")
    # The units at or above the interpolated (1 - active) quantile.
    winners = neurons - math.ceil((1 - active) * (neurons - 1))

    def init(key: Array, x: Array) -> FlyState:
        del x
        chosen = lambda k: jnp.zeros(inputs).at[jax.random.permutation(k, inputs)[:per_unit]].set(1)
        projection = jax.lax.map(chosen, jax.random.split(key, neurons), batch_size=1000).T
        return FlyState(projection, jnp.zeros((classes, neurons)), jnp.zeros(classes))

    def activity(projection: Array, x: Array) -> Array:
        x = flatten_inputs(x, inputs, "flymodel")
        low, high = x.min(1, keepdims=True), x.max(1, keepdims=True)
        scaled = (x - low) / jnp.where(high > low, high - low, 1.0)
        z = scaled @ projection
        z = jnp.where(z >= kth_largest(z, winners), z, 0.0)
        return z / jnp.maximum(z.max(1, keepdims=True), 1e-12)

    def update(state: FlyState, batch: Batch) -> FlyState:
        x, y = batch
        labels = jax.nn.one_hot(y, classes)
        added = lr * labels.T @ activity(state.projection, x)
        weights = jnp.minimum(state.weights + added, 1.0)
        return FlyState(state.projection, weights, jnp.maximum(state.seen, labels.max(0)))

    def predict(state: FlyState, x: Array) -> Array:
        scores = activity(state.projection, x) @ state.weights.T
        return jnp.where(state.seen > 0, scores, -1.0)  # scores are never negative

    return Learner(init, update, predict, Contract(class_statistics=True))
