"""Checkpoints of a shard in the middle: safetensors, so nothing in them can run."""

import hashlib
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from elephant_nn.files import StoreWarning, set_aside, write_whole


def save_checkpoint(path: Path, chunk: int, tree: Any) -> None:
    """Write the leaves of `tree` and the number of finished chunks, whole or not at all."""
    leaves = [np.asarray(leaf, order="C") for leaf in jax.tree.leaves(tree)]
    tensors = {f"{i:05d}": leaf for i, leaf in enumerate(leaves)}
    metadata = {"chunk": str(chunk), "sha256": _checksum(chunk, leaves)}
    write_whole(path, save(tensors, metadata=metadata))


def load_checkpoint(path: Path, like: Any) -> tuple[int, Any] | None:
    """The finished chunks and the tree, shaped like `like`; None if there is none to use.

    A damaged checkpoint, or one of another shape, is set aside: the shard then starts anew.
    """
    if not path.exists():
        return None
    leaves, structure = jax.tree.flatten(like)
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata()
            chunk = int(metadata["chunk"])
            stored = [file.get_tensor(name) for name in sorted(file.keys())]
        found = _checksum(chunk, stored)
        if metadata.get("sha256", found) != found:  # older ones have none
            raise ValueError(f"{path} is not what was written")
        if len(stored) != len(leaves):
            raise ValueError(f"expected {len(leaves)} arrays, got {len(stored)}")
        stored.reverse()
        restored = [_like(stored.pop(), leaf) for leaf in leaves]  # never two copies of them all
    except (SafetensorError, KeyError, TypeError, ValueError, OSError):
        sentence = set_aside(path, "is damaged or of another version")
        warnings.warn(sentence, StoreWarning, stacklevel=2)
        return None
    return chunk, jax.tree.unflatten(structure, restored)


def _like(value: np.ndarray, leaf: Any) -> Any:
    if (value.shape, value.dtype) != (leaf.shape, leaf.dtype):
        raise ValueError(f"expected {leaf.shape} {leaf.dtype}, got {value.shape} {value.dtype}")
    return value if isinstance(leaf, np.ndarray) else jax.numpy.asarray(value)


def _checksum(chunk: int, leaves: Iterable[np.ndarray]) -> str:
    digest = hashlib.sha256(str(chunk).encode())
    for leaf in leaves:
        digest.update(leaf.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
