import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elephant_nn import RAW_INPUTS, accuracy, learn, nearest_class_mean
from elephant_nn.data.dataset import Dataset
from elephant_nn.data.loading import from_arrays, load
from elephant_nn.streams.class_incremental import ClassOrder, class_incremental

KEY = jax.random.key(0)
DIGITS = load("digits")
unchecked = inspect.unwrap(class_incremental)
"""As users have it: without the tests' type checks, which would come first."""


def test_tasks_in_order_and_samples_once():
    stream, tasks = class_incremental(DIGITS, batch_size=10)
    assert tasks.classes == ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))
    assert tasks.ends[-1] == stream.steps
    order = np.asarray(stream.arrange(KEY))
    assert len(set(order.tolist())) == len(order) == stream.steps * 10
    start = 0
    for group, end in zip(tasks.classes, tasks.ends, strict=True):
        labels = DIGITS.y_train[order[start * 10 : end * 10]]
        assert set(labels.tolist()) == set(group)
        assert (np.diff(labels) != 0).sum() > 10  # mixed, not sorted
        start = end


def test_cut():
    by_task, _ = class_incremental(DIGITS, batch_size=125, cut="task")
    whole, tasks = class_incremental(DIGITS, batch_size=125, cut="stream")
    assert by_task.steps == sum((DIGITS.y_train // 2 == t).sum() // 125 for t in range(5))
    assert whole.steps == len(DIGITS.x_train) // 125
    assert tasks.ends[-1] == whole.steps


def test_keys_shuffle_within_tasks():
    stream, _ = class_incremental(DIGITS)
    first, second = (np.asarray(stream.arrange(jax.random.key(s))) for s in (0, 1))
    assert (first != second).any()
    np.testing.assert_array_equal(DIGITS.y_train[first] // 2, DIGITS.y_train[second] // 2)


def test_class_order_and_classes_per_task():
    order = [5, 4, 1, 2, 9, 6, 7, 0, 3, 8]
    stream, tasks = class_incremental(DIGITS, class_order=order, classes_per_task=5, batch_size=50)
    assert tasks.classes == ((5, 4, 1, 2, 9), (6, 7, 0, 3, 8))
    _, labels = stream.batch(stream.arrange(KEY), 0)
    assert set(labels.tolist()) <= {5, 4, 1, 2, 9}


def test_passes_repeat_each_task():
    stream, tasks = class_incremental(DIGITS, batch_size=10, passes=3)
    once, _ = class_incremental(DIGITS, batch_size=10)
    assert stream.steps == 3 * once.steps
    assert stream.contract.passes == 3
    order = np.asarray(stream.arrange(KEY))[: tasks.ends[0] * 10]
    assert set(DIGITS.y_train[order].tolist()) == {0, 1}
    laps = order.reshape(3, -1)
    assert all(len(set(lap)) == len(lap) for lap in laps.tolist())
    assert len(set(map(tuple, laps.tolist()))) == 3


@pytest.mark.parametrize("scaling", ["unit", "standard", "features", "none"])
def test_scaling(scaling):
    stream, _ = class_incremental(DIGITS, scaling=scaling)
    x = np.asarray(stream.transform(stream.x))
    if scaling == "unit":
        assert (x.min(), x.max()) == (0, 1)
    elif scaling == "standard":
        assert x.mean() == pytest.approx(0, abs=1e-4)
        assert x.std() == pytest.approx(1, abs=1e-4)
    elif scaling == "features":
        varying = DIGITS.x_train.std(0) > 0
        np.testing.assert_allclose(x.mean(0), 0, atol=1e-4)
        np.testing.assert_allclose(x.std(0), varying, atol=1e-4)
    else:
        assert x.max() == 255


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_order": [0, 1, 2]}, "class_order must list each class from 0 to 9 once"),
        ({"class_order": 3}, r"must list each class from 0 to 9 once, got \[3\]"),
        ({"class_order": [float(i) for i in range(10)]}, "class_order must list each class"),
        (
            {"class_order": [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]},
            "class_order must list each class",
        ),
        ({"classes_per_task": 0}, "classes_per_task must be a whole number, 1 or more, got 0"),
        ({"classes_per_task": 1.5}, "classes_per_task must be a whole number, 1 or more, got 1.5"),
        ({"classes_per_task": 11}, "classes_per_task must be between 1 and the 10"),
        ({"batch_size": 1000}, "larger than the smallest task"),
        ({"batch_size": 5000, "cut": "stream"}, "larger than the data"),
        ({"batch_size": 0}, "batch_size must be a whole number, 1 or more, got 0"),
        ({"passes": 0}, "passes must be a whole number, 1 or more, got 0"),
    ],
)
def test_senseless_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        unchecked(DIGITS, **options)


@pytest.mark.parametrize(
    ("labels", "first", "message"),
    [
        ([1, 2, 1, 2], 0.0, r"whole numbers from 0 on.*got \[1, 2\]"),
        ([-1, 0, 1, 0], 0.0, "whole numbers from 0 on"),
        ([0, 2, 0, 2], 0.0, "each of them in the training data"),
        ([0.0, 1.0, 0.0, 1.0], 0.0, "from_arrays numbers any labels"),
        ([0, 1, 0, 1], np.nan, "x_train has NaN or infinity"),
    ],
)
def test_labels_and_inputs_are_checked(labels, first, message):
    x, y = np.array([[first], [1.0], [2.0], [3.0]], np.float32), np.array(labels)
    with pytest.raises(ValueError, match=message):
        class_incremental(Dataset("mine", x, y, np.ones_like(x), y), batch_size=1)
    none = Dataset("none", x[:0], np.zeros(0, np.int32), x, np.zeros(4, np.int32))
    with pytest.raises(ValueError, match="whole numbers from 0 on"):
        class_incremental(none, batch_size=1)


def test_unsuitable_data_sets_are_refused():
    with pytest.raises(TypeError, match="expected a Dataset, got str; load"):
        unchecked("digits")
    x, y = np.ones((10, 2), np.float32), np.array([0, 1] * 5)
    for wrong in (Dataset("", x, y[:6], x, y), Dataset("", x, y, x[:, :1], y)):
        with pytest.raises(
            ValueError, match="must have equal shapes and one label each, got shapes"
        ):
            class_incremental(wrong, batch_size=1)


def test_grey_images_are_standardised_by_channel():
    x = np.arange(4 * 3 * 5, dtype=np.uint8).reshape(4, 3, 5)
    y = np.array([0, 1, 0, 1])
    stream, _ = class_incremental(from_arrays(x, y, x, y), batch_size=1, scaling="standard")
    seen = np.asarray(stream.transform(stream.x))
    np.testing.assert_allclose([seen.mean(), seen.std()], [0, 1], atol=1e-6)
    assert seen[..., 0, 0].std() < 1 - 1e-3


def test_held_out_needs_two_or_more():
    with pytest.raises(ValueError, match="every must be 2 or more, got 1"):
        DIGITS.held_out(1)


def test_constant_inputs_stay_finite():
    labels = np.array([0, 1] * 5, np.int32)
    flat = Dataset(
        "flat", np.zeros((10, 3), np.float32), labels, np.full((10, 3), 0.5, np.float32), labels
    )
    for scaling in ("unit", "standard"):
        stream, _ = class_incremental(flat, batch_size=5, scaling=scaling)
        np.testing.assert_array_equal(stream.transform(stream.test_x), 0.5)


def test_features_are_scaled_by_their_largest_magnitude():
    x = np.array([[-4.0, 2.0], [1.0, 0.0]], np.float32)
    y = np.array([0, 1], np.int32)
    stream, _ = class_incremental(Dataset("f", x, y, x, y), batch_size=1)
    np.testing.assert_allclose(stream.transform(stream.x), x / 4)


def test_learners_need_an_output_for_every_class():
    stream, _ = class_incremental(DIGITS, batch_size=100, class_statistics=True)
    with pytest.raises(ValueError, match=r"2 outputs, .* labels from 0 to 9"):
        learn(nearest_class_mean(RAW_INPUTS, 64, 2), stream, KEY, accuracy)


def test_learn_under_jit_and_vmap():
    stream, _ = class_incremental(
        DIGITS, batch_size=100, classes_per_task=10, class_statistics=True
    )
    learner = nearest_class_mean(RAW_INPUTS, 64, 10)
    run = lambda key: learn(learner, stream, key, accuracy)[1]
    keys = jax.random.split(KEY, 2)
    np.testing.assert_allclose(jax.jit(run)(keys[0]), run(keys[0]), atol=1e-6)
    np.testing.assert_allclose(jax.vmap(run)(keys)[1], run(keys[1]), atol=1e-6)


def test_bytes_that_are_not_images_are_scaled_by_the_largest():
    y = np.array([0, 1])
    features = from_arrays(*[np.array([[0, 1], [1, 1]], np.uint8), y] * 2)
    stream, _ = class_incremental(features, batch_size=1)
    np.testing.assert_array_equal(stream.transform(stream.x), [[0, 1], [1, 1]])


def test_class_order_is_any_iterable():
    _, tasks = class_incremental(DIGITS, class_order=reversed(range(10)), batch_size=10)
    assert tasks.classes[0] == (9, 8)
    _, tasks = class_incremental(DIGITS, class_order=np.arange(10), batch_size=10)
    assert tasks.classes[-1] == (8, 9)


def test_shuffled_order_shows_the_same_number_of_samples():
    by_task, tasks = class_incremental(DIGITS, batch_size=50)
    stream, shuffled_tasks = class_incremental(DIGITS, batch_size=50, order="shuffled")
    assert (stream.steps, shuffled_tasks) == (by_task.steps, tasks)
    order = np.asarray(stream.arrange(KEY))[: stream.steps * 50]
    assert len(set(order.tolist())) == len(order)
    assert set(DIGITS.y_train[order[:50]].tolist()) == set(range(10))


def test_rows_restrict_samples_and_scaling():
    kept, held = DIGITS.held_out_rows(5)
    whole, _ = class_incremental(DIGITS.held_out(5), batch_size=20, scaling="standard")
    stream, tasks = class_incremental(DIGITS, batch_size=20, scaling="standard", rows=kept)
    assert (stream.steps, stream.transform) == (whole.steps, whole.transform)
    order = stream.arrange(KEY)
    assert not set(order.tolist()) & set(held.tolist())
    assert set(DIGITS.y_train[order[: tasks.ends[0] * 20]].tolist()) == {0, 1}
    expected = whole.batch(whole.arrange(KEY), 3)
    for ours, theirs in zip(stream.batch(order, 3), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_many_tasks_are_arranged_by_sorting():
    y = jnp.asarray(np.random.default_rng(0).permutation(np.repeat(np.arange(24), 7)))
    groups = tuple((2 * i + 1, 2 * i) for i in range(12))
    order = ClassOrder(groups, (14,) * 12, (12,) * 12, passes=2)
    rows = np.asarray(order(KEY, y))
    assert rows.shape == (12 * 12 * 2,)
    for i, part in enumerate(rows.reshape(12, 2, 12)):
        for lap in part:
            assert len(set(lap.tolist())) == 12
            assert set(np.asarray(y)[lap].tolist()) <= set(groups[i])
        assert part[0].tolist() != part[1].tolist()
    other = np.asarray(order(jax.random.key(1), y))
    assert (rows != other).any()
