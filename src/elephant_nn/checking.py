"""A conformance check for learners, ours and yours."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, Num

from elephant_nn.learners.learner import Learner, State, check_kind


def check_learner(
    learner: Learner,
    x: Num[np.ndarray, "n ..."] | Float[Array, "n ..."] | None = None,
    y: Num[np.ndarray, "n ..."] | Num[Array, "n ..."] | None = None,
    *,
    key: Key[Array, ""] | Int[Array, " 2"] | None = None,
) -> None:
    """Raise an AssertionError that says what is wrong, unless the learner meets all requirements.

    * `init` takes a key and the inputs of the first batch, no labels;
    * `predict` changes nothing, is deterministic, and predicts each row independently;
    * `update` takes batches of any size, including one sample;
    * memory is bounded: after a long stream the state has the shapes and types it started with;
    * the same key and the same stream give the same state, and `predict` is the same compiled;
    * states and predictions stay finite on odd inputs: zeros, one repeated sample, one repeated
      label, and inputs a thousand times too large.

    It cannot see what a learner hides from JAX in a callback or a global.

    Args:
        x: a batch of 16 samples or more like those the learner is made for; default: random 8x8
            images in [0, 1] of ten classes.
        y: their labels or targets.
        key: the key of `init`; default: `jax.random.key(0)`.
    """
    check_kind("check_learner", learner)
    if (x is None) != (y is None):
        raise ValueError("check_learner: give both x and y, or neither")
    ours = x is None
    if x is None or y is None:
        x, y = _images()
    x, y = jnp.asarray(x), jnp.asarray(y)
    if len(x) < 16 or len(x) != len(y):
        raise ValueError(
            f"check_learner: x and y must have the same length, 16 or more, got {len(x)}, {len(y)}"
        )
    if jnp.issubdtype(y.dtype, jnp.integer) and y.ndim == 1 and int(y.min()) < 0:
        raise ValueError(f"check_learner: labels must be 0 or more, got {int(y.min())}")
    if not (jnp.isfinite(x).all() and jnp.isfinite(y).all()):
        raise ValueError("check_learner: x and y must be finite")
    key = jax.random.key(0) if key is None else key
    try:
        _check(learner, x, y, key)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        raise AssertionError(
            "update and predict must be traceable by JAX: use jnp.where or jax.lax.cond instead of "
            f"a Python if, and jnp instead of NumPy: {error}"
        ) from error
    except (AssertionError, TypeError, ValueError) as error:
        if ours:
            error.add_note(
                "check_learner used images of shape (8, 8, 1) of ten classes; pass x= and y= like "
                "the samples that your learner is made for"
            )
        raise


def _images() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(64) % 10).astype(np.int32)
    x = rng.random((10, 8, 8, 1))[y] + 0.1 * rng.normal(size=(64, 8, 8, 1))
    return np.clip(x, 0, 1).astype(np.float32), y


def _check(learner: Learner, x: Array, y: Array, key: Any) -> None:
    compiled = _traced(learner)
    try:
        inspect.signature(learner.init).bind(key, x)
    except TypeError as error:
        raise AssertionError(
            "init must take a key and the inputs of the first batch, init(key, x), and no labels: "
            f"{error}"
        ) from error
    start = learner.init(key, x[:8])
    once = compiled.update(start, (x[:8], y[:8]))
    begun, returned = str(jax.tree.structure(start)), str(jax.tree.structure(once))
    _require(
        begun == returned,
        f"update must return a state like init's, {begun}; it returned {returned}",
    )
    learned = compiled.update(once, (x[8:16], y[8:16]))
    _check_prediction(learner, compiled, learned, x, y)
    _check_batch_sizes(compiled, start, x, y)
    _check_memory(compiled, start, np.asarray(x), np.asarray(y))
    _check_sameness(_traced(learner), start, learned, x, y, key)
    _check_odd_inputs(compiled, start, x, y)


def _traced(learner: Learner) -> Learner:
    """The learner with newly compiled functions: `jit` keeps what Python did while tracing."""
    return replace(
        learner,
        update=jax.jit(lambda state, batch: learner.update(state, batch)),
        predict=jax.jit(lambda state, x: learner.predict(state, x)),
    )


def _classes(y: Array) -> int:
    """The number of classes of labels; 0 for targets."""
    return int(y.max()) + 1 if y.ndim == 1 and jnp.issubdtype(y.dtype, jnp.integer) else 0


def _check_prediction(
    learner: Learner, compiled: Learner, state: State, x: Array, y: Array
) -> None:
    before = [leaf.copy() for leaf in _leaves(state)]
    first, second = learner.predict(state, x), learner.predict(state, x)
    _require(
        isinstance(first, jax.Array), f"predict must return an array, got {type(first).__name__}"
    )
    _assert_finite(first, "two batches, in the predictions")
    _require(len(first) == len(x), f"predict returned {len(first)} rows for {len(x)} inputs")
    _require(
        first.ndim == 2 or not _classes(y),
        f"predict returned outputs of shape {first.shape}; for labels it must return one score per "
        "class, not the label",
    )
    _require(
        first.ndim < 2 or first.shape[-1] >= _classes(y),
        f"predict returned {first.shape[-1]} outputs for labels of {_classes(y)} classes",
    )
    _require(_same(first, second), "predict returned two different results for the same inputs")
    _require(_same(before, state), "predict changed the state")
    alone = jnp.concatenate([compiled.predict(state, x[i : i + 1]) for i in range(4)])
    _assert_close(alone, first[:4], "a row's prediction depends on the other rows")
    _assert_close(compiled.predict(state, x), first, "predict differs when compiled")


def _check_batch_sizes(learner: Learner, start: State, x: Array, y: Array) -> None:
    for size in (1, 7, len(x)):
        state = learner.update(start, (x[:size], y[:size]))
        same = _shapes(state) == _shapes(start)
        _require(same, f"a batch of {size} changed the state's shapes or types")
        _assert_finite(state, f"a batch of {size}")


def _check_memory(learner: Learner, start: State, x: np.ndarray, y: np.ndarray) -> None:
    state = start
    for step in range(300):
        rows = np.arange(step, step + 8) % len(x)
        state = learner.update(state, (jnp.asarray(x[rows]), jnp.asarray(y[rows])))
    _require(
        _shapes(state) == _shapes(start),
        f"after 300 batches the state has {_bytes(state)} bytes, at the start {_bytes(start)}; "
        "memory must not grow with the stream",
    )
    _assert_finite(state, "300 batches")


def _check_sameness(
    learner: Learner, start: State, learned: State, x: Array, y: Array, key: Any
) -> None:
    again = learner.init(key, x[:8])
    _require(_same(start, again), "init returned two different states for one key")
    again = learner.update(learner.update(again, (x[:8], y[:8])), (x[8:16], y[8:16]))
    _require(_same(learned, again), "the same key and stream gave two different states")


def _check_odd_inputs(learner: Learner, start: State, x: Array, y: Array) -> None:
    odd: dict[str, Callable[[Array], Array]] = {
        "zeros": jnp.zeros_like,
        "one repeated sample": lambda x: jnp.broadcast_to(x[:1], x.shape),
        "inputs a thousand times too large": lambda x: 1000 * x,
    }
    for what, change in odd.items():
        state = learner.update(learner.update(start, (change(x), y)), (change(x), y))
        _assert_finite(state, what)
        _assert_finite(learner.predict(state, change(x)), what)
        _assert_finite(learner.predict(state, x), what)
    state = learner.update(start, (x, jnp.broadcast_to(y[:1], y.shape)))
    _assert_finite((state, learner.predict(state, x)), "one repeated label")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _leaves(tree: Any) -> list[np.ndarray]:
    plain = lambda leaf: (
        jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
    )
    return [np.asarray(plain(jnp.asarray(leaf))) for leaf in jax.tree.leaves(tree)]


def _same(one: Any, other: Any) -> bool:
    pairs = zip(_leaves(one), _leaves(other), strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


def _shapes(tree: Any) -> list[tuple[tuple[int, ...], str]]:
    return [(leaf.shape, str(leaf.dtype)) for leaf in _leaves(tree)]


def _bytes(tree: Any) -> int:
    return sum(leaf.nbytes for leaf in _leaves(tree))


def _assert_close(one: Array, other: Array, what: str) -> None:
    scale = float(jnp.max(jnp.abs(other))) + 1e-6
    apart = float(jnp.max(jnp.abs(one - other))) / scale
    _require(apart < 1e-3, f"{what}: they differ by {apart:.2g} of the largest output")


def _assert_finite(tree: Any, after: str) -> None:
    for leaf in _leaves(tree):
        finite = leaf.dtype.kind != "f" or bool(np.isfinite(leaf).all())
        _require(finite, f"a number is not finite after {after}")
