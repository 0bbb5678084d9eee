"""A ring buffer: the newest transitions, each one row of one array."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


class Replay(NamedTuple):
    """`rows` is filled in turn, then the oldest is overwritten; `written` counts all of them."""

    rows: Float[Array, "capacity width"]
    written: Int[Array, ""]


def empty_replay(capacity: int, width: int) -> Replay:
    if capacity < 1:
        raise ValueError(f"empty_replay: capacity must be 1 or more, got {capacity}")
    return Replay(jnp.zeros((capacity, width)), jnp.int32(0))


def remember(replay: Replay, row: Float[Array, " width"]) -> Replay:
    """Put a row in the place of the oldest."""
    place = replay.written % len(replay.rows)
    return Replay(replay.rows.at[place].set(row), replay.written + 1)


def recall(replay: Replay, draws: Float[Array, " n"]) -> Float[Array, "n width"]:
    """Rows chosen uniformly, with replacement, by numbers in [0, 1), among those written."""
    filled = jnp.minimum(replay.written, len(replay.rows))
    chosen = jnp.minimum((draws * filled).astype(jnp.int32), filled - 1)
    return replay.rows[chosen]
