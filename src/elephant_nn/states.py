"""Save and load the states of learners, and any other pytree of arrays: safetensors, no pickle."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from elephant_nn.arrays import read_arrays, write_arrays
from elephant_nn.files import StorageError


def save_state(path: Path | str, state: Any, metadata: Mapping[str, str] | None = None) -> Path:
    """Write the arrays of a state into one safetensors file, complete or not at all."""
    arrays = {name: _array(leaf) for name, leaf in _named_leaves(state)}
    return write_arrays(Path(path), arrays, metadata or {})


def load_state(path: Path | str, like: Any) -> Any:
    """The state in a file, with the structure of `like`: a state of the same learner.

    `like` may be `learner.init(key, x)` or its shapes, from `jax.eval_shape`. A file that is
    damaged, or holds the state of another learner, is a `StorageError`.
    """
    return read_state(path, like)[0]


def read_state(path: Path | str, like: Any) -> tuple[Any, dict[str, str]]:
    """The state in a file, and its metadata."""
    path = Path(path)
    leaves, structure = _named_leaves(like), jax.tree.structure(like)
    stored, metadata = read_arrays(path, "a saved state", "save_state")
    if {name for name, _ in leaves} != stored.keys():
        raise StorageError(
            f"{path} holds the state of another learner: expected the arrays "
            f"{', '.join(name for name, _ in leaves)}, got {', '.join(stored)}"
        )
    restored = [_like(path, name, stored.pop(name), leaf) for name, leaf in leaves]
    return jax.tree.unflatten(structure, restored), metadata


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    found = jax.tree_util.tree_flatten_with_path(tree)[0]
    return [(jax.tree_util.keystr(path) or "state", leaf) for path, leaf in found]


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _array(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf, order="C")


def _like(path: Path, name: str, value: np.ndarray, leaf: Any) -> Any:
    key = jnp.empty(np.shape(leaf), leaf.dtype) if _is_key(leaf) else None
    stored = leaf if key is None else jax.random.key_data(key)
    shape, dtype = np.shape(stored), getattr(stored, "dtype", np.asarray(stored).dtype)
    if (value.shape, value.dtype) != (shape, dtype):
        raise StorageError(
            f"{path} holds the state of another learner: {name} has shape {value.shape} of "
            f"{value.dtype}, expected {shape} of {dtype}"
        )
    if key is not None:
        return jax.random.wrap_key_data(jnp.asarray(value), impl=jax.random.key_impl(key))
    return value if isinstance(leaf, np.ndarray) else jnp.asarray(value)
