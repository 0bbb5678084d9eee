import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

from elephant_nn import (
    CLASSICAL,
    elephant_activation,
    limit_sparsity,
    measured_sparsity,
    relu,
    slope_of,
)


@pytest.mark.parametrize(
    "activation", [*CLASSICAL.values(), elephant_activation(0.1, 4), elephant_activation(2, 2.5)]
)
def test_measured_sparsity_equals_the_proven(activation):
    assert limit_sparsity(activation) == pytest.approx(activation.sparsity, abs=1e-3)
    measured = limit_sparsity(slope_of(activation))
    assert measured == pytest.approx(activation.slope_sparsity, abs=1e-3)


@given(st.floats(0.1, 2), st.integers(2, 8), st.floats(0.01, 0.5))
def test_sparsity_of_elephant_at_finite_range(a, d, epsilon):
    edge = a * (1 / epsilon - 1) ** (1 / d)
    reach = 3 * edge
    measured = measured_sparsity(elephant_activation(a, d), epsilon, reach)
    assert measured == pytest.approx(1 - edge / reach, abs=1e-4)


@given(st.floats(0.01, 10), st.floats(0.1, 100))
def test_sparsity_grows_with_epsilon(epsilon, reach):
    shares = [measured_sparsity(relu, e, reach, points=1000) for e in (epsilon, 2 * epsilon)]
    assert 0.5 <= shares[0] <= shares[1] <= 1


def test_slope_of_keeps_shapes():
    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    np.testing.assert_allclose(slope_of(jnp.sin)(x), jnp.cos(x), rtol=1e-6)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: jnp.sin(jnp.log1p(jnp.abs(x))), r"still \w+ from"),
        (lambda x: 1 / jnp.log(3 + jnp.abs(x)), "still falls"),
        (lambda x: (1 + jnp.abs(x)) ** -0.1, "still falls"),
    ],
)
def test_functions_without_a_limit_are_refused(function, message):
    with pytest.raises(ValueError, match=message):
        limit_sparsity(function)


def test_functions_that_neither_fall_nor_vanish_have_sparsity_0():
    assert limit_sparsity(lambda x: 0.05 + 0 * x) == 0
    assert limit_sparsity(jnp.sin) == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(("epsilon", "reach"), [(0, 1), (-1, 1), (1, 0)])
def test_senseless_arguments_are_refused(epsilon, reach):
    with pytest.raises(ValueError, match="must be above 0"):
        measured_sparsity(relu, epsilon, reach)
