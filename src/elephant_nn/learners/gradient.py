"""The plain learner: gradient steps on each batch as it comes."""

import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from elephant_nn.learners.learner import Batch, Learner
from elephant_nn.nn.networks import Network, Params, without_running_statistics

Loss = Callable[[Array, Array], Array]


class GradientState(NamedTuple):
    params: Params
    optimiser: Any


def squared_error(out: Float[Array, "..."], y: Float[Array, "..."]) -> Float[Array, ""]:
    """Mean over the batch of the squared error."""
    if out.shape != y.shape:
        raise ValueError(
            f"squared_error: outputs of shape {out.shape} and targets of shape {y.shape} must "
            "match; give targets one column per output, as in y[:, None]; for class labels use "
            "cross_entropy"
        )
    return jnp.mean((out - y) ** 2)


def cross_entropy(out: Float[Array, "n k"], y: Int[Array, " n"]) -> Float[Array, ""]:
    """Mean over the batch of the softmax cross-entropy over all classes.

    Labels must lie between 0 and k - 1. Compiled code cannot check that: -1 would train the last
    class, k none. `learn` checks the labels of its stream.
    """
    if not jnp.issubdtype(y.dtype, jnp.integer):
        raise TypeError(
            f"cross_entropy: labels must be whole numbers, got {y.dtype}; sample_stream(x, labels) "
            "makes a stream of labels"
        )
    return optax.softmax_cross_entropy_with_integer_labels(out, y).mean()


def check_steps(name: str, optimiser: Any, updates: Any) -> None:
    if not (hasattr(optimiser, "init") and hasattr(optimiser, "update")):
        raise TypeError(
            f"{name}: optimiser must be one of optax's, like optax.adam(1e-3), got {optimiser!r}"
        )
    if not isinstance(updates, numbers.Integral) or updates < 1:
        raise ValueError(f"{name}: updates must be a whole number, 1 or more, got {updates}")


def gradient(
    network: Network, optimiser: optax.GradientTransformation, loss: Loss = squared_error,
    *, updates: int = 1, penalty: Callable[[Array], Array] | None = None,
) -> Learner:  # fmt: skip
    """Take `updates` gradient steps on every batch (E in the paper), with any optax optimiser.

    Args:
        loss: `loss(outputs, targets)`, a scalar.
        penalty: a function of the last hidden layer's values, added to the loss.

    The optimiser's state is never reset.
    """

    check_steps("gradient", optimiser, updates)

    def objective(params: Params, batch: Batch) -> tuple[Array, Params]:
        x, y = batch
        h, observed = network.observe(params, x)
        total = loss(network.head(params, h), y)
        return total if penalty is None else total + penalty(h), observed

    def init(key: Array, x: Array) -> GradientState:
        params = network.start(key, x)
        return GradientState(params, optimiser.init(params))

    def step(state: GradientState, batch: Batch) -> GradientState:
        gradients, observed = jax.grad(objective, has_aux=True)(state.params, batch)
        change, optimiser_state = optimiser.update(gradients, state.optimiser, state.params)
        params = optax.apply_updates(observed, without_running_statistics(change))
        return GradientState(params, optimiser_state)

    def update(state: GradientState, batch: Batch) -> GradientState:
        return jax.lax.fori_loop(0, updates, lambda _, s: step(s, batch), state)

    predict = lambda state, x: network.apply(state.params, x)
    return Learner(init, update, predict, network=network)
