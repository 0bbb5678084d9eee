import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import name_of

from elephant_nn import CLASSICAL, elephant, elephant_activation, emlp, mlp

KEY = jax.random.key(0)


def test_layers_start_as_in_the_paper():
    params = emlp((9, 50, 40, 3), a=0.1, sigma_bias=0.5, output_bias=True).init(KEY)
    assert [layer["w"].shape for layer in params] == [(9, 50), (50, 40), (40, 3)]
    for layer in params:
        assert np.abs(layer["w"]).max() <= 1 / math.sqrt(layer["w"].shape[0])
    np.testing.assert_array_equal(params[0]["b"], 0)
    np.testing.assert_allclose(
        params[1]["b"][jnp.array([0, -1])], [-0.5 * 3**0.5, 0.5 * 3**0.5], rtol=1e-6
    )
    np.testing.assert_array_equal(params[2]["b"], 0)
    assert "b" not in mlp((1, 5, 1)).init(KEY)[-1]


def test_the_elephant_is_in_the_last_hidden_layer_only():
    network = emlp((4, 6, 5, 2), a=0.3, sigma_bias=0.1, d=4)
    params, x = network.init(KEY), jax.random.normal(KEY, (7, 4))
    first = jax.nn.relu(x @ params[0]["w"] + params[0]["b"])
    features = elephant(first @ params[1]["w"] + params[1]["b"], 0.3, 4)
    np.testing.assert_allclose(network.features(params, x), features, rtol=1e-6)
    np.testing.assert_allclose(network.apply(params, x), features @ params[2]["w"], rtol=1e-5)


def test_output_bias_is_added():
    network = mlp((2, 3, 2), output_bias=True)
    params = network.init(KEY)
    params[-1]["b"] = jnp.array([10.0, 20.0])
    shift = network.apply(params, jnp.ones((1, 2))) - mlp((2, 3, 2)).apply(params, jnp.ones((1, 2)))
    np.testing.assert_allclose(shift, [[10, 20]], rtol=1e-6)


@pytest.mark.parametrize("units", [1, 7, 8, 1000])
@pytest.mark.parametrize(
    "activation",
    [
        *CLASSICAL.values(),
        elephant_activation(0.08, 8),
        elephant_activation(0.3, 2.5),
        elephant_activation(0.3, math.inf),
        jnp.sin,
    ],
    ids=name_of,
)
def test_predict_is_apply(activation, units):
    network = mlp((1, units, 1), activation, sigma_bias=1.0)
    params, x = network.init(KEY), jnp.linspace(-3, 3, 101)[:, None]
    np.testing.assert_allclose(
        network.predict(params, x), network.apply(params, x), rtol=1e-5, atol=2e-6
    )


def test_predict_survives_huge_inputs_and_shows_nan():
    network = emlp((1, 100, 1), a=0.01, sigma_bias=1.0, d=8)
    params = network.init(KEY)
    x = jnp.array([[1e30], [-1e38], [jnp.nan], [0.0]])
    predicted = network.predict(params, x)[:, 0]
    np.testing.assert_allclose(predicted[:2], 0, atol=1e-6)
    assert np.isnan(predicted[2])
    assert np.isfinite(predicted[3])


def test_networks_without_a_fast_path_predict_by_apply():
    network = mlp((3, 4, 2))
    params, x = network.init(KEY), jnp.ones((5, 3))
    np.testing.assert_array_equal(network.predict(params, x), network.apply(params, x))


@pytest.mark.parametrize("sizes", [(), (3,), (3, 4), (3, 0, 2)])
def test_senseless_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match="sizes lists inputs"):
        mlp(sizes)
