import datetime
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from elephant_nn import (
    RAW_INPUTS,
    Contract,
    cross_entropy,
    gradient,
    learn,
    mlp,
    sample_stream,
    sine_stream,
    streaming_lda,
)

KEY = jax.random.key(0)
X = [1.0, 2.0, 3.0]
DATES = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], "datetime64[D]")


def test_sine_stream_of_the_paper():
    stream = sine_stream()
    assert stream.steps == 200
    assert (stream.batch_size, stream.classes) == (1, 0)
    assert (stream.x[0, 0], stream.x[-1, 0]) == (0, 2)
    assert (np.diff(stream.x[:, 0]) > 0).all()
    np.testing.assert_allclose(stream.y, np.sin(np.pi * np.asarray(stream.x, float)), atol=1e-6)
    assert stream.test_x.shape == stream.test_y.shape == (1000, 1)
    assert (stream.test_x[0, 0], stream.test_x[-1, 0]) == (0, 2)
    assert stream.contract == Contract(passes=1, task_boundary=False, class_statistics=False)


def test_batches_in_order_without_the_incomplete_last():
    x = np.arange(10.0)
    stream = sample_stream(x, 2 * x, batch_size=4)
    assert stream.steps == 2
    batch_x, batch_y = stream.batch(stream.arrange(KEY), 1)
    np.testing.assert_array_equal(batch_x[:, 0], [4, 5, 6, 7])
    np.testing.assert_array_equal(batch_y[:, 0], [8, 10, 12, 14])


def test_the_test_set_is_optional():
    stream = sample_stream(X, [1, 0, 1])
    np.testing.assert_array_equal(stream.test_x, stream.x)
    np.testing.assert_array_equal(stream.test_y, stream.y)
    stream = sample_stream(X, [1, 0, 1], [[4.0]], [2])
    assert (stream.test_x.tolist(), stream.test_y.tolist(), stream.classes) == ([[4.0]], [2], 3)


@pytest.mark.parametrize(
    ("y", "labels", "classes"),
    [
        ([2, 0, 1], [2, 0, 1], 3),
        ([5, 5, 2], [5, 5, 2], 6),
        ([[1], [0], [1]], [1, 0, 1], 2),
        (np.array([1, 0, 1], np.uint8), [1, 0, 1], 2),
        ([True, False, True], [1, 0, 1], 2),
        (["dog", "cat", "dog"], [1, 0, 1], 2),
        (np.array(["dog", "cat", "dog"], object), [1, 0, 1], 2),
        ([["dog"], ["cat"], ["dog"]], [1, 0, 1], 2),
    ],
)
def test_labels(y, labels, classes):
    stream = sample_stream(X, y)
    assert stream.y.tolist() == labels
    assert stream.y.dtype == jnp.int32
    assert stream.classes == classes


@pytest.mark.parametrize("y", [[1.0, 0.0, 1.0], [[1, 2], [3, 4], [5, 6]]])
def test_targets(y):
    stream = sample_stream(X, y)
    np.testing.assert_array_equal(stream.y, np.reshape(y, (3, -1)))
    assert stream.y.dtype == jnp.float32
    assert stream.classes == 0


def test_more_classes_may_come():
    assert sample_stream(X, [0, 1, 1], classes=4).classes == 4
    with pytest.raises(ValueError, match="classes=2, but y has labels up to 3"):
        sample_stream(X, [0, 1, 3], classes=2)
    with pytest.raises(ValueError, match="classes=2, but y has targets"):
        sample_stream(X, X, classes=2)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([1.0, np.nan, 3.0], X), "x has NaN or infinity in 1 of 3 rows.*row 1"),
        ((X, [1.0, np.inf, 2.0]), "y has NaN"),
        ((X, X, [1.0, np.nan], [1.0, 2.0]), "test_x has NaN"),
        ((DATES, X), "x must be numbers .* got dates"),
        ((X, DATES), "y must be numbers .* got dates"),
        ((X, [datetime.date(2020, 1, 1)] * 3), "y must be numbers .* got objects"),
        (([1j, 2, 3], X), "x must be numbers .* got complex numbers"),
        ((X, [1j, 2, 3]), "y must be numbers .* got complex numbers"),
        ((["a", "b", "c"], X), "x must be numbers"),
        ((X, [None, "cat", "dog"]), "y must be numbers .* got objects"),
        (([[1.0, 2.0], [3.0], [4.0]], X), "x must be .* rows of different lengths"),
        ((X, [[1.0, 2.0], [3.0], [4.0]]), "y must be .* rows of different lengths"),
        (([], []), "x must have at least one row"),
        ((3.0, 3.0), "x must have at least one row"),
        ((X, X, [], []), "test_x must have at least one row"),
        ((X, [1.0, 2.0]), "x and y must have the same number of rows, got 3 and 2"),
        ((X, X, [1.0], [1.0, 2.0]), "test_x and test_y must have the same number .* 1 and 2"),
        ((X, X, X), "both test_x and test_y"),
        ((X, X, [[1.0, 2.0]], [1.0]), "test samples must look like the others"),
        ((X, [0, 1, 2], X, X), "test samples must look like the others"),
        ((X, [-1, 0, 1]), "y has the label -1; labels start at 0"),
        ((X, [0, 1, 2**40]), f"y has the label {2**40}"),
        ((X, ["a", "b", "c"], X, ["a", "b", "z"]), r"test_y has labels that y lacks: \['z'\]"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_unsuitable_samples_are_refused(arrays, message):
    with pytest.raises(ValueError, match=message):
        sample_stream(*arrays)


@pytest.mark.parametrize("batch_size", [0, 4])
def test_batch_sizes_out_of_range_are_refused(batch_size):
    with pytest.raises(ValueError, match="batch_size must be between 1 and the 3 rows"):
        sample_stream(X, X, batch_size=batch_size)


@pytest.mark.parametrize(
    "learner",
    [
        streaming_lda(RAW_INPUTS, 2, 3),
        gradient(mlp((2, 20, 3)), optax.adam(1e-2), cross_entropy, updates=2),
    ],
    ids=["lda", "gradient"],
)
def test_separable_strings_are_learned(learner):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    x = np.array([[0.0, 4.0], [4.0, 0.0], [-4.0, -4.0]])[y] + rng.normal(0, 0.5, (400, 2))
    names = np.array(["cat", "dog", "fish"])[y]
    stream = sample_stream(x[:300], names[:300], x[300:], names[300:], batch_size=10)
    stream = replace(stream, contract=learner.needs)
    _, accuracy = learn(learner, stream, KEY)
    assert accuracy.shape == (1,)
    assert accuracy[0] > 0.97
