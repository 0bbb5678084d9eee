"""Named arrays in one safetensors file with a checksum: no pickle, complete or not at all."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from elephant_nn.files import StorageError, write_whole

Arrays = dict[str, NDArray[np.generic]]


def write_arrays(
    path: Path, arrays: Mapping[str, NDArray[np.generic]], metadata: Mapping[str, str]
) -> Path:
    """Write arrays and what is to be known about them."""
    ordered = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    about = {**metadata, "sha256": _checksum(metadata, ordered)}
    return write_whole(path, save(ordered, metadata=about))


def read_arrays(path: Path, what: str, writer: str) -> tuple[Arrays, dict[str, str]]:
    """The arrays and metadata of a file; if it is none of `writer`'s, an error says so.

    Args:
        what: what the file should hold, for messages: "a saved state".
    """
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise StorageError(f"there is no file {path}") from error
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise StorageError(f"{path} is damaged, or not {what}: {error}") from error
    checksum = metadata.pop("sha256", None)
    if checksum is None:
        raise StorageError(f"{path} was not written by {writer}: it has no checksum")
    if checksum != _checksum(metadata, stored):
        raise StorageError(f"{path} is damaged: its content does not match its checksum")
    return stored, metadata


def _checksum(metadata: Mapping[str, str], arrays: Arrays) -> str:
    digest = hashlib.sha256(repr(sorted(metadata.items())).encode())
    for name in sorted(arrays):
        digest.update(name.encode())
        digest.update(arrays[name].reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
