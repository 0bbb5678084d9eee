import dataclasses
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from elephant_nn import (
    Contract,
    Learner,
    Stream,
    cross_entropy,
    emlp,
    function_stream,
    gradient,
    learn,
    mlp,
    sample_stream,
    sine_stream,
)
from elephant_nn.streams.stream import (
    Epochs,
    Scaling,
    accuracy,
    accuracy_by_class,
    advance,
    evaluate,
    in_blocks,
    in_order,
    named_key,
    shuffled,
    start,
)

KEY = jax.random.key(0)
unchecked = inspect.unwrap(learn)
"""As users have it: without the tests' type checks, which would come first."""

COSINE = function_stream(jnp.cos, 0, 1, samples=10, test_samples=11)
LEARNER = gradient(emlp((1, 30, 1), a=0.2, sigma_bias=0.5), optax.adam(1e-2), updates=2)


def assert_close(one, other, rtol=1e-4, atol=1e-6):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol, atol), one, other)


# The training loop


def test_learn_is_a_loop_over_batches():
    state, curve = learn(LEARNER, COSINE, KEY, at=1)
    update = jax.jit(LEARNER.update)
    by_hand, expected = LEARNER.init(named_key(KEY, "init"), COSINE.x[:1]), []
    for x, y in zip(COSINE.x, COSINE.y, strict=True):
        by_hand = update(by_hand, (x[None], y[None]))
        error = LEARNER.predict(by_hand, COSINE.test_x) - COSINE.test_y
        expected.append(float(jnp.mean(error**2)))
    np.testing.assert_allclose(curve, expected, rtol=1e-4)
    assert_close(state, by_hand, atol=1e-5)


def test_times_of_evaluation():
    state, every = learn(LEARNER, COSINE, KEY, at=1)
    assert every.shape == (10,)
    for at, batches in (
        (None, [10]),
        (4, [4, 8, 10]),
        (5, [5, 10]),
        ([3, 7], [3, 7, 10]),
        ((3, 3, 10), [3, 3, 10]),
    ):
        other, values = learn(LEARNER, COSINE, KEY, at=at)
        np.testing.assert_allclose(values, every[jnp.array(batches) - 1], rtol=1e-4)
        assert_close(other, state)
    _, values = learn(LEARNER, COSINE, KEY, at=[0])
    fresh, _ = start(LEARNER, COSINE, KEY)
    before = jnp.mean((LEARNER.predict(fresh, COSINE.test_x) - COSINE.test_y) ** 2)
    np.testing.assert_allclose(values, [before, every[-1]], rtol=1e-4)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        (0, "at must be 1 or more batches, got 0"),
        ([11], "from 0 to 10 in ascending order"),
        ([5, 3], "from 0 to 10 in ascending order"),
        ([-1], "from 0 to 10 in ascending order"),
    ],
)
def test_impossible_times_are_refused(at, message):
    with pytest.raises(ValueError, match=message):
        learn(LEARNER, COSINE, KEY, at=at)


@pytest.mark.parametrize("steps", [1, 3, jnp.array(3)], ids=["one", "known", "traced"])
def test_advance_updates_on_consecutive_batches(steps):
    state, order = start(LEARNER, COSINE, KEY)
    expected = state
    for t in range(2, 2 + int(steps)):
        expected = LEARNER.update(expected, COSINE.batch(order, t))
    assert_close(advance(LEARNER, COSINE, order, state, 2, steps), expected)


def test_learn_continues_from_a_state():
    x, y = COSINE.x, COSINE.y
    halves = [sample_stream(x[part], y[part]) for part in (slice(5), slice(5, 10))]
    state, _ = learn(LEARNER, halves[0], KEY)
    state, error = learn(LEARNER, halves[1], jax.random.key(1), state=state)
    fresh, order = start(LEARNER, COSINE, KEY)
    expected = advance(LEARNER, COSINE, order, fresh, 0, 10)
    assert_close(state, expected)
    from_scratch, _ = learn(LEARNER, halves[1], KEY)
    assert not np.allclose(from_scratch.params[0]["w"], state.params[0]["w"], atol=1e-3)
    predicted = LEARNER.predict(expected, halves[1].test_x)
    np.testing.assert_allclose(error, [jnp.mean((predicted - halves[1].test_y) ** 2)], rtol=1e-3)


def test_metric_defaults_to_the_kind_of_target():
    labelled = sample_stream(np.eye(3), [0, 1, 2])
    classifier = gradient(mlp((3, 5, 3)), optax.sgd(0.0), cross_entropy)
    state, values = learn(classifier, labelled, KEY)
    assert values[0] == accuracy(classifier.predict(state, labelled.x), labelled.y)
    assert learn(classifier, labelled, KEY, accuracy_by_class(3))[1].shape == (1, 3)


def test_elephant_remembers_the_sine_and_relu_forgets_it():
    elephant = gradient(
        emlp((1, 1000, 1), a=0.04, sigma_bias=0.64, d=8), optax.adam(1e-4), updates=10
    )
    relu = gradient(mlp((1, 1000, 1)), optax.adam(3e-3), updates=10)
    errors = [float(learn(learner, sine_stream(), KEY)[1][-1]) for learner in (elephant, relu)]
    assert errors[0] < 0.03
    assert errors[1] > 0.3


# Labels, divergence, contracts


def constant(outputs):
    """A learner that learns nothing and always predicts the same."""
    return Learner(
        init=lambda key, x: jnp.zeros(()),
        update=lambda state, batch: state,
        predict=lambda state, x: jnp.broadcast_to(jnp.asarray(outputs), (len(x), len(outputs))),
    )


def test_initial_states_do_not_depend_on_labels():
    def init(key, x):
        return jax.random.normal(key, (3,)) + x.mean(0)

    learner = Learner(init, lambda state, batch: state, lambda state, x: x @ jnp.eye(3))
    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.normal(size=(40, 3))), jnp.asarray(rng.integers(0, 3, 40))
    for order in (in_order, shuffled, Epochs(2)):
        stream = Stream(x, y, x, y, batch_size=8, order=order, classes=3)
        permuted = dataclasses.replace(stream, y=jax.random.permutation(KEY, y))
        state, rows = start(learner, stream, KEY)
        np.testing.assert_array_equal(start(learner, permuted, KEY)[0], state)
        expected = init(named_key(KEY, "init"), x[rows[:8]])
        np.testing.assert_allclose(state, expected, rtol=1e-6)
        assert not np.allclose(state, init(named_key(KEY, "init"), x))


@pytest.mark.parametrize(("labels", "found"), [([0, 1, 2], "0 to 2"), ([-1, 0, 1], "-1 to 1")])
def test_labels_without_an_output_are_refused(labels, found):
    x, y = jnp.eye(3), jnp.array(labels)
    stream = Stream(x, y, x, y)
    with pytest.raises(ValueError, match=f"2 outputs, .* labels from {found}"):
        learn(constant([0.0, 1.0]), stream, KEY, accuracy)
    learn(constant([0.0, 1.0]), dataclasses.replace(stream, y=jnp.array([0, 1, 1])), KEY, accuracy)


def test_every_class_of_the_stream_needs_an_output():
    stream = sample_stream(np.eye(2), [0, 1], classes=3)
    with pytest.raises(ValueError, match="2 outputs, but the stream has 3 classes"):
        learn(constant([0.0, 1.0]), stream, KEY)


def test_divergence_warns():
    diverging = dataclasses.replace(
        constant([0.0]),
        update=lambda state, batch: state + 1,
        predict=lambda state, x: jnp.where(state > 3, jnp.nan, 0.0) * x,
    )
    with pytest.warns(RuntimeWarning, match="metric is not finite after 4 batches"):
        learn(diverging, COSINE, KEY, at=2)


def test_divergence_of_a_classifier_warns():
    stream = sample_stream(np.eye(2), [0, 1])
    learner = gradient(mlp((2, 5, 2)), optax.sgd(np.inf), cross_entropy)
    with pytest.warns(RuntimeWarning, match="state is not finite after 2 batches"):
        _, values = learn(learner, stream, KEY)
    assert values[0] == 0


def test_needs_that_are_not_granted_are_refused():
    greedy = dataclasses.replace(LEARNER, needs=Contract(task_boundary=True))
    with pytest.raises(ValueError, match="needs task_boundary=True"):
        learn(greedy, COSINE, KEY)
    with pytest.raises(ValueError, match="needs task_boundary=True"):
        start(greedy, COSINE, KEY)


def test_wrong_kinds_of_arguments_are_refused():
    with pytest.raises(TypeError, match="learn: expected a Learner, got Network"):
        unchecked(mlp((1, 3, 1)), COSINE, KEY)
    with pytest.raises(TypeError, match="expected a Stream, got tuple; class_incremental returns"):
        unchecked(LEARNER, (COSINE, "tasks"), KEY)
    for number in (3, np.int64(3)):
        with pytest.raises(TypeError, match=r"must be a JAX key, like jax.random.key\(3\)"):
            unchecked(LEARNER, COSINE, number)


# Streams


def test_streams_are_pytrees_with_a_hashable_description():
    stream = dataclasses.replace(COSINE, transform=Scaling(2.0, 1.0), order=Epochs(2), shown=20)
    leaves, structure = jax.tree.flatten(stream)
    assert len(leaves) == 4
    again = dataclasses.replace(
        COSINE, x=COSINE.x + 1, transform=Scaling(2.0, 1.0), order=Epochs(2), shown=20
    )
    assert hash(jax.tree.structure(again)) == hash(structure)
    assert jax.tree.structure(again) == structure
    for other in ({"batch_size": 2}, {"order": Epochs(3)}, {"transform": Scaling(3.0)}):
        assert jax.tree.structure(dataclasses.replace(stream, **other)) != structure


@pytest.mark.parametrize("batch_size", [0, -1])
def test_senseless_batch_sizes_are_refused(batch_size):
    with pytest.raises(ValueError, match="batch_size must be a whole number, 1 or more"):
        dataclasses.replace(COSINE, batch_size=batch_size)


def test_rows_restrict_what_is_shown():
    rows = jnp.array([8, 1, 3, 6])
    stream = dataclasses.replace(COSINE, rows=rows, batch_size=2)
    assert stream.steps == 2
    np.testing.assert_array_equal(stream.arrange(KEY), rows)
    np.testing.assert_array_equal(stream.batch(stream.arrange(KEY), 1)[0], COSINE.x[rows[2:]])
    mixed = dataclasses.replace(stream, order=shuffled).arrange(KEY)
    assert sorted(mixed.tolist()) == [1, 3, 6, 8]


def test_orders():
    y = jnp.zeros(50)
    assert in_order(KEY, y).tolist() == list(range(50))
    order = shuffled(KEY, y)
    assert sorted(order.tolist()) == list(range(50))
    assert order.tolist() != list(range(50))
    laps = Epochs(3)(KEY, y).reshape(3, 50)
    for lap in laps.tolist():
        assert sorted(lap) == list(range(50))
    assert len({tuple(lap) for lap in laps.tolist()}) == 3


def test_orders_that_are_too_short_are_refused():
    stream = dataclasses.replace(COSINE, shown=30, order=shuffled)
    for at in (None, 10, [20]):
        with pytest.raises(ValueError, match="gives 10 rows, but 30 batches of 1 need 30"):
            learn(LEARNER, stream, KEY, at=at)


def test_scaling():
    x = jnp.array([[0, 255], [51, 102]], jnp.uint8)
    assert Scaling()(x).dtype == jnp.float32
    np.testing.assert_array_equal(Scaling()(x), x)
    np.testing.assert_allclose(Scaling(255.0)(x), np.asarray(x) / 255, rtol=1e-6)
    np.testing.assert_allclose(
        Scaling((2.0, 5.0), (1.0, 2.0))(x), (np.asarray(x, float) - [1, 2]) / [2, 5], rtol=1e-6
    )


def test_named_keys_are_independent():
    names = ("init", "data", "explore")
    keys = {jax.random.key_data(named_key(KEY, name)).tobytes() for name in names}
    assert len(keys) == 3
    again = named_key(KEY, "init")
    assert jax.random.key_data(again).tobytes() in keys


# Metrics


def test_evaluate_on_other_samples():
    learner = constant([0.0, 1.0])
    x, y = jnp.zeros((4, 2)), jnp.array([0, 1, 1, 1])
    stream = Stream(x, y, x[:1], y[:1], classes=2)
    assert evaluate(learner, stream, jnp.zeros(()), accuracy) == 0
    assert evaluate(learner, stream, jnp.zeros(()), accuracy, (x, y, None)) == 0.75
    rows = jnp.array([1, 2])
    assert evaluate(learner, stream, jnp.zeros(()), accuracy, (x, y, rows)) == 1


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


@pytest.mark.parametrize("n", [1, 500, 1234])
def test_blocks_cover_every_row_once(n):
    x, apply = jnp.arange(n), lambda rows: jax.nn.one_hot(rows % 7, 7)
    assert (in_blocks(apply, x, size=500).argmax(1) == x % 7).all()
    rows = x[::-1]
    assert (in_blocks(apply, x, rows, size=500).argmax(1) == rows % 7).all()


def test_the_state_of_another_learner_is_refused():
    stream = function_stream(jnp.cos, 0, 1, samples=6, test_samples=5)
    make = lambda units: gradient(mlp((1, units, 1)), optax.adam(1e-3))
    state, _ = learn(make(4), stream, KEY)
    for wrong in (state, state.params, 3):
        with pytest.raises(ValueError, match="state is not a state of this learner"):
            learn(make(5), stream, KEY, state=wrong)
