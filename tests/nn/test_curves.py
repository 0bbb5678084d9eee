import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import name_of

from elephant_nn import CLASSICAL, elephant_activation, mlp
from elephant_nn.nn.curves import curve, elephant_curve

KEY = jax.random.key(0)
X = jnp.linspace(-3, 3, 101)[:, None]


@pytest.mark.parametrize(
    ("activation", "units"),
    [*((jnp.sin, units) for units in (1, 7, 8)), *((f, 1000) for f in CLASSICAL.values())],
    ids=name_of,
)
def test_curve_equals_apply(activation, units):
    network = mlp((1, units, 1), activation, sigma_bias=1.0)
    params = network.init(KEY)
    expected = network.apply(params, X)
    np.testing.assert_allclose(curve(params, X, activation), expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("units", "a", "d"),
    [(1, 0.08, 8), (7, 0.08, 8), (8, 0.08, 8), (1000, 0.02, 8), (1000, 0.3, 2.5), (1000, 1.0, 4)],
)
def test_elephant_curve_equals_apply(units, a, d):
    network = mlp((1, units, 1), elephant_activation(a, d), sigma_bias=1.0)
    params = network.init(KEY)
    expected = network.apply(params, X)
    np.testing.assert_allclose(elephant_curve(params, X, a, d), expected, rtol=1e-5, atol=2e-6)


def test_huge_inputs_give_zero_and_nan_gives_nan():
    params = mlp((1, 100, 1), sigma_bias=1.0).init(KEY)
    x = jnp.array([[1e30], [-1e38], [jnp.nan], [0.0]])
    out = elephant_curve(params, x, 0.01, 8)[:, 0]
    np.testing.assert_allclose(out[:2], 0, atol=1e-6)
    assert np.isnan(out[2])
    assert np.isfinite(out[3])
