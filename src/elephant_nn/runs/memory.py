"""How much memory a shard takes, from the shapes of its arrays, before anything is compiled."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from elephant_nn.runs.program import cell_key
from elephant_nn.runs.shard import Shard, compiled

PROCESS = 600_000_000
"""Python, JAX and a compiler at work."""
COPIES = 3
"""Of the carry: it, its gradients or products, and what an update replaces it with."""


def estimate_memory(shard: Shard) -> int:
    """Bytes of a process that runs this shard."""
    steps, floats = compiled(shard)
    program = steps.program
    keys = jnp.stack([cell_key(cell.experiment, cell.seed) for cell in shard.padded])
    carry = jax.eval_shape(steps.start, keys, floats, program.data)
    _, outputs, _ = jax.eval_shape(steps.advance, carry, floats, program.data, 0)
    arrays = COPIES * size(carry) + program.chunks * size(outputs)
    return PROCESS + size(program.data) + arrays


def size(tree: Any) -> int:
    """Bytes of the arrays of a tree, or of the arrays that its shapes describe."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if hasattr(leaf, "dtype")]
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
