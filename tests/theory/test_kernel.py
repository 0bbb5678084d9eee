import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support import name_of

from elephant_nn import (
    CLASSICAL,
    elephant_activation,
    emlp,
    kernel_radius,
    mlp,
    normalised_kernel,
    ntk,
    ntk_as_printed,
    ntk_closed_form,
    update_effect,
)

KEY = jax.random.key(3)
ACTIVATIONS = [*CLASSICAL.values(), elephant_activation(0.3, 4)]


def explicit_ntk(network, params, x, x_t):
    """Inner products of explicit gradients, one pair of points at a time."""
    slope = jax.jit(jax.grad(lambda p, v, k: network.apply(p, v[None])[0, k]))
    outputs = range(network.apply(params, x[:1]).shape[1])

    def gradients(points):
        flat = lambda tree: np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(tree)])
        return [[flat(slope(params, v, k)) for k in outputs] for v in points]

    return np.array(
        [[[[g @ h for h in hs] for g in gs] for hs in gradients(x_t)] for gs in gradients(x)]
    )


@pytest.mark.parametrize("sizes", [(2, 5, 3), (2, 4, 6, 2), (2, 5, 1)])
def test_ntk_is_the_inner_product_of_gradients(sizes):
    network = emlp(sizes, a=0.4, sigma_bias=0.3, d=4, output_bias=True)
    params = network.init(KEY)
    x, x_t = jax.random.normal(KEY, (4, 2)), jax.random.normal(jax.random.key(1), (3, 2))
    expected = explicit_ntk(network, params, x, x_t)
    expected = expected[..., 0, 0] if sizes[-1] == 1 else expected
    np.testing.assert_allclose(ntk(network, params, x, x_t), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        ntk(network, params, x, x_t[1]), expected[:, 1], rtol=1e-4, atol=1e-5
    )


def test_ntk_of_thousands_of_points():
    network = emlp((1, 1000, 1), a=0.08, sigma_bias=1.28, d=8)
    x = jnp.linspace(0, 2, 5000)[:, None]
    assert ntk(network, network.init(KEY), x, jnp.array([1.0])).shape == (5000,)


def test_ntk_refuses_a_point_of_another_shape():
    network = mlp((2, 3, 1))
    with pytest.raises(ValueError, match="x_t must be one input"):
        ntk(network, network.init(KEY), jnp.ones((4, 2)), jnp.ones((1, 1, 2)))


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=name_of)
def test_closed_form_equals_the_kernel(activation):
    network = mlp((3, 40, 1), activation, sigma_bias=0.5)
    params, x = network.init(KEY), jax.random.normal(KEY, (20, 3))
    exact = ntk(network, params, x, x[0])
    np.testing.assert_allclose(
        ntk_closed_form(params, activation, x, x[0]), exact, rtol=2e-4, atol=1e-5
    )


def test_printed_lemma_over_counts_by_the_width():
    activation = elephant_activation(0.08, 8)
    params = mlp((1, 2000, 1), activation, sigma_bias=1.0).init(KEY)
    x = jnp.array([[0.7]])
    exact = ntk_closed_form(params, activation, x, x[0])[0]
    printed = ntk_as_printed(params, activation, x, x[0])[0]
    values = activation(x @ params[0]["w"] + params[0]["b"])
    first_term = jnp.sum(values**2)
    assert (printed - first_term) / (exact - first_term) == pytest.approx(2000, rel=0.25)


def test_printed_lemma_holds_for_one_unit():
    activation = CLASSICAL["tanh"]
    params = mlp((2, 1, 1), activation, sigma_bias=0.0).init(KEY)
    x = jax.random.normal(KEY, (5, 2))
    np.testing.assert_allclose(
        ntk_as_printed(params, activation, x, x[0]),
        ntk_closed_form(params, activation, x, x[0]),
        rtol=1e-5,
    )


@pytest.mark.parametrize(
    "network", [mlp((2, 3, 3, 1)), mlp((2, 3, 2)), mlp((2, 3, 1), output_bias=True)]
)
def test_closed_form_refuses_other_networks(network):
    with pytest.raises(ValueError, match="one hidden layer, one output"):
        ntk_closed_form(network.init(KEY), CLASSICAL["relu"], jnp.ones((1, 2)), jnp.ones(2))


@settings(deadline=None, max_examples=30)
@given(st.floats(0.05, 1), st.floats(1.01, 5), st.integers(0, 2**31 - 1))
def test_kernel_is_zero_beyond_2a_at_infinite_sharpness(a, factor, seed):
    keys = jax.random.split(jax.random.key(seed), 3)
    network = emlp((3, 20, 1), a=a, sigma_bias=1.0, d=math.inf)
    params = network.init(keys[0])
    x_t, direction = jax.random.normal(keys[1], (3,)), jax.random.normal(keys[2], (3,))
    nearest = jnp.abs(direction @ params[0]["w"]).min()
    x = x_t + direction * factor * 2 * a / nearest  # every unit moves by more than 2a
    assert jnp.all(jnp.abs((x - x_t) @ params[0]["w"]) > 2 * a)
    assert ntk(network, params, x[None], x_t)[0] == 0


def test_the_theorem_needs_every_unit():
    network = emlp((1, 2, 1), a=0.1, sigma_bias=0.0, d=math.inf)
    params = network.init(KEY)
    params[0]["w"] = jnp.array([[1.0, 0.0]])
    assert ntk(network, params, jnp.array([[5.0]]), jnp.array([0.0]))[0] > 0


def test_radius_and_normalisation_of_a_worked_example():
    x = np.linspace(-1, 1, 5)[:, None]
    kernel = jnp.array([0.1, -0.5, 2.0, 0.3, 0.0])
    np.testing.assert_allclose(normalised_kernel(kernel), kernel / 2)
    assert kernel_radius(x, [0.0], kernel, level=0.2) == pytest.approx(0.5)
    assert kernel_radius(x, [0.0], kernel, level=0.01) == pytest.approx(1.0)
    assert kernel_radius(x, [0.0], kernel * 0) == 0
    assert np.isnan(kernel_radius(x, [0.0], kernel * jnp.nan))
    with pytest.raises(ValueError, match=r"level .* got 2"):
        kernel_radius(x, [0.0], kernel, level=2)
    np.testing.assert_array_equal(normalised_kernel(kernel * 0), 0)


def test_elephants_are_more_local_than_relu():
    x = jnp.linspace(0, 2, 400)[:, None]
    at = jnp.array([1.0])
    radius = {}
    for name, network in {
        "elephant": emlp((1, 1000, 1), a=0.04, sigma_bias=0.64, d=8),
        "relu": mlp((1, 1000, 1)),
    }.items():
        radius[name] = kernel_radius(x, at, ntk(network, network.init(KEY), x, at), level=0.2)
    assert radius["elephant"] < 0.3 < 0.8 < radius["relu"]


def test_update_effect_equals_the_kernel():
    network = emlp((1, 200, 1), a=0.3, sigma_bias=1.0, d=4)
    params, x = network.init(KEY), jnp.linspace(0, 2, 50)[:, None]
    x_t, y_t, rate = jnp.array([0.8]), jnp.array([1.0]), 1e-5
    error = network.apply(params, x_t[None])[0, 0] - y_t[0]
    predicted = -rate * 2 * error * ntk(network, params, x, x_t)
    moved = update_effect(network, params, x, (x_t, y_t), rate)[:, 0]
    np.testing.assert_allclose(moved, predicted, rtol=0.05, atol=5e-7)
