"""Scale inputs by the first batch: all that a learner may know of a stream when it begins."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from elephant_nn.learners.learner import Batch, Learner


class ScaledState(NamedTuple):
    offset: Float[Array, "..."]
    scale: Float[Array, "..."]
    learner: Any

    @property
    def params(self) -> Any:
        return self.learner.params


def first_batch_scaling(learner: Learner) -> Learner:
    """The learner on standardised inputs, with mean and deviation of every feature from the first
    batch.

    The deviation of a feature is at least a tenth of the median deviation of those that vary: the
    first batch may hold one class only, and a feature that is constant there need not be so later.
    A first batch of one sample has no deviations, so inputs are only centred.
    """

    def init(key: Array, x: Array) -> ScaledState:
        deviation, rounding = x.std(0), 1e-6 * jnp.abs(x).max(0)
        floor = 0.1 * jnp.nanmedian(jnp.where(deviation > rounding, deviation, jnp.nan))
        scale = jnp.maximum(deviation, jnp.where(floor > 0, floor, 1.0))
        offset = x.mean(0)
        return ScaledState(offset, scale, learner.init(key, (x - offset) / scale))

    def update(state: ScaledState, batch: Batch) -> ScaledState:
        x, y = batch
        inner = learner.update(state.learner, ((x - state.offset) / state.scale, y))
        return state._replace(learner=inner)

    def predict(state: ScaledState, x: Array) -> Array:
        return learner.predict(state.learner, (x - state.offset) / state.scale)

    def prepare(state: ScaledState) -> ScaledState:
        return state._replace(learner=learner.prepare(state.learner))

    return replace(learner, init=init, update=update, predict=predict, prepare=prepare)
