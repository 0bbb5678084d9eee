"""Elastic weight consolidation: with every batch as a task, and with known task boundaries."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, ArrayLike

from elephant_nn.learners.gradient import Loss, check_steps, squared_error
from elephant_nn.learners.learner import Batch, Contract, Learner, outside
from elephant_nn.nn.networks import Network, Params, without_running_statistics

ANCHORS = ("previous", "fisher", "average")


class EwcState(NamedTuple):
    params: Params
    optimiser: Any
    fisher: Params
    anchor: Params


def streaming_ewc(
    network: Network, optimiser: optax.GradientTransformation, loss: Loss = squared_error,
    *, weight: ArrayLike, decay: ArrayLike, anchor: str = "fisher", updates: int = 1,
) -> Learner:  # fmt: skip
    r"""Gradient steps with a quadratic penalty, stiff where past batches had large gradients.

    Each of the `updates` steps on a batch follows the gradient of
    $L(\theta) + \frac\lambda2 \sum_i F_i (\theta_i - \theta^*_i)^2$; then
    $F \leftarrow \gamma F + g^2$, with $g$ the gradient of the batch's mean loss at the last of
    these steps, and the anchor $\theta^*$ moves. `weight` is $\lambda$ and `decay` is $\gamma$.

    Args:
        loss: `loss(outputs, targets)`, a scalar.
        anchor: the centre of the penalty.
            "previous": the parameters after the previous batch, as in Online EWC when every batch
            is a task. The first step on a batch starts at the anchor, where the penalty has no
            gradient: with `updates=1` this is exactly the network without EWC.
            "fisher": the mean of all past parameters, weighted by their fraction of $F$; the
            recursion of a diagonal Gaussian approximation of the past.
            "average": the running average of the parameters, with the same decay.
    """
    if anchor not in ANCHORS:
        raise ValueError(f"streaming_ewc: anchor must be one of {ANCHORS}, got {anchor!r}")
    check_steps("streaming_ewc", optimiser, updates)
    _check_penalty("streaming_ewc", weight, decay)
    steps = _steps(network, optimiser, loss, weight, updates)

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
        fraction = jax.tree.map(lambda s, f: jnp.where(f > 0, s / f, 1.0), square, fisher)
        move = lambda held, p, part: held + part * (p - held)
        return jax.tree.map(move, state.anchor, state.params, fraction)

    init = lambda key, x: _initial(network.start(key, x), optimiser)
    predict = lambda state, x: network.apply(state.params, x)
    return Learner(init, update, predict, network=network)


class OnlineEwcState(NamedTuple):
    ewc: EwcState
    gathered: Params
    batches: Array


def online_ewc(
    network: Network, optimiser: optax.GradientTransformation, loss: Loss = squared_error,
    *, weight: ArrayLike, decay: ArrayLike = 1.0, ends: Sequence[int], updates: int = 1,
) -> Learner:  # fmt: skip
    r"""Online EWC (Schwarz et al., 2018), which needs task boundaries.

    The penalty of `streaming_ewc` with an anchor that stays for a whole task: the parameters after
    the previous task. The stiffness stays too: when a task ends,
    $F \leftarrow \gamma F + \sum g^2$, summed over the task's batches. The published form computes
    these gradients in a second pass with the final parameters; here they are those of the updates.

    Args:
        ends: the number of batches seen when each task ends: `Tasks.ends`.
    """
    check_steps("online_ewc", optimiser, updates)
    _check_penalty("online_ewc", weight, decay)
    if not any(end > 0 for end in ends) or any(end != int(end) or end < 0 for end in ends):
        raise ValueError(
            "online_ewc: ends must list the number of batches after which each task ends, like "
            f"Tasks.ends, got {tuple(ends)}"
        )
    steps = _steps(network, optimiser, loss, weight, updates)
    boundaries = jnp.array(ends, jnp.int32)

    def init(key: Array, x: Array) -> OnlineEwcState:
        ewc = _initial(network.start(key, x), optimiser)
        return OnlineEwcState(ewc, ewc.fisher, jnp.zeros((), jnp.int32))

    def update(state: OnlineEwcState, batch: Batch) -> OnlineEwcState:
        ewc, square = steps(state.ewc, batch)
        gathered = jax.tree.map(jnp.add, state.gathered, square)
        batches = state.batches + 1

        def consolidate() -> tuple[Params, Params, Params]:
            fisher = jax.tree.map(lambda f, more: decay * f + more, ewc.fisher, gathered)
            return fisher, ewc.params, jax.tree.map(jnp.zeros_like, gathered)

        fisher, anchor, gathered = jax.lax.cond(
            (batches == boundaries).any(), consolidate, lambda: (ewc.fisher, ewc.anchor, gathered)
        )
        return OnlineEwcState(ewc._replace(fisher=fisher, anchor=anchor), gathered, batches)

    predict = lambda state, x: network.apply(state.ewc.params, x)
    return Learner(init, update, predict, Contract(task_boundary=True))


def _check_penalty(name: str, weight: ArrayLike, decay: ArrayLike) -> None:
    if outside(weight, 0, sys.float_info.max):
        raise ValueError(f"{name}: weight must be 0 or more, and finite, got {weight}")
    if outside(decay, 0, 1):
        raise ValueError(f"{name}: decay must be between 0 and 1, got {decay}")


def _initial(params: Params, optimiser: optax.GradientTransformation) -> EwcState:
    """The initial state: no stiffness."""
    zeros = jax.tree.map(jnp.zeros_like, params)
    return EwcState(params, optimiser.init(params), zeros, jax.tree.map(jnp.copy, params))


def _steps(
    network: Network, optimiser: optax.GradientTransformation, loss: Loss, weight: ArrayLike,
    updates: int,
) -> Callable[[EwcState, Batch], tuple[EwcState, Params]]:  # fmt: skip
    """The gradient steps on a batch, and the squared gradient of its loss at the last step."""

    def objective(params: Params, batch: Batch) -> tuple[Array, Params]:
        x, y = batch
        h, observed = network.observe(params, x)
        return loss(network.head(params, h), y), observed

    def step(state: EwcState, batch: Batch) -> tuple[EwcState, Params]:
        slope, observed = jax.grad(objective, has_aux=True)(state.params, batch)
        pull = lambda g, f, p, held: g + weight * f * (p - held)
        pulled = jax.tree.map(pull, slope, state.fisher, state.params, state.anchor)
        change, optimiser_state = optimiser.update(pulled, state.optimiser, state.params)
        params = optax.apply_updates(observed, without_running_statistics(change))
        return state._replace(params=params, optimiser=optimiser_state), slope

    def steps(state: EwcState, batch: Batch) -> tuple[EwcState, Params]:
        for _ in range(updates):
            state, slope = step(state, batch)
        return state, jax.tree.map(jnp.square, slope)

    return steps
