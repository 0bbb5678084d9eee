import inspect

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, strategies as st

from elephant_nn import CLASSICAL, Contract, emlp, gradient, mlp, set_kl, sr_nn, streaming_ewc

KEY = jax.random.key(0)
BATCH = (jnp.array([[0.5], [1.0]]), jnp.array([[1.0], [-1.0]]))


@pytest.mark.parametrize("optimiser", [optax.adam(1e-2), optax.sgd(1e-2), optax.rmsprop(1e-3)])
def test_gradient_takes_its_updates(optimiser):
    network = emlp((1, 20, 1), a=0.3, sigma_bias=0.5)
    learner = gradient(network, optimiser, updates=3)
    state = learner.init(KEY, BATCH[0])
    params, inner = state.params, state.optimiser
    for _ in range(3):
        slopes = jax.grad(lambda p: jnp.mean((network.apply(p, BATCH[0]) - BATCH[1]) ** 2))(params)
        change, inner = optimiser.update(slopes, inner, params)
        params = optax.apply_updates(params, change)
    after = learner.update(state, BATCH)
    for ours, expected in zip(
        jax.tree.leaves(after), jax.tree.leaves((params, inner)), strict=True
    ):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-7)


def test_targets_of_another_shape_are_refused():
    learner = gradient(mlp((1, 10, 1)), optax.sgd(0.1))
    with pytest.raises(ValueError, match=r"targets of shape \(2,\) must match"):
        learner.update(learner.init(KEY, BATCH[0]), (BATCH[0], BATCH[1][:, 0]))


def test_predict_changes_nothing():
    learner = gradient(mlp((1, 10, 1)), optax.adam(1e-2))
    state = learner.init(KEY, BATCH[0])
    copy = jax.tree.map(jnp.copy, state)
    learner.predict(state, BATCH[0])
    jax.tree.map(np.testing.assert_array_equal, state, copy)


def test_gradient_learners_expose_their_network():
    network = mlp((1, 10, 1))
    for learner in (
        gradient(network, optax.adam(1e-2)),
        sr_nn(network, optax.adam(1e-2), weight=0.1, beta=0.1),
        streaming_ewc(network, optax.adam(1e-2), weight=1.0, decay=0.9),
    ):
        assert learner.network is network
        params = learner.init(KEY, BATCH[0]).params
        jax.tree.map(np.testing.assert_array_equal, params, network.init(KEY))


def test_set_kl_of_a_worked_example():
    features = jnp.array([[0.4, 0.05, -3.0], [0.0, 0.15, 0.0]])  # means 0.2, 0.1, -1.5
    expected = 0.5 - np.log(0.5) - 1  # only the first mean is above beta = 0.1
    assert set_kl(features, 0.1) == pytest.approx(expected, rel=1e-5)


@given(st.lists(st.floats(-5, 5, width=32), min_size=8, max_size=8), st.floats(0.01, 1))
def test_gradient_of_set_kl(values, beta):
    features = jnp.array([values])
    loss, slope = jax.value_and_grad(set_kl)(features, beta)
    assert loss >= 0
    assert np.isfinite(slope).all()
    assert (slope >= 0).all()
    mean = features[0] + 1e-8
    expected = jnp.where(mean > beta, 1 / mean - beta / mean**2, 0)
    np.testing.assert_allclose(slope[0], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", CLASSICAL)
def test_sr_nn_makes_features_sparser(name):
    network = mlp((1, 50, 1), CLASSICAL[name])
    x = jnp.array([[1.5]]), jnp.array([[0.3]])
    after = {}
    for weight in (0.0, 1.0):
        learner = sr_nn(network, optax.adam(1e-2), weight=weight, beta=0.05, updates=20)
        after[weight] = learner.update(learner.init(KEY, x[0]), x).params
    plain = gradient(network, optax.adam(1e-2), updates=20)
    expected = plain.update(plain.init(KEY, x[0]), x).params
    jax.tree.map(lambda p, q: np.testing.assert_allclose(p, q, atol=1e-6), after[0.0], expected)
    features = {w: network.features(p, x[0]) for w, p in after.items()}
    assert jnp.maximum(features[1.0], 0).sum() < 0.9 * jnp.maximum(features[0.0], 0).sum()


def test_contract_refusals():
    strict = Contract()
    assert strict.refusals(Contract()) == []
    needs = Contract(passes=500, task_boundary=True, class_statistics=True)
    assert strict.refusals(needs) == ["passes=500", "task_boundary=True", "class_statistics=True"]
    assert Contract(passes=1000, task_boundary=True).refusals(needs) == ["class_statistics=True"]
    assert Contract(1000, True, True).refusals(needs) == []


def test_wrong_arguments_are_refused():
    bare = inspect.unwrap(gradient)  # without the tests' type checks
    with pytest.raises(TypeError, match=r"optimiser must be one of optax's, .* got 0.001"):
        bare(mlp((1, 3, 1)), 1e-3)
    with pytest.raises(ValueError, match=r"updates must be a whole number, 1 or more, got 1.5"):
        bare(mlp((1, 3, 1)), optax.sgd(0.1), updates=1.5)
