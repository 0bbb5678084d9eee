import math

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from support import name_of

from elephant_nn import (
    CLASSICAL,
    elephant,
    elephant_activation,
    elephant_slope,
    even_bias,
    fan_in_uniform,
)

widths = st.floats(2.0**-90, 2.0**90, width=32)
sharpnesses = st.one_of(st.integers(2, 40), st.floats(1.01, 60))
inputs = st.floats(allow_nan=False, width=32)


def exact(x, a, d):
    """Value and slope in float64, through logarithms, where nothing overflows."""
    u = np.abs(np.float64(x)) / np.float64(np.float32(a))
    if u == 0:
        return 1.0, 0.0
    log_u = np.log(u)
    log_y = -np.logaddexp(0, d * log_u)
    log_slope = np.log(d) - np.log(np.float64(np.float32(a))) + (d - 1) * log_u + 2 * log_y
    return np.exp(log_y), -np.sign(x) * np.exp(log_slope)


@given(inputs, widths, sharpnesses)
def test_value_and_slope_are_exact(x, a, d):
    value, slope = exact(x, a, d)
    relative = 4e-7 * (d + 4)  # rounding of u, d times over
    x, a = jnp.float32(x), jnp.float32(a)
    np.testing.assert_allclose(elephant(x, a, d), value, relative, 2e-38)
    np.testing.assert_allclose(elephant_slope(x, a, d), slope, relative, 2e-36 / min(a, 1))


@given(inputs, widths, sharpnesses)
def test_gradients_are_exact_and_finite(x, a, d):
    by_x, by_a = jax.grad(lambda x, a: elephant(x, a, d), (0, 1))(jnp.float32(x), jnp.float32(a))
    assert by_x == elephant_slope(jnp.float32(x), jnp.float32(a), d)
    assert np.isfinite(by_a)


@given(
    inputs, st.floats(2**-50, 2.0**50, width=32), st.one_of(st.integers(2, 40), st.floats(2, 60))
)
def test_curvature_is_finite(x, a, d):
    curvature = jax.grad(jax.grad(lambda x: elephant(x, a, d)))
    assert np.isfinite(curvature(jnp.float32(x)))


@pytest.mark.parametrize("d", [2, 3, 4, 4.5, 8, 9])
def test_derivatives_equal_finite_differences(d):
    with jax.enable_x64(True):
        for x in (-1.0, -0.05, 0.0, 0.03, 0.2):
            f = lambda x, a: elephant(x, a, d)
            step = 1e-6
            first = jax.grad(f, (0, 1))
            by_x = (f(x + step, 0.1) - f(x - step, 0.1)) / (2 * step)
            by_a = (f(x, 0.1 + step) - f(x, 0.1 - step)) / (2 * step)
            np.testing.assert_allclose(first(x, 0.1), (by_x, by_a), rtol=1e-6, atol=1e-6)
            second = jax.hessian(f, (0, 1))(x, 0.1)
            for i in range(2):
                dx = (first(x + step, 0.1)[i] - first(x - step, 0.1)[i]) / (2 * step)
                da = (first(x, 0.1 + step)[i] - first(x, 0.1 - step)[i]) / (2 * step)
                np.testing.assert_allclose(second[i], (dx, da), rtol=1e-4, atol=5e-3)


def test_curvature_at_zero():
    assert jax.grad(jax.grad(lambda x: elephant(x, 0.5, 2)))(0.0) == pytest.approx(-2 / 0.5**2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_float_types(dtype):
    with jax.enable_x64(True):
        x = jnp.linspace(-5, 5, 101).astype(dtype)
        for y in (elephant(x, 1.0, 8), elephant_slope(x, 1.0, 8)):
            assert y.dtype == x.dtype
        reference = [exact(float(v), 1.0, 8)[0] for v in x]
        tolerance = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 3e-6, "float64": 1e-14}[dtype]
        np.testing.assert_allclose(
            elephant(x, 1.0, 8).astype("float64"), reference, rtol=tolerance, atol=6e-8
        )


def test_half_precision_does_not_overflow():
    # 4^8 is beyond float16; a naive power would give 0.
    assert elephant(jnp.float16(4), 1.0, 8) == pytest.approx(4.0**-8, rel=0.1)


def test_integers_shapes_and_transformations():
    assert elephant(2, 1, 2) == pytest.approx(0.2)
    assert elephant(jnp.zeros((2, 0, 3))).shape == (2, 0, 3)
    x = jnp.linspace(-1, 1, 12).reshape(3, 4)
    np.testing.assert_allclose(jax.jit(elephant)(x), elephant(x), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.vmap(elephant))(x), elephant(x), rtol=1e-6)
    widths = jnp.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(elephant(x, widths)[:, 2], elephant(x[:, 2], 0.3), rtol=1e-6)


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="must be real"):
        elephant(1j)


def test_torch_tensors_are_refused():
    tensor = type("Tensor", (float,), {"__module__": "torch"})(0.5)
    for function in (elephant, elephant_slope):
        with pytest.raises(TypeError, match=r"torch.Tensor.* x.numpy\(\)"):
            function(tensor)
    assert elephant(float(tensor), 0.5) == pytest.approx(0.5)


def test_nan_stays_nan():
    for d in (4, 2.5, math.inf):
        assert np.isnan(elephant(jnp.nan, 0.1, d))
        assert np.isnan(elephant_slope(jnp.nan, 0.1, d))


@pytest.mark.parametrize("a", [0.1, 2.0, 49.0])
def test_infinite_sharpness_is_the_rectangle(a):
    x = jnp.array([-jnp.inf, -1.01 * a, -a, -0.99 * a, 0.0, 0.99 * a, a, 1.01 * a, jnp.inf])
    np.testing.assert_array_equal(elephant(x, a, math.inf), [0, 0, 0.5, 1, 1, 1, 0.5, 0, 0])
    np.testing.assert_array_equal(jax.vmap(jax.grad(lambda v: elephant(v, a, math.inf)))(x), 0)
    np.testing.assert_array_equal(elephant_slope(x, a, math.inf), 0)


def test_whole_sharpness_needs_no_power():
    passes = lambda d: str(jax.make_jaxpr(jax.grad(lambda x: elephant(x, 0.1, d)))(0.3))
    for d in (2, 3, 8, 8.0):
        assert " pow " not in passes(d)
    assert " pow " in passes(2.5)


@pytest.mark.parametrize("a", [0, -1.0, math.nan, math.inf, [0.1, -0.1], 1e-37, 1e37])
def test_bad_widths_are_refused(a):
    for call in (lambda a: elephant(1.0, a), elephant_activation):
        with pytest.raises(ValueError, match="a is the width"):
            call(np.array(a))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_edge_of_the_rectangle_in_every_precision(dtype):
    assert elephant(jnp.asarray(0.1, dtype), 0.1, math.inf) == 0.5


def test_width_of_lower_precision_keeps_the_precision_of_x():
    width = np.float16(1e-5)
    x = jnp.float32(width)
    assert elephant(x, width, 8) == pytest.approx(0.5)
    assert elephant(x, width, 8).dtype == jnp.float32


@pytest.mark.parametrize("d", [1, 0.5, -4, math.nan])
def test_bad_sharpness_is_refused(d):
    for call in (lambda d: elephant(1.0, 0.1, d), lambda d: elephant_activation(0.1, d)):
        with pytest.raises(ValueError, match="d is the sharpness"):
            call(d)


def test_traced_sharpness_is_refused():
    with pytest.raises(TypeError, match="must be a Python number"):
        jax.jit(lambda d: elephant(1.0, 0.1, d))(4.0)


@pytest.mark.parametrize(
    "activation", [*CLASSICAL.values(), elephant_activation(0.5, 3)], ids=name_of
)
def test_slopes_are_the_derivatives(activation):
    x = jnp.linspace(-8, 8, 1000)  # no point at 0, where ReLU has none
    by_autodiff = jax.vmap(jax.grad(activation))(x)
    np.testing.assert_allclose(activation.slope(x), by_autodiff, rtol=2e-5, atol=6e-7)


def test_elu_equals_jax():
    x = jnp.linspace(-30, 3, 10_001)
    np.testing.assert_allclose(CLASSICAL["elu"](x), jax.nn.elu(x), rtol=5e-7)


def test_even_bias():
    bias = even_bias(0.64)(jax.random.key(0), (1001,))
    assert bias[0] == pytest.approx(-math.sqrt(3) * 0.64)
    assert bias[-1] == pytest.approx(math.sqrt(3) * 0.64)
    np.testing.assert_allclose(np.diff(bias), np.diff(bias)[0], atol=1e-6)
    assert np.std(bias) == pytest.approx(0.64, rel=2e-3)


def test_even_bias_works_in_flax_and_equinox():
    layer = nn.Dense(7, bias_init=even_bias(1.0), kernel_init=fan_in_uniform())
    params = layer.init(jax.random.key(0), jnp.ones((1, 3)))["params"]
    expected = even_bias(1.0)(jax.random.key(0), (7,))
    np.testing.assert_array_equal(params["bias"], expected)

    linear = eqx.nn.Linear(3, 7, key=jax.random.key(0))
    bias = even_bias(1.0)(jax.random.key(1), linear.bias.shape)
    linear = eqx.tree_at(lambda layer: layer.bias, linear, bias)
    np.testing.assert_array_equal(linear.bias, expected)


def test_range_of_fan_in_uniform():
    w = fan_in_uniform()(jax.random.key(0), (25, 4000), jnp.float32)
    assert np.abs(w).max() <= 0.2
    assert np.abs(w).max() > 0.199
    assert np.var(w) == pytest.approx(0.04 / 3, rel=0.02)
