import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elephant_nn import elephant, emlp, mlp

KEY = jax.random.key(0)


def test_initialisation_of_the_paper():
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


@pytest.mark.parametrize("sizes", [(), (3,), (3, 4), (3, 0, 2)])
def test_senseless_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match=r"mlp: sizes .* all above 0"):
        mlp(sizes)
