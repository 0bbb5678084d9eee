"""A stream of samples, and the training loop along it."""

import numbers
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from elephant_nn.learners.gradient import squared_error
from elephant_nn.learners.learner import Batch, Contract, Learner, State, check_kind
from elephant_nn.learners.recipe import Recipe

Metric = Callable[[Array, Array], Array]
Order = Callable[[Key[Array, ""], Array], Int[Array, " n"]]


def in_order(key: Key[Array, ""], y: Array) -> Int[Array, " n"]:
    """Every sample in the order of the arrays."""
    del key
    return jnp.arange(len(y))


def shuffled(key: Key[Array, ""], y: Array) -> Int[Array, " n"]:
    """Every sample once, in random order: what a network can learn without forgetting."""
    return jax.random.permutation(key, len(y))


def laps(key: Key[Array, ""], n: int, size: int, passes: int) -> Int[Array, " m"]:
    """The first `size` indices of a new permutation of n for each pass."""
    lap = lambda i: jax.random.permutation(jax.random.fold_in(key, i), n)[:size]
    return jax.lax.map(lap, jnp.arange(passes)).reshape(-1)


@dataclass(frozen=True)
class Epochs:
    """An order: every sample once per pass, shuffled anew for each."""

    passes: int

    def __call__(self, key: Key[Array, ""], y: Array) -> Int[Array, " m"]:
        return laps(key, len(y), len(y), self.passes)


@dataclass(frozen=True)
class Scaling:
    """A transform: `(x - offset) / scale` in float32, numbers or nested tuples that broadcast."""

    scale: float | tuple[Any, ...] = 1.0
    offset: float | tuple[Any, ...] = 0.0

    def __call__(self, x: Array) -> Array:
        x = x.astype(jnp.float32)
        x = x if self.offset == 0.0 else x - np.asarray(self.offset, np.float32)
        return x if self.scale == 1.0 else x / np.asarray(self.scale, np.float32)


def as_stored(x: Array) -> Array:
    return x


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["x", "y", "test_x", "test_y", "rows"],
    meta_fields=["batch_size", "order", "contract", "shown", "transform", "classes"],
)
@dataclass(frozen=True)
class Stream:
    """Samples shown in batches, and a test set: a pytree of arrays with a hashable description.

    Compiled programs take the arrays as arguments and are cached by the description, so `order` and
    `transform` are functions or frozen dataclasses, not closures.

    Attributes:
        rows: the rows of `x` and `y` that are shown, if not all.
        order: `order(key, y)` gives indices into the shown rows, `shown` of them (default: each
            once); an incomplete last batch is left out.
        transform: turns stored inputs into what the learner sees.
        classes: the number of classes of the labels; 0 if `y` are targets.
    """

    x: Array
    y: Array
    test_x: Array
    test_y: Array
    batch_size: int = 1
    order: Order = in_order
    contract: Contract = Contract()
    shown: int | None = None
    transform: Callable[[Array], Array] = as_stored
    classes: int = 0
    rows: Array | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.batch_size, numbers.Integral) or self.batch_size < 1:
            raise ValueError(
                f"Stream: batch_size must be a whole number, 1 or more, got {self.batch_size!r}"
            )

    @property
    def steps(self) -> int:
        """The number of batches."""
        size = len(self.y if self.rows is None else self.rows)
        return (size if self.shown is None else self.shown) // self.batch_size

    def arrange(self, key: Key[Array, ""]) -> Int[Array, " m"]:
        """The rows of `x` and `y` in the order in which they are shown."""
        if self.rows is None:
            return self.order(key, self.y)
        return self.rows[self.order(key, self.y[self.rows])]

    def batch(self, order: Int[Array, " m"], step: Int[Array, ""] | int) -> Batch:
        if len(order) < self.steps * self.batch_size:
            raise ValueError(
                f"the stream's order gives {len(order)} rows, but {self.steps} batches of "
                f"{self.batch_size} need {self.steps * self.batch_size}; set `shown` to the number "
                "of rows that it gives, or let it repeat rows"
            )
        rows = jax.lax.dynamic_slice_in_dim(order, step * self.batch_size, self.batch_size)
        return self.transform(self.x[rows]), self.y[rows]


def named_key(key: Key[Array, ""], name: str) -> Key[Array, ""]:
    """An independent key for one purpose: `named_key(key, "init")`, `"data"`, `"explore"`."""
    return jax.random.fold_in(key, zlib.crc32(name.encode()))


def start(learner: Learner, stream: Stream, key: Key[Array, ""]) -> tuple[State, Int[Array, " m"]]:
    """The initial state of a learner, and the order of the stream's rows."""
    check_kind("the builder of a method", learner)
    refused = stream.contract.refusals(learner.needs)
    if refused:
        raise ValueError(
            f"this learner needs {', '.join(refused)}, which the stream does not grant; "
            "grant it in the stream's contract, so that the result says so"
        )
    order = stream.arrange(named_key(key, "data"))
    return learner.init(named_key(key, "init"), stream.batch(order, 0)[0]), order


def advance(
    learner: Learner, stream: Stream, order: Int[Array, " m"], state: State,
    first: int | Int[Array, ""], steps: int | Int[Array, ""],
) -> State:  # fmt: skip
    """Update on `steps` batches from batch `first` on: the only training loop.

    Pure and traceable: whole runs compile, and many learners run side by side under `jax.vmap`.
    """
    update = lambda t, state: learner.update(state, stream.batch(order, t))
    if isinstance(steps, int) and steps == 1:
        return update(first, state)
    if isinstance(steps, int):  # a known length compiles to faster code
        return jax.lax.fori_loop(0, steps, lambda i, state: update(first + i, state), state)
    return jax.lax.fori_loop(first, first + steps, update, state)


def evaluate(
    learner: Learner, stream: Stream, state: State, metric: Metric,
    on: tuple[Array, Array, Array | None] | None = None, block: int = 1000,
) -> Array:  # fmt: skip
    """The metric on the test set, or on other samples: inputs, targets and rows of them."""
    x, y, rows = (stream.test_x, stream.test_y, None) if on is None else on
    state = learner.prepare(state)
    predict = lambda x: learner.predict(state, stream.transform(x))
    out = in_blocks(predict, x, rows, block)
    if stream.classes and out.shape[-1] < stream.classes:
        raise ValueError(
            f"this learner has {out.shape[-1]} outputs, but the stream has {stream.classes} classes"
        )
    return metric(out, y if rows is None else y[rows])


def in_blocks(
    apply: Callable[[Array], Array], x: Array, rows: Array | None = None, size: int = 1000
) -> Array:
    """`apply` to a block of rows at a time: a wide layer's values on a test set take gigabytes."""
    n = len(x if rows is None else rows)
    pick = (lambda i: x[i]) if rows is None else (lambda i: x[rows[i]])
    if n <= size:
        return apply(x if rows is None else x[rows])
    blocks = -(-n // size)
    indices = jnp.minimum(jnp.arange(blocks * size), n - 1).reshape(blocks, size)
    found = jax.lax.map(lambda block: apply(pick(block)), indices)
    return found.reshape(-1, *found.shape[2:])[:n]


def accuracy(out: Float[Array, "n k"], y: Int[Array, "..."]) -> Float[Array, ""]:
    """Fraction of rows whose largest output is the label's; a row with NaN counts as wrong."""
    _check_outputs(out, y, "accuracy")
    return jnp.mean(_right(out, y))


@lru_cache
def accuracy_by_class(classes: int) -> Metric:
    """A metric: the accuracy of each class, 0 for a class without test samples."""

    def metric(out: Float[Array, "n k"], y: Int[Array, "..."]) -> Float[Array, " classes"]:
        _check_outputs(out, y, "accuracy_by_class")
        of_class = jax.nn.one_hot(y, classes)
        return _right(out, y) @ of_class / jnp.maximum(of_class.sum(0), 1)

    return metric


def _right(out: Array, y: Array) -> Array:
    # argmax of NaNs is 0, so a diverged network would seem to know class 0.
    return (jnp.argmax(out, -1) == y) & ~jnp.isnan(out).any(-1)


def _check_outputs(out: Array, y: Array, name: str) -> None:
    if out.ndim != 2 or y.shape != out.shape[:1]:
        raise ValueError(
            f"{name}: expected a row of outputs and one label per sample, got outputs of shape "
            f"{out.shape} and labels of shape {y.shape}"
        )


def learn(
    learner: Learner, stream: Stream, key: Key[Array, ""], metric: Metric | None = None,
    at: int | Sequence[int] | None = None, *, state: State = None,
) -> tuple[State, Float[Array, "points ..."]]:  # fmt: skip
    """Train a learner on a whole stream; returns its state and the metric on the test set.

    Compiles once per learner and description of the stream. Learners made by `inject_hyperparams`
    share one program for all values of their hyper-parameters.

    Args:
        metric: `metric(outputs, targets)`; default: `accuracy` for labels, else `squared_error`.
        at: evaluate after every `at` batches, or after each of these numbers of batches (0: before
            the first); always after the last. Default: only after the last.
        state: a state to continue from, instead of a new one.
    """
    if isinstance(key, numbers.Integral):
        raise TypeError(f"learn: key must be a JAX key, like jax.random.key({key}), got {key}")
    check_kind("learn", learner)
    if not isinstance(stream, Stream):
        raise TypeError(
            f"learn: expected a Stream, got {type(stream).__name__}; class_incremental returns "
            "two things: stream, tasks = class_incremental(data)"
        )
    if metric is None:
        metric = accuracy if stream.classes or _are_labels(stream.y) else squared_error
    moments = np.array(_moments(at, stream.steps))
    recipe = learner.recipe or Recipe(_given, (learner,))
    _check_labels(learner, stream)
    floats = dict(learner.hyperparameters)
    state, values, finite = _learn(stream, key, floats, state, moments, recipe, metric)
    _warn_if_diverged(values, moments, finite)
    return state, values


def _given(learner: Learner) -> Learner:
    return learner


@partial(jax.jit, static_argnames=("recipe", "metric"))
def _learn(
    stream: Stream, key: Array, floats: dict[str, Any], state: State, moments: Array,
    recipe: Recipe, metric: Metric,
) -> tuple[State, Array, Array]:  # fmt: skip
    learner = recipe(floats)
    fresh, order = start(learner, stream, key)

    def stretch(state: State, bounds: tuple[Array, Array]) -> tuple[State, Array]:
        first, last = bounds
        state = advance(learner, stream, order, state, first, last - first)
        return state, evaluate(learner, stream, state, metric)

    shapes = lambda tree: jax.tree.map(lambda leaf: (jnp.shape(leaf), jnp.result_type(leaf)), tree)
    if state is not None and shapes(state) != shapes(fresh):
        raise ValueError("learn: state is not a state of this learner: its arrays do not match")
    bounds = jnp.concatenate([jnp.zeros(1, moments.dtype), moments[:-1]]), moments
    state, values = jax.lax.scan(stretch, fresh if state is None else state, bounds)
    return state, values, _finite(state)


def _moments(at: int | Sequence[int] | None, steps: int) -> list[int]:
    if at is None:
        return [steps]
    if isinstance(at, int | np.integer):
        if at < 1:
            raise ValueError(f"learn: at must be 1 or more batches, got {at}")
        moments = list(range(int(at), steps + 1, int(at)))
    else:
        moments = list(at) if isinstance(at, Iterable) else [at]
        whole = all(isinstance(moment, numbers.Integral) for moment in moments)
        if not whole or moments != sorted(moments) or not set(moments) <= set(range(steps + 1)):
            raise ValueError(
                f"learn: at must be a number of batches, or numbers from 0 to {steps} in ascending "
                f"order, got {at}"
            )
    return moments if steps in moments else [*moments, steps]


def _are_labels(y: Array) -> bool:
    return y.ndim == 1 and bool(jnp.issubdtype(y.dtype, jnp.integer))


def _check_labels(learner: Learner, stream: Stream) -> None:
    """Refuse labels that the learner has no output for; compiled code would train on them."""
    y = stream.y
    if not _are_labels(y) or isinstance(y, jax.core.Tracer):
        return

    def first_prediction() -> Array:
        x = stream.transform(stream.x[: stream.batch_size])
        return learner.predict(learner.init(jax.random.key(0), x), x)

    outputs = jax.eval_shape(first_prediction)
    labels = np.asarray(y)  # not traced, even inside a traced function
    low, high = int(labels.min()), int(labels.max())
    if outputs.ndim == 2 and not 0 <= low <= high < outputs.shape[1]:
        raise ValueError(
            f"learn: this learner has {outputs.shape[1]} outputs, for labels from 0 to "
            f"{outputs.shape[1] - 1}, but the stream has labels from {low} to {high}; number them "
            "from 0 on: np.unique(y, return_inverse=True)[1]"
        )


def _finite(state: State) -> Array:
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(state)]
    floats = [leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return jnp.array([jnp.isfinite(leaf).all() for leaf in floats], bool).all()


def _warn_if_diverged(values: Array, moments: np.ndarray, finite: Array) -> None:
    """An accuracy stays finite, so the state counts too."""
    if isinstance(values, jax.core.Tracer):
        return
    fine = np.isfinite(np.asarray(values).reshape(len(moments), -1)).all(1)
    if not fine.all() or not finite:
        what = "state" if fine.all() else "metric"
        after = moments[-1] if fine.all() else moments[int(np.argmin(fine))]
        warnings.warn(
            f"learn: the {what} is not finite after {after} batches; the learner diverged: use a "
            "smaller learning rate, or scale the inputs", RuntimeWarning, stacklevel=3,
        )  # fmt: skip
