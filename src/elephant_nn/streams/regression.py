"""Streams of numbers to be predicted: the paper's sine, any function, any arrays."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from elephant_nn.streams.stream import Stream


def function_stream(
    function: Callable[[Array], Array],
    low: float = 0.0,
    high: float = 2.0,
    samples: int = 200,
    test_samples: int = 1000,
) -> Stream:
    """A function of one variable, walked through once from `low` to `high`, a sample at a time."""
    x = jnp.linspace(low, high, samples)[:, None]
    test_x = jnp.linspace(low, high, test_samples)[:, None]
    return array_stream(x, function(x), test_x, function(test_x))


def sine_stream() -> Stream:
    """The paper's stream: sin(pi x) at 200 increasing x in [0, 2], tested on 1000."""
    return function_stream(lambda x: jnp.sin(jnp.pi * x))


def array_stream(
    x: ArrayLike,
    y: ArrayLike,
    test_x: ArrayLike | None = None,
    test_y: ArrayLike | None = None,
    batch_size: int = 1,
) -> Stream:
    """Your own arrays as a stream, in the order they are in; tested on themselves by default.

    One row a sample; a one-dimensional array becomes one column. Rows with a NaN or an infinity,
    and lengths that do not match, are an error that names them.
    """
    if (test_x is None) != (test_y is None):
        raise ValueError("array_stream: give both test_x and test_y, or neither")
    x, y = _table("x", x), _table("y", y)
    test_x = x if test_x is None else _table("test_x", test_x)
    test_y = y if test_y is None else _table("test_y", test_y)
    for names, first, second in (("x and y", x, y), ("test_x and test_y", test_x, test_y)):
        if len(first) != len(second):
            raise ValueError(
                f"array_stream: {names} must have the same number of rows, "
                f"got {len(first)} and {len(second)}"
            )
    if test_x.shape[1:] != x.shape[1:] or test_y.shape[1:] != y.shape[1:]:
        raise ValueError(
            "array_stream: the test arrays must have the columns of x and y, "
            f"got {test_x.shape[1:]} and {test_y.shape[1:]} for {x.shape[1:]} and {y.shape[1:]}"
        )
    if not 1 <= batch_size <= len(x):
        raise ValueError(
            f"array_stream: batch_size must be between 1 and the {len(x)} rows of x, "
            f"got {batch_size}"
        )
    return Stream(x, y, test_x, test_y, batch_size)


def _table(name: str, values: ArrayLike) -> Array:
    try:
        table = np.asarray(values, jnp.result_type(float))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"array_stream: {name} must be numbers in rows of one length ({error}); labels of "
            "classes are for from_arrays and class_incremental"
        ) from error
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim == 0 or len(table) == 0:
        raise ValueError(f"array_stream: {name} must have at least one row, got {values!r}")
    bad = np.flatnonzero(~np.isfinite(table.reshape(len(table), -1)).all(1))
    if len(bad):
        raise ValueError(
            f"array_stream: {name} has NaN or infinity in {len(bad)} of {len(table)} rows, "
            f"the first is row {bad[0]}; drop or fill them first"
        )
    return jnp.asarray(table)
