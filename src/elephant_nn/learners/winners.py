"""Who wins among units: order statistics of non-negative values."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def kth_largest(values: Float[Array, "n units"], k: int) -> Float[Array, "n 1"]:
    """The k-th largest of each row of non-negative float32 values, exactly; equal values count.

    Non-negative floats are ordered as their bits are, so 31 halvings of the range of bits find it.
    On CPUs that is many times faster than sorting or `jax.lax.top_k`. No gradient flows through it.
    """
    bits = jax.lax.bitcast_convert_type(jax.lax.stop_gradient(values), jnp.int32)

    def halve(i: Int[Array, ""], low: Array) -> Array:
        probe = low | jnp.left_shift(1, 30 - i)
        enough = jnp.sum(bits >= probe, axis=1, keepdims=True) >= k
        return jnp.where(enough, probe, low)

    found = jax.lax.fori_loop(0, 31, halve, jnp.zeros((len(values), 1), jnp.int32))
    return jax.lax.bitcast_convert_type(found, jnp.float32)
