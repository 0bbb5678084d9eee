"""A stream, and a learner's way along it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from elephant_nn.learners.learner import Batch, Contract, Learner, State

Measure = Callable[[Array, Array], Array]


def in_order(key: Key[Array, ""], n: int) -> Int[Array, " n"]:
    """Every sample in the order of the arrays."""
    del key
    return jnp.arange(n)


def shuffled(key: Key[Array, ""], n: int) -> Int[Array, " n"]:
    """Every sample once, in random order: what the same network could learn without forgetting."""
    return jax.random.permutation(key, n)


@dataclass(frozen=True)
class Stream:
    """Samples `x`, `y` shown in batches, each once, and a test set to measure on.

    `order(key, n)` gives the rows in the order they are shown, `shown` of them (default: each
    once); a tail shorter than a batch is left out. `transform` turns stored rows into what the
    learner sees.
    """

    x: Array
    y: Array
    test_x: Array
    test_y: Array
    batch_size: int = 1
    order: Callable[[Array, int], Array] = in_order
    contract: Contract = Contract()
    shown: int | None = None
    transform: Callable[[Array], Array] = lambda x: x

    @property
    def steps(self) -> int:
        return (len(self.x) if self.shown is None else self.shown) // self.batch_size

    def batch(self, order: Int[Array, " n"], step: Int[Array, ""]) -> Batch:
        rows = jax.lax.dynamic_slice_in_dim(order, step * self.batch_size, self.batch_size)
        return self.transform(self.x[rows]), self.y[rows]


def mean_squared_error(out: Array, y: Array) -> Float[Array, ""]:
    return jnp.mean((out - y) ** 2)


def accuracy(out: Float[Array, "n k"], y: Int[Array, " n"]) -> Float[Array, ""]:
    return jnp.mean(jnp.argmax(out, -1) == y)


class Passage(NamedTuple):
    """Where a learner stands: its state, its state before the last batch, the curve so far."""

    state: State
    before_last: State
    curve: Array


def travel(
    learner: Learner,
    stream: Stream,
    order: Int[Array, " n"],
    state: State,
    start: int | Int[Array, ""],
    steps: int,
    measure: Measure = mean_squared_error,
) -> Passage:
    """Learn `steps` batches from batch `start` on, measuring on the test set after each.

    Pure and traceable, so whole stretches compile and many learners run side by side under vmap.
    """

    def step(carry: tuple[State, State], t: Array) -> tuple[tuple[State, State], Array]:
        before = carry[0]
        after = learner.update(before, stream.batch(order, t))
        return (after, before), measure(
            learner.predict(after, stream.transform(stream.test_x)), stream.test_y
        )

    (state, before), curve = jax.lax.scan(step, (state, state), start + jnp.arange(steps))
    return Passage(state, before, curve)


def learn(
    learner: Learner, stream: Stream, key: Key[Array, ""], measure: Measure = mean_squared_error
) -> tuple[State, Float[Array, " steps"]]:
    """Send a learner down a whole stream; returns its last state and the curve of its measure."""
    refused = stream.contract.refusals(learner.needs)
    if refused:
        raise ValueError(
            f"learn: this learner needs {', '.join(refused)}, which the stream does not grant; "
            "grant it in the stream's contract, so that the result says so"
        )
    init_key, order_key = jax.random.split(key)

    @jax.jit
    def run() -> Passage:
        order = stream.order(order_key, len(stream.x))
        return travel(learner, stream, order, learner.init(init_key), 0, stream.steps, measure)

    passage = run()
    return passage.state, passage.curve
