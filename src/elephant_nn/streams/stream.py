"""A stream, and a learner's way along it."""

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from elephant_nn.learners.gradient import squared_error
from elephant_nn.learners.learner import Batch, Contract, Learner, State, check_kind

Measure = Callable[[Array, Array], Array]


def in_order(key: Key[Array, ""], n: int) -> Int[Array, " n"]:
    """Every sample in the order of the arrays."""
    del key
    return jnp.arange(n)


def shuffled(key: Key[Array, ""], n: int) -> Int[Array, " n"]:
    """Every sample once, in random order: what the same network could learn without forgetting."""
    return jax.random.permutation(key, n)


def as_stored(x: Array) -> Array:
    return x


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["x", "y", "test_x", "test_y"],
    meta_fields=["batch_size", "order", "contract", "shown", "transform", "classes"],
)
@dataclass(frozen=True)
class Stream:
    """Samples `x`, `y` shown in batches, each once, and a test set to measure on.

    `order(key, n)` gives the rows in the order they are shown, `shown` of them (default: each
    once); a tail shorter than a batch is left out. `transform` turns stored rows into what the
    learner sees. `classes`: how many classes the labels are of; 0 where `y` are targets.
    """

    x: Array
    y: Array
    test_x: Array
    test_y: Array
    batch_size: int = 1
    order: Callable[[Array, int], Array] = in_order
    contract: Contract = Contract()
    shown: int | None = None
    transform: Callable[[Array], Array] = as_stored
    classes: int = 0

    @property
    def steps(self) -> int:
        return (len(self.x) if self.shown is None else self.shown) // self.batch_size

    def batch(self, order: Int[Array, " n"], step: Int[Array, ""]) -> Batch:
        if len(order) < self.steps * self.batch_size:
            raise ValueError(
                f"the stream's order gives {len(order)} rows, but {self.steps} batches of "
                f"{self.batch_size} need {self.steps * self.batch_size}; set `shown` to what it "
                "gives, or let it repeat rows"
            )
        rows = jax.lax.dynamic_slice_in_dim(order, step * self.batch_size, self.batch_size)
        return self.transform(self.x[rows]), self.y[rows]


def accuracy(out: Float[Array, "n k"], y: Int[Array, "..."]) -> Float[Array, ""]:
    """Share of rows whose largest output is the label's; a row with NaN is wrong."""
    _check_labels(out, y, "accuracy")
    return jnp.mean(_right(out, y))


@lru_cache
def accuracy_by_class(classes: int) -> Measure:
    """A measure: the accuracy of each class by itself, 0 for a class without test samples."""

    def measure(out: Float[Array, "n k"], y: Int[Array, "..."]) -> Float[Array, " classes"]:
        _check_labels(out, y, "accuracy_by_class")
        of_class = jax.nn.one_hot(y, classes)
        return _right(out, y) @ of_class / jnp.maximum(of_class.sum(0), 1)

    return measure


def _right(out: Array, y: Array) -> Array:
    # The largest of NaNs is the first, so a broken network would know class 0.
    return (jnp.argmax(out, -1) == y) & ~jnp.isnan(out).any(-1)


def _check_labels(out: Array, y: Array, name: str) -> None:
    if out.ndim != 2 or y.shape != out.shape[:1]:
        raise ValueError(
            f"{name}: needs a row of outputs and one label a sample, got outputs of shape "
            f"{out.shape} and labels of shape {y.shape}"
        )


def in_blocks(apply: Callable[[Array], Array], x: Array, size: int = 1000) -> Array:
    """`apply` to a block of rows at a time: a wide layer's values for a test set take gigabytes."""
    if len(x) <= size:
        return apply(x)
    blocks = -(-len(x) // size)
    rows = jnp.minimum(jnp.arange(blocks * size), len(x) - 1).reshape(blocks, size)
    found = jax.lax.map(lambda block: apply(x[block]), rows)
    return found.reshape(-1, *found.shape[2:])[: len(x)]


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
    measure: Measure = squared_error,
    evaluate_every: int = 1,
) -> Passage:
    """Learn `steps` batches from batch `start` on, measuring on the test set as it goes.

    Pure and traceable, so whole stretches compile and many learners run side by side under vmap.
    The curve has a point after every `evaluate_every` batches, and one after the last batch.
    """
    agree(learner, stream)

    def step(carry: tuple[State, State], t: Array) -> tuple[tuple[State, State], None]:
        return (learner.update(carry[0], stream.batch(order, t)), carry[0]), None

    def stretch(carry: tuple[State, State], times: Array) -> tuple[tuple[State, State], Array]:
        carry, _ = jax.lax.scan(step, carry, times)
        return carry, measure(_on_test_set(learner, stream, carry[0]), stream.test_y)

    times, whole = start + jnp.arange(steps), steps // evaluate_every * evaluate_every
    carry, curve = jax.lax.scan(stretch, (state, state), times[:whole].reshape(-1, evaluate_every))
    if whole < steps:
        carry, last = stretch(carry, times[whole:])
        curve = jnp.concatenate([curve, last[None]])
    return Passage(*carry, curve)


def _on_test_set(learner: Learner, stream: Stream, state: State) -> Array:
    out = in_blocks(lambda x: learner.predict(state, stream.transform(x)), stream.test_x)
    if stream.classes and out.shape[-1] < stream.classes:
        raise ValueError(
            f"this learner has {out.shape[-1]} outputs, but the stream's labels are of "
            f"{stream.classes} classes"
        )
    return out


def agree(learner: Learner, stream: Stream) -> None:
    """Refuse a learner that needs what the stream does not grant."""
    refused = stream.contract.refusals(learner.needs)
    if refused:
        raise ValueError(
            f"this learner needs {', '.join(refused)}, which the stream does not grant; "
            "grant it in the stream's contract, so that the result says so"
        )


def learn(
    learner: Learner,
    stream: Stream,
    key: Key[Array, ""],
    measure: Measure = squared_error,
    evaluate_every: int = 1,
    *,
    evaluate_at: Sequence[int] | None = None,
) -> tuple[State, Float[Array, "points ..."]]:
    """Send a learner down a whole stream; returns its last state and the curve of its measure.

    Compiles once for a learner and a stream. The curve has a point after every `evaluate_every`
    batches, or after each of the batches `evaluate_at` (0: before the first), and one after the
    last; measure rarely where the test set is large.
    """
    if not isinstance(evaluate_every, numbers.Integral) or evaluate_every < 1:
        raise ValueError(
            f"learn: evaluate_every must be a whole number, 1 or more, got {evaluate_every}"
        )
    if isinstance(key, numbers.Integral):
        raise TypeError(f"learn: key must be a JAX key, like jax.random.key({key}), got {key}")
    check_kind("learn", learner)
    if not isinstance(stream, Stream):
        raise TypeError(
            f"learn: needs a Stream, got {type(stream).__name__}; class_incremental gives two "
            "things: stream, tasks = class_incremental(data)"
        )
    if evaluate_at is None:
        return _learn(stream, key, learner, measure, evaluate_every)
    moments = list(evaluate_at)
    whole = all(isinstance(moment, numbers.Integral) for moment in moments)
    if not whole or moments != sorted(moments) or not set(moments) <= set(range(stream.steps + 1)):
        raise ValueError(
            f"learn: evaluate_at must name batches from 0 to {stream.steps} in ascending order, "
            f"got {evaluate_at}"
        )
    if stream.steps not in moments:
        moments.append(stream.steps)
    return _learn_measured_at(stream, key, learner, measure, tuple(map(int, moments)))


@partial(jax.jit, static_argnames=("learner", "measure", "evaluate_every"))
def _learn(
    stream: Stream, key: Array, learner: Learner, measure: Measure, evaluate_every: int
) -> tuple[State, Array]:
    init_key, order_key = jax.random.split(key)
    order = stream.order(order_key, len(stream.x))
    state = learner.init(init_key)
    passage = travel(learner, stream, order, state, 0, stream.steps, measure, evaluate_every)
    return passage.state, passage.curve


@partial(jax.jit, static_argnames=("learner", "measure", "moments"))
def _learn_measured_at(
    stream: Stream, key: Array, learner: Learner, measure: Measure, moments: tuple[int, ...]
) -> tuple[State, Array]:
    agree(learner, stream)
    init_key, order_key = jax.random.split(key)
    order = stream.order(order_key, len(stream.x))

    def stretch(state: State, bounds: tuple[Array, Array]) -> tuple[State, Array]:
        update = lambda t, state: learner.update(state, stream.batch(order, t))
        state = jax.lax.fori_loop(*bounds, update, state)
        return state, measure(_on_test_set(learner, stream, state), stream.test_y)

    bounds = jnp.array((0, *moments[:-1])), jnp.array(moments)
    return jax.lax.scan(stretch, learner.init(init_key), bounds)
