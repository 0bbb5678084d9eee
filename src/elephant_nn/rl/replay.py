"""A ring buffer of transitions, each stored as one row of an array."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class ReplayBuffer(NamedTuple):
    """The newest transitions; `written` counts all rows ever added."""

    rows: Float[Array, "capacity width"]
    written: Int[Array, ""]


def empty_buffer(capacity: int, width: int) -> ReplayBuffer:
    """Create a buffer for `capacity` rows of `width` numbers."""
    if capacity < 1:
        raise ValueError(f"capacity must be 1 or more, got {capacity}")
    return ReplayBuffer(jnp.zeros((capacity, width)), jnp.int32(0))


def add(buffer: ReplayBuffer, row: Float[Array, " width"]) -> ReplayBuffer:
    """Add a row. A full buffer drops its oldest row."""
    index = buffer.written % len(buffer.rows)
    return ReplayBuffer(buffer.rows.at[index].set(row), buffer.written + 1)


def sample(buffer: ReplayBuffer, uniforms: Float[Array, " n"]) -> Float[Array, "n width"]:
    """Sample rows uniformly with replacement, one per number of `uniforms` in [0, 1)."""
    filled = jnp.minimum(buffer.written, len(buffer.rows))
    indices = jnp.minimum((uniforms * filled).astype(jnp.int32), filled - 1)
    return buffer.rows[indices]
