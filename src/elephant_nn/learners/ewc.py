"""Streaming EWC: elastic weight consolidation with every batch as a task of its own."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, ArrayLike

from elephant_nn.learners.gradient import Loss, squared_error
from elephant_nn.learners.learner import Batch, Learner
from elephant_nn.networks import Network, Params, trained

ANCHORS = ("previous", "fisher", "average")


class EwcState(NamedTuple):
    params: Params
    optimiser: Any
    fisher: Params
    anchor: Params


def streaming_ewc(
    network: Network,
    optimiser: optax.GradientTransformation,
    loss: Loss = squared_error,
    *,
    weight: ArrayLike,
    decay: ArrayLike,
    anchor: str = "fisher",
    updates: int = 1,
) -> Learner:
    r"""Gradient steps with a spring to an anchor, stiff where past batches had large gradients.

    Each of the `updates` steps on a batch follows the gradient of
    $L(\theta) + \frac\lambda2 \sum_i F_i (\theta_i - \theta^*_i)^2$; then
    $F \leftarrow \gamma F + g^2$, with $g$ the gradient of the batch's mean loss at the last of
    these steps (it is at hand, a second look at the batch is not), and the anchor
    $\theta^*$ moves. `weight` is $\lambda$ and `decay` is $\gamma$.

    Args:
        loss: `loss(outputs, targets)`, a scalar.
        anchor: where the spring is held.
            "previous": at the parameters that the batch before left, as Online EWC says when every
            batch is a task. The first step on a batch starts at the anchor, where the spring has no
            force: with `updates=1` this is exactly the network without EWC.
            "fisher": at the mean of all past parameters, weighted by their share of $F$; the
            recursion that a diagonal Gaussian approximation of the past gives.
            "average": at the running average of the parameters, with the same decay.
    """
    if anchor not in ANCHORS:
        raise ValueError(f"streaming_ewc: anchor must be one of {ANCHORS}, got {anchor!r}")
    if updates < 1:
        raise ValueError(f"streaming_ewc: updates must be 1 or more, got {updates}")
    if isinstance(weight, int | float) and not weight >= 0:
        raise ValueError(f"streaming_ewc: weight must be 0 or more, got {weight}")
    if isinstance(decay, int | float) and not 0 <= decay <= 1:
        raise ValueError(f"streaming_ewc: decay must be between 0 and 1, got {decay}")

    def objective(params: Params, batch: Batch) -> tuple[Array, Params]:
        x, y = batch
        h, observed = network.observe(params, x)
        return loss(network.head(params, h), y), observed

    def init(key: Array) -> EwcState:
        params = network.init(key)
        zeros = jax.tree.map(jnp.zeros_like, params)
        return EwcState(params, optimiser.init(params), zeros, jax.tree.map(jnp.copy, params))

    def step(state: EwcState, batch: Batch) -> tuple[EwcState, Params]:
        slope, observed = jax.grad(objective, has_aux=True)(state.params, batch)
        pulled = jax.tree.map(
            lambda g, f, p, held: g + weight * f * (p - held),
            slope,
            state.fisher,
            state.params,
            state.anchor,
        )
        change, optimiser_state = optimiser.update(pulled, state.optimiser, state.params)
        params = optax.apply_updates(observed, trained(change))
        return state._replace(params=params, optimiser=optimiser_state), slope

    def update(state: EwcState, batch: Batch) -> EwcState:
        for _ in range(updates):
            state, slope = step(state, batch)
        square = jax.tree.map(jnp.square, slope)
        fisher = jax.tree.map(lambda f, s: decay * f + s, state.fisher, square)
        return state._replace(fisher=fisher, anchor=moved_anchor(state, square, fisher))

    def moved_anchor(state: EwcState, square: Params, fisher: Params) -> Params:
        if anchor == "previous":
            return state.params
        if anchor == "average":
            mix = lambda held, p: decay * held + (1 - jnp.asarray(decay)) * p
            return jax.tree.map(mix, state.anchor, state.params)
        share = jax.tree.map(lambda s, f: jnp.where(f > 0, s / f, 1.0), square, fisher)
        move = lambda held, p, part: held + part * (p - held)
        return jax.tree.map(move, state.anchor, state.params, share)

    def predict(state: EwcState, x: Array) -> Array:
        return network.apply(state.params, x)

    return Learner(init, update, predict)
