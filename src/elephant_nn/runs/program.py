"""A program is an experiment compiled: one lane a run, many lanes side by side, in chunks."""

import hashlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

Carry = Any
Floats = Mapping[str, Array]
Outputs = dict[str, Array]


@dataclass(frozen=True)
class Program:
    """One lane as pure functions; the runner maps them over lanes, compiles, checkpoints.

    Attributes:
        init: `init(key, floats) -> carry`, from the cell's key and its traced hyper-parameters.
        chunk: `chunk(carry, floats, index) -> carry, outputs`: a fixed stretch of the run. Chunk
            boundaries are where progress, checkpoints and the check for divergence happen.
        chunks: how many chunks make a run.
        finish: turns one lane's outputs (each with a leading axis of chunks) into the columns of
            its row: numbers are metrics, arrays are curves.
        contract: columns that say under which rules the run was made.
        keepsake: the part of a lane's last carry that is worth keeping beside its row, where the
            runner is asked to keep it: what was learned.
    """

    init: Callable[[Key[Array, ""], Floats], Carry]
    chunk: Callable[[Carry, Floats, Int[Array, ""]], tuple[Carry, Outputs]]
    chunks: int
    finish: Callable[[Mapping[str, np.ndarray]], dict[str, Any]]
    contract: Mapping[str, int | bool | str]
    keepsake: Callable[[Carry], Any] | None = None


def cell_key(experiment: str, seed: int) -> Key[Array, ""]:
    """The random key of a run, from the experiment's name and the seed.

    Methods and settings with the same seed share it, so they meet the same data in the same order
    and comparisons between them are paired; adding cells never changes others.
    """
    name = hashlib.sha256(f"{experiment}/{seed}".encode()).digest()
    return jax.random.wrap_key_data(
        jnp.asarray(np.frombuffer(name[:8], np.uint32)), impl="threefry2x32"
    )


def named_key(key: Key[Array, ""], name: str) -> Key[Array, ""]:
    """An independent key for one use: `named_key(key, "init")`, `"data"`, `"explore"`."""
    return jax.random.fold_in(key, zlib.crc32(name.encode()))
