import dataclasses
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from elephant_nn import (
    Contract,
    array_stream,
    emlp,
    function_stream,
    gradient,
    learn,
    mlp,
    sine_stream,
)
from elephant_nn.streams.stream import accuracy, accuracy_by_class, in_blocks, shuffled

KEY = jax.random.key(0)


def test_the_sine_is_the_papers():
    stream = sine_stream()
    assert stream.steps == 200
    assert stream.batch_size == 1
    assert (stream.x[0, 0], stream.x[-1, 0]) == (0, 2)
    assert (np.diff(stream.x[:, 0]) > 0).all()
    np.testing.assert_allclose(stream.y, np.sin(np.pi * np.asarray(stream.x, float)), atol=1e-6)
    assert stream.test_x.shape == stream.test_y.shape == (1000, 1)
    assert (stream.test_x[0, 0], stream.test_x[-1, 0]) == (0, 2)
    assert stream.contract == Contract(passes=1, task_boundary=False)


def test_an_order_that_is_too_short_is_refused():
    stream = dataclasses.replace(sine_stream(), shown=600, order=shuffled)
    learner = gradient(mlp((1, 5, 1)), optax.sgd(0.1))
    for way in ({"evaluate_every": 200}, {"evaluate_at": [300]}):
        with pytest.raises(ValueError, match="gives 200 rows, but 600 batches of 1 need 600"):
            learn(learner, stream, KEY, **way)


def test_learn_is_the_loop_one_would_write():
    stream = function_stream(jnp.cos, 0, 1, samples=7, test_samples=11)
    network = emlp((1, 30, 1), a=0.2, sigma_bias=0.5)
    learner = gradient(network, optax.adam(1e-2), updates=2)
    state, curve = learn(learner, stream, KEY)
    loop, expected = learner.init(jax.random.split(KEY)[0]), []
    for x, y in zip(stream.x, stream.y, strict=True):
        loop = learner.update(loop, (x[None], y[None]))
        error = network.apply(loop.params, stream.test_x) - stream.test_y
        expected.append(float(jnp.mean(error**2)))
    np.testing.assert_allclose(curve, expected, rtol=1e-4)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), state, loop)


def test_measuring_rarely_changes_the_curve_only():
    stream = function_stream(jnp.cos, 0, 1, samples=10, test_samples=5)
    learner = gradient(mlp((1, 8, 1)), optax.sgd(0.1))
    state, curve = learn(learner, stream, KEY)
    rare_state, rare = learn(learner, stream, KEY, evaluate_every=4)
    np.testing.assert_allclose(rare, curve[jnp.array([3, 7, 9])], rtol=1e-4)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), state, rare_state
    )
    with pytest.raises(ValueError, match="evaluate_every must be a whole number, 1 or more, got 0"):
        learn(learner, stream, KEY, evaluate_every=0)
    with pytest.raises(TypeError, match=r"like jax\.random\.key\(7\), got 7"):
        inspect.unwrap(learn)(learner, stream, 7)


def test_an_elephant_remembers_the_sine_and_relu_does_not():
    elephant = gradient(
        emlp((1, 1000, 1), a=0.04, sigma_bias=0.64, d=8), optax.adam(1e-4), updates=10
    )
    relu = gradient(mlp((1, 1000, 1)), optax.adam(3e-3), updates=10)
    errors = [float(learn(learner, sine_stream(), KEY)[1][-1]) for learner in (elephant, relu)]
    assert errors[0] < 0.03
    assert errors[1] > 0.3


def test_own_arrays_in_batches_leave_out_the_tail():
    x = np.arange(10.0)
    stream = array_stream(x, 2 * x, batch_size=4)
    assert stream.steps == 2
    order = stream.order(KEY, 10)
    batch_x, batch_y = stream.batch(order, jnp.array(1))
    np.testing.assert_array_equal(batch_x[:, 0], [4, 5, 6, 7])
    np.testing.assert_array_equal(batch_y[:, 0], [8, 10, 12, 14])
    np.testing.assert_array_equal(stream.test_x, stream.x)


def test_shuffled_shows_every_sample_once():
    order = shuffled(KEY, 50)
    assert sorted(order.tolist()) == list(range(50))
    assert order.tolist() != list(range(50))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([1.0, np.nan, 3.0], [1.0, 2.0, 3.0]), "x has NaN or infinity in 1 of 3 rows.*row 1"),
        (([1.0, 2.0], [1.0, np.inf]), "y has NaN"),
        (([1.0, 2.0], [1.0]), "same number of rows, got 2 and 1"),
        (([], []), "at least one row"),
        (([1.0], [1.0], [1.0]), "both test_x and test_y"),
        (([1.0], [1.0], [[1.0, 2.0]], [1.0]), "must have the columns of x and y"),
        (([1.0], ["cat"]), "y must be numbers .* labels of classes are for from_arrays"),
    ],
)
def test_bad_arrays_are_named(arrays, message):
    with pytest.raises(ValueError, match=message):
        array_stream(*arrays)


@pytest.mark.parametrize("batch_size", [0, 4])
def test_bad_batch_sizes_are_refused(batch_size):
    with pytest.raises(ValueError, match="batch_size must be between 1 and the 3 rows"):
        array_stream([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], batch_size=batch_size)


def test_a_stream_refuses_what_it_does_not_grant():
    learner = gradient(mlp((1, 3, 1)), optax.sgd(0.1))
    greedy = dataclasses.replace(learner, needs=Contract(task_boundary=True))
    with pytest.raises(ValueError, match="needs task_boundary=True"):
        learn(greedy, sine_stream(), KEY)


def test_what_is_no_learner_stream_or_key_is_named():
    bare = inspect.unwrap(learn)  # without the check of types that tests have
    network, stream = mlp((1, 3, 1)), sine_stream()
    learner = gradient(network, optax.sgd(0.1))
    with pytest.raises(TypeError, match="learn: needs a Learner, got Network"):
        bare(network, stream, KEY)
    with pytest.raises(TypeError, match="needs a Stream, got tuple; class_incremental gives two"):
        bare(learner, (stream, "tasks"), KEY)
    with pytest.raises(TypeError, match=r"must be a JAX key, like jax.random.key\(3\)"):
        bare(learner, stream, np.int64(3))


def test_measuring_at_moments_is_measuring_there():
    x = np.linspace(0, 1, 20)
    stream = array_stream(x, x**2, batch_size=2)
    learner = gradient(emlp((1, 10, 1), a=0.5, sigma_bias=0.5), optax.sgd(0.1))
    key = jax.random.key(0)
    state, every = learn(learner, stream, key)
    same, some = learn(learner, stream, key, evaluate_at=(3, 7))
    np.testing.assert_allclose(some, every[jnp.array([2, 6, 9])], rtol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), state, same)
    _, twice = learn(learner, stream, key, evaluate_at=(0, 3, 3))
    assert twice.shape == (4,)
    assert twice[1] == twice[2]
    for moments in ((11,), (5, 3), (2.5,)):
        with pytest.raises(ValueError, match="batches from 0 to 10 in ascending order"):
            inspect.unwrap(learn)(learner, stream, key, evaluate_at=moments)


def test_accuracy_by_class():
    out = jnp.eye(3)[jnp.array([0, 0, 1, 1])]
    by_class = accuracy_by_class(3)(out, jnp.array([0, 1, 1, 1]))
    np.testing.assert_allclose(by_class, [1, 2 / 3, 0], rtol=1e-6)


def test_accuracy():
    out = jnp.array([[0.1, 0.9], [0.8, 0.2], [0.4, 0.6]])
    assert accuracy(out, jnp.array([1, 0, 0])) == pytest.approx(2 / 3)
    broken = jnp.full((3, 2), jnp.nan)
    assert accuracy(broken, jnp.array([0, 0, 1])) == 0
    np.testing.assert_array_equal(accuracy_by_class(2)(broken, jnp.array([0, 0, 1])), 0)
    for measure in (accuracy, accuracy_by_class(2)):
        with pytest.raises(ValueError, match=r"labels of shape \(3, 1\)"):
            measure(out, jnp.array([[1], [0], [0]]))


@pytest.mark.parametrize("n", [1, 499, 500, 501, 1234])
def test_blocks_cover_every_row_once(n):
    x = jnp.arange(n)
    assert (in_blocks(lambda rows: jax.nn.one_hot(rows % 7, 7), x, 500).argmax(1) == x % 7).all()
