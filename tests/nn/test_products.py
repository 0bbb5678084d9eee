"""Products with a narrow side are products."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elephant_nn.nn.products import thin_product


@pytest.mark.parametrize(("x", "w"), [((5, 4), (2, 3)), ((5, 2), (4, 3)), ((2,), (2, 3))])
def test_shapes_that_do_not_multiply_are_refused(x, w):
    with pytest.raises(Exception, match=r"do not multiply|thin_product"):
        thin_product(jnp.ones(x), jnp.ones(w))


@pytest.mark.parametrize(("k", "m"), [(2, 50), (50, 3), (1, 1), (8, 8), (9, 9)])
def test_value_and_both_gradients_are_those_of_the_matrix_product(k, m):
    rng = np.random.default_rng(k)
    shapes = ((4, 6, k), (4, k, m), (4, 6, m))  # four lanes
    x, w, g = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes)

    def with_gradients(product):
        y, back = jax.vjp(jax.vmap(product), x, w)
        return y, *back(g)

    expected = with_gradients(jnp.matmul)
    for ours, theirs in zip(with_gradients(thin_product), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
