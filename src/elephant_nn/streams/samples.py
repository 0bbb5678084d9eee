"""Streams of your own samples in the order they come: numbers to predict, or labels."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from elephant_nn.streams.stream import Stream


def function_stream(
    function: Callable[[Array], Array], low: float = 0.0, high: float = 2.0, samples: int = 200,
    test_samples: int = 1000,
) -> Stream:  # fmt: skip
    """A function of one variable, shown once from `low` to `high`, one sample at a time."""
    x = jnp.linspace(low, high, samples)[:, None]
    test_x = jnp.linspace(low, high, test_samples)[:, None]
    return sample_stream(x, function(x), test_x, function(test_x))


def sine_stream() -> Stream:
    """The paper's stream: sin(pi x) at 200 increasing x in [0, 2], tested on 1000."""
    return function_stream(lambda x: jnp.sin(jnp.pi * x))


def sample_stream(
    x: ArrayLike, y: ArrayLike, test_x: ArrayLike | None = None, test_y: ArrayLike | None = None,
    batch_size: int = 1, *, classes: int | None = None,
) -> Stream:  # fmt: skip
    """Your own samples as a stream, in the order they are in, shown once.

    Floating-point `y` are targets; a one-dimensional array becomes one column. Whole numbers,
    booleans and strings are labels: whole numbers stay as they are and strings are numbered in
    sorted order. Rows with NaN or infinity, dates and complex numbers are refused.

    Args:
        test_x: what to evaluate on; default: the stream itself.
        classes: the number of classes, if more classes than those in `y` are to come.
    """
    if (test_x is None) != (test_y is None):
        raise ValueError("sample_stream: give both test_x and test_y, or neither")
    given_y = _array("y", y)
    names = np.unique(given_y) if given_y.dtype.kind in "US" else None
    x, y = _inputs("x", x), _targets("y", y, names)
    test_x = x if test_x is None else _inputs("test_x", test_x)
    test_y = y if test_y is None else _targets("test_y", test_y, names)
    for pair, first, second in (("x and y", x, y), ("test_x and test_y", test_x, test_y)):
        if len(first) != len(second):
            raise ValueError(
                f"sample_stream: {pair} must have the same number of rows, got {len(first)} and "
                f"{len(second)}"
            )
    like = lambda x, y: (x.shape[1:], y.shape[1:], y.dtype)
    if like(test_x, test_y) != like(x, y):
        raise ValueError(
            "sample_stream: test samples must look like the others, got "
            f"{test_x.shape[1:]} and {test_y.shape[1:]} of {test_y.dtype} for {x.shape[1:]} and "
            f"{y.shape[1:]} of {y.dtype}"
        )
    if not 1 <= batch_size <= len(x):
        raise ValueError(
            f"sample_stream: batch_size must be between 1 and the {len(x)} rows of x, got "
            f"{batch_size}"
        )
    labelled = y.dtype.kind == "i"
    found = int(max(y.max(), test_y.max())) + 1 if labelled else 0
    if classes is not None and (not labelled or classes < found):
        what = f"labels up to {found - 1}" if labelled else "targets, not labels"
        raise ValueError(f"sample_stream: classes={classes}, but y has {what}")
    return Stream(
        jnp.asarray(x), jnp.asarray(y), jnp.asarray(test_x), jnp.asarray(test_y),
        batch_size=batch_size, classes=classes or found,
    )  # fmt: skip


def _inputs(name: str, values: ArrayLike) -> np.ndarray:
    return _finite(name, _numbers(name, _array(name, values)))


def _targets(name: str, values: ArrayLike, names: np.ndarray | None) -> np.ndarray:
    y = _array(name, values)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 and y.dtype.kind in "buiUS" else y
    if y.ndim == 1 and names is not None:
        unknown = np.setdiff1d(y, names)
        if len(unknown):
            raise ValueError(
                f"sample_stream: {name} has labels that y lacks: {unknown[:5].tolist()}"
            )
        y = np.searchsorted(names, y)
    if y.ndim == 1 and y.dtype.kind in "bui":
        if len(y) and y.min() < 0:
            raise ValueError(f"sample_stream: {name} has the label {y.min()}; labels start at 0")
        if len(y) and y.max() > np.iinfo(np.int32).max:
            raise ValueError(f"sample_stream: {name} has the label {y.max()}; number labels from 0")
        return y.astype(np.int32)
    return _finite(name, _numbers(name, y))


def _array(name: str, values: ArrayLike) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"sample_stream: {name} must be numbers in rows of equal length, got rows of "
            "different lengths"
        ) from error
    strings = array.dtype.kind == "O" and all(isinstance(value, str) for value in array.flat)
    return array.astype(str) if strings else array


def _numbers(name: str, values: Any) -> np.ndarray:
    if values.dtype.kind not in "buif":
        kinds = {"c": "complex numbers", "M": "dates", "m": "time spans", "O": "objects"}
        raise ValueError(
            f"sample_stream: {name} must be numbers in rows of equal length, got "
            f"{kinds.get(values.dtype.kind, values.dtype)}; convert them to floats first"
        )
    table = values.astype(jnp.result_type(float))
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim == 0 or len(table) == 0:
        raise ValueError(f"sample_stream: {name} must have at least one row, got {values!r}")
    return table


def _finite(name: str, table: np.ndarray) -> np.ndarray:
    bad = np.flatnonzero(~np.isfinite(table.reshape(len(table), -1)).all(1))
    if len(bad):
        raise ValueError(
            f"sample_stream: {name} has NaN or infinity in {len(bad)} of {len(table)} rows, the "
            f"first is row {bad[0]}; drop or fill them first"
        )
    return table
