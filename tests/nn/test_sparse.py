"""Fuzzy tiling, local winners, maxout, and the elephant's later form."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elephant_nn.nn.networks import mlp
from elephant_nn.nn.sparse import fuzzy_tiling, maxout, normalised_emlp, winner_take_all


def test_fuzzy_tiling_of_a_worked_example():
    # Four tiles of width 1: [-2, -1], [-1, 0], [0, 1], [1, 2].
    x = jnp.array([[0.25, -1.9, 9.0, jnp.nan]])
    code = fuzzy_tiling(x, bound=2.0, tiles=4).reshape(4, 4).T
    np.testing.assert_allclose(code[0], [0, 0.75, 1, 0.25], atol=1e-6)
    np.testing.assert_allclose(code[1], [1, 0.1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(code[2], [0, 0, 0, 0])
    assert jnp.isnan(code[3]).all()


def test_winners_and_maxout_of_a_worked_example():
    # Units 0 and 2 are one group, 1 and 3 the other; of equal ones the first wins.
    x = jnp.array([[1.0, -2.0, 3.0, -1.0], [5.0, 0.0, 5.0, 2.0], [1.0, 0.0, jnp.nan, 2.0]])
    nan = np.nan
    np.testing.assert_array_equal(
        winner_take_all(x, 2), [[0, 0, 3, -1], [5, 0, 0, 2], [nan, 0, 0, 2]]
    )
    np.testing.assert_array_equal(maxout(x, 2), [[3, -1], [5, 2], [nan, 2]])


def test_only_winners_have_gradients():
    slopes = jax.grad(lambda x: winner_take_all(x, 3).sum())(jnp.array([1.0, 4.0, 2.0]))
    np.testing.assert_array_equal(slopes, [0, 1, 0])
    tied = jax.grad(lambda x: winner_take_all(x, 2).sum())(jnp.array([0.0, 0.0]))
    np.testing.assert_array_equal(tied, [1, 0])


def test_senseless_settings_are_refused():
    with pytest.raises(ValueError, match="bound must be above 0, got 0"):
        fuzzy_tiling(jnp.ones(3), bound=0)
    with pytest.raises(ValueError, match="got a=-1"):
        normalised_emlp((2, 5, 3), a=-1)


@pytest.mark.parametrize("activation", [maxout, winner_take_all])
def test_groups_that_do_not_fit_are_refused(activation):
    with pytest.raises(ValueError, match=r"10 units .* groups of 4"):
        activation(jnp.zeros((2, 10)), 4)


@pytest.mark.parametrize(
    ("activation", "width"),
    [
        (partial(fuzzy_tiling, tiles=5), 60),
        (partial(winner_take_all, group=3), 12),
        (partial(maxout, group=3), 4),
    ],
)
def test_the_head_fits_the_activation(activation, width):
    network = mlp((2, 12, 3), activation, output_bias=True)
    params = network.init(jax.random.key(0))
    assert params[-1]["w"].shape == (width, 3)
    assert network.apply(params, jnp.ones((5, 2))).shape == (5, 3)


def test_normalised_emlp():
    network = normalised_emlp((2, 50, 3), a=0.2, sigma_bias=0.4)
    params = network.init(jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (8, 2))
    np.testing.assert_allclose(jnp.exp(params[0]["log_a"]), 0.2, rtol=1e-6)
    # Normalised units do not care about the size of the affine layer's output.
    larger = [{**params[0], "w": 10 * params[0]["w"], "b": 10 * params[0]["b"]}, params[1]]
    np.testing.assert_allclose(
        network.features(params, x), network.features(larger, x), rtol=1e-2, atol=1e-3
    )
    slopes = jax.grad(lambda p: network.apply(p, x).sum())(params)
    for name in ("scale", "shift", "log_a", "log_height"):
        assert jnp.abs(slopes[0][name]).max() > 0, name
