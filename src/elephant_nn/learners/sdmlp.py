"""SDMLP (Bricken et al. 2023): a sparse, non-negative network that learns over many passes."""

import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, ArrayLike, Float, Int

from elephant_nn.learners.gradient import cross_entropy
from elephant_nn.learners.learner import Batch, Contract, Learner, outside
from elephant_nn.learners.winners import kth_largest
from elephant_nn.nn.activations import fan_in_uniform
from elephant_nn.nn.networks import flatten_inputs

Weights = tuple[Array, Array]


class SdmlpState(NamedTuple):
    weights: Weights
    counts: Int[Array, " units"]


def top_k_inhibited(
    values: Float[Array, "n units"], k: int, inhibition: Float[Array, " units"]
) -> Float[Array, "n units"]:
    """Subtract each row's (k+1)-th largest value, times `inhibition`, and rectify.

    With an inhibition of 1 the k largest values stay; with -1 all values grow.
    """
    return jax.nn.relu(values - inhibition * kth_largest(values, k + 1))


def sdmlp(
    inputs: int, neurons: int, classes: int,
    *, k: int = 10, switch: ArrayLike = 5e6, lr: ArrayLike = 0.05, passes: int = 500,
) -> Learner:  # fmt: skip
    """Top-k units over non-negative inputs and weights of unit length; plain SGD.

    Every unit starts excitatory, so that all units learn, and becomes inhibitory as it is used (the
    GABA switch): its inhibition goes from -1 to 1 while it is active for `switch` samples. After
    each step weights are made non-negative, and hidden weights are scaled to unit length. The
    gradient is clipped to norm 1.

    The learner needs `passes` passes per task; the published numbers took 500. Unlike in the
    published code, prediction does not advance the counters.
    """
    if not 1 <= k < neurons:
        raise ValueError(f"sdmlp: k must be between 1 and {neurons - 1}, below neurons, got {k}")
    if passes < 1:
        raise ValueError(f"sdmlp: passes must be 1 or more, got {passes}")
    if outside(switch, sys.float_info.min):
        raise ValueError(f"sdmlp: switch must be a number of samples above 0, got {switch}")
    if outside(lr, 0):
        raise ValueError(f"sdmlp: lr must be 0 or more, got {lr}")
    weight = fan_in_uniform()

    def init(key: Array, x: Array) -> SdmlpState:
        del x
        hidden_key, output_key = jax.random.split(key)
        hidden = weight(hidden_key, (inputs, neurons), jnp.float32)
        output = weight(output_key, (neurons, classes), jnp.float32)
        return SdmlpState(_project((hidden, output)), jnp.zeros(neurons, jnp.int32))

    def active(weights: Weights, counts: Array, x: Array) -> Array:
        x = jax.nn.relu(flatten_inputs(x, inputs, "sdmlp"))
        x = x / jnp.maximum(jnp.linalg.norm(x, axis=1, keepdims=True), 1e-12)
        inhibition = jnp.clip(2.0 * counts / switch - 1.0, -1.0, 1.0)
        return top_k_inhibited(jax.nn.relu(x @ weights[0]), k, inhibition)

    def objective(weights: Weights, counts: Array, batch: Batch) -> tuple[Array, Array]:
        h = active(weights, counts, batch[0])
        return cross_entropy(h @ weights[1], batch[1]), h

    def update(state: SdmlpState, batch: Batch) -> SdmlpState:
        slopes, h = jax.grad(objective, has_aux=True)(state.weights, state.counts, batch)
        rate = lr / jnp.maximum(jnp.sqrt(sum(jnp.sum(slope**2) for slope in slopes)), 1.0)
        hidden, output = (w - rate * slope for w, slope in zip(state.weights, slopes, strict=True))
        used = jnp.sum(h > 0, axis=0, dtype=jnp.int32)
        full = jnp.asarray(2**30, jnp.int32)  # far above any switch, so the count never overflows
        return SdmlpState(_project((hidden, output)), jnp.minimum(state.counts, full - used) + used)

    def predict(state: SdmlpState, x: Array) -> Array:
        return active(state.weights, state.counts, x) @ state.weights[1]

    return Learner(init, update, predict, Contract(passes=passes))


def _project(weights: Weights) -> Weights:
    """Make weights non-negative and the incoming weights of every hidden unit of unit length."""
    hidden, output = optax.projections.projection_non_negative(weights)
    length = jnp.linalg.norm(hidden, axis=0, keepdims=True)
    return hidden / jnp.maximum(length, 1e-12), output
