"""Order statistics of non-negative values."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def kth_largest(values: Float[Array, "n units"], k: int) -> Float[Array, "n 1"]:
    """The k-th largest value of each row of non-negative values, ties included; no gradient.

    Non-negative floats are ordered like their bits, so a binary search over bits finds the value in
    31 steps (63 in double precision). On CPUs this is many times faster than sorting or
    `jax.lax.top_k`.
    """
    whole = jnp.int64 if values.dtype == jnp.float64 else jnp.int32
    halvings = jnp.iinfo(whole).bits - 1
    bits = jax.lax.bitcast_convert_type(jax.lax.stop_gradient(values), whole)

    def halve(i: Int[Array, ""], low: Array) -> Array:
        probe = low | jnp.left_shift(jnp.ones((), whole), (halvings - 1 - i).astype(whole))
        enough = jnp.sum(bits >= probe, axis=1, keepdims=True) >= k
        return jnp.where(enough, probe, low)

    found = jax.lax.fori_loop(0, halvings, halve, jnp.zeros((len(values), 1), whole))
    return jax.lax.bitcast_convert_type(found, values.dtype)
