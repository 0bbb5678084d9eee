import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elephant_nn.nn.products import thin_product


@pytest.mark.parametrize(("x", "w"), [((5, 4), (2, 3)), ((5, 2), (4, 3)), ((2,), (2, 3))])
def test_shapes_that_do_not_multiply_are_refused(x, w):
    unchecked = inspect.unwrap(thin_product)  # without the tests' type checks
    with pytest.raises(ValueError, match="do not multiply"):
        unchecked(jnp.ones(x), jnp.ones(w))


@pytest.mark.parametrize(("k", "m"), [(2, 50), (50, 3), (1, 1), (8, 8), (9, 9)])
@pytest.mark.parametrize("lanes", [(), (4,)], ids=["plain", "vmap"])
def test_value_and_gradients_equal_matmul(k, m, lanes):
    rng = np.random.default_rng(k)
    shapes = ((6, k), (k, m), (6, m))
    x, w, g = (jnp.asarray(rng.normal(size=lanes + shape), jnp.float32) for shape in shapes)

    def with_gradients(product):
        y, back = jax.vjp(jax.vmap(product) if lanes else product, x, w)
        return y, *back(g)

    found, expected = jax.jit(lambda: [with_gradients(f) for f in (thin_product, jnp.matmul)])()
    for ours, theirs in zip(found, expected, strict=True):
        assert jnp.abs(theirs).max() > 0.1
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("k", "products"), [(2, 0), (8, 0), (9, 1)])
def test_narrow_inputs_are_summed(k, products):
    program = jax.make_jaxpr(thin_product)(jnp.ones((6, k)), jnp.ones((k, 50)))
    assert str(program).count("dot_general") == products
