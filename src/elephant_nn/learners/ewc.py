"""Elastic weight consolidation: with every batch as a task of its own, and told where tasks end."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, ArrayLike

from elephant_nn.learners.gradient import Loss, check_steps, squared_error
from elephant_nn.learners.learner import Batch, Contract, Learner, outside
from elephant_nn.nn.networks import Network, Params, trained

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
    check_steps("streaming_ewc", optimiser, updates)
    _check_spring("streaming_ewc", weight, decay)
    steps = _steps(network, optimiser, loss, weight, updates)

    def init(key: Array) -> EwcState:
        return _free(network.init(key), optimiser)

    def update(state: EwcState, batch: Batch) -> EwcState:
        state, square = steps(state, batch)
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


class ToldEwcState(NamedTuple):
    ewc: EwcState
    gathered: Params
    batches: Array


def online_ewc(
    network: Network,
    optimiser: optax.GradientTransformation,
    loss: Loss = squared_error,
    *,
    weight: ArrayLike,
    decay: ArrayLike = 1.0,
    ends: Sequence[int],
    updates: int = 1,
) -> Learner:
    r"""Online EWC (Schwarz et al., 2018), which is told where tasks end; no strict stream takes it.

    The spring of `streaming_ewc`, but held for a whole task at the parameters that the task before
    left. Its stiffness stays the same too: when a task ends, $F \leftarrow \gamma F + \sum g^2$,
    summed over the task's batches. Unlike the published form, which looks at the task once more
    with the parameters it left, these are the gradients as they were when each was learned.

    Args:
        ends: how many batches had been shown when each task ended: `Tasks.ends`.
    """
    check_steps("online_ewc", optimiser, updates)
    _check_spring("online_ewc", weight, decay)
    if not any(end > 0 for end in ends) or any(end != int(end) or end < 0 for end in ends):
        raise ValueError(
            "online_ewc: ends must say after how many batches each task ended, as Tasks.ends does, "
            f"got {tuple(ends)}"
        )
    steps = _steps(network, optimiser, loss, weight, updates)
    boundaries = jnp.array(ends, jnp.int32)

    def init(key: Array) -> ToldEwcState:
        ewc = _free(network.init(key), optimiser)
        return ToldEwcState(ewc, ewc.fisher, jnp.zeros((), jnp.int32))

    def update(state: ToldEwcState, batch: Batch) -> ToldEwcState:
        ewc, square = steps(state.ewc, batch)
        gathered = jax.tree.map(jnp.add, state.gathered, square)
        batches = state.batches + 1

        def consolidate() -> tuple[Params, Params, Params]:
            fisher = jax.tree.map(lambda f, more: decay * f + more, ewc.fisher, gathered)
            return fisher, ewc.params, jax.tree.map(jnp.zeros_like, gathered)

        fisher, anchor, gathered = jax.lax.cond(
            (batches == boundaries).any(), consolidate, lambda: (ewc.fisher, ewc.anchor, gathered)
        )
        return ToldEwcState(ewc._replace(fisher=fisher, anchor=anchor), gathered, batches)

    def predict(state: ToldEwcState, x: Array) -> Array:
        return network.apply(state.ewc.params, x)

    return Learner(init, update, predict, needs=Contract(task_boundary=True))


def _check_spring(name: str, weight: ArrayLike, decay: ArrayLike) -> None:
    if outside(weight, 0, sys.float_info.max):
        raise ValueError(f"{name}: weight must be 0 or more, and finite, got {weight}")
    if outside(decay, 0, 1):
        raise ValueError(f"{name}: decay must be between 0 and 1, got {decay}")


def _free(params: Params, optimiser: optax.GradientTransformation) -> EwcState:
    """The start: a spring without stiffness."""
    zeros = jax.tree.map(jnp.zeros_like, params)
    return EwcState(params, optimiser.init(params), zeros, jax.tree.map(jnp.copy, params))


def _steps(
    network: Network,
    optimiser: optax.GradientTransformation,
    loss: Loss,
    weight: ArrayLike,
    updates: int,
) -> Callable[[EwcState, Batch], tuple[EwcState, Params]]:
    """A batch's gradient steps under the spring; also the squared slope of its loss at the last."""

    def objective(params: Params, batch: Batch) -> tuple[Array, Params]:
        x, y = batch
        h, observed = network.observe(params, x)
        return loss(network.head(params, h), y), observed

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

    def steps(state: EwcState, batch: Batch) -> tuple[EwcState, Params]:
        for _ in range(updates):
            state, slope = step(state, batch)
        return state, jax.tree.map(jnp.square, slope)

    return steps
