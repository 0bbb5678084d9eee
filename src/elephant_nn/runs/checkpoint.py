"""Checkpoints of a shard in progress."""

import json
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from elephant_nn.files import StorageError, StoreWarning, set_aside
from elephant_nn.states import read_state, save_state


def save_checkpoint(
    path: Path, chunk: int, tree: Any, cells: Sequence[str] = (), code: str = ""
) -> None:
    """Write a tree and the number of finished chunks, complete or not at all."""
    about = {"chunk": str(chunk), "cells": json.dumps(list(cells)), "code": code}
    save_state(path, tree, about)


def load_checkpoint(path: Path, like: Any, code: str = "") -> tuple[int, Any] | None:
    """The number of finished chunks and the tree; None without a usable checkpoint.

    A damaged checkpoint, or one of another shape, is set aside, and the shard starts from the
    beginning. One of other code is ignored.
    """
    if not path.exists():
        return None
    try:
        tree, metadata = read_state(path, like)
        return (int(metadata["chunk"]), tree) if metadata["code"] == code else None
    except (StorageError, KeyError, ValueError):
        warnings.warn(
            set_aside(path, "is damaged or of another version"), StoreWarning, stacklevel=2
        )
        return None


def remove_finished(scratch: Path, stored: Collection[str]) -> None:
    """Remove checkpoints whose cells are all stored: their shard was cut differently later."""
    for path in scratch.glob("*.safetensors"):
        try:
            with safe_open(path, framework="np") as file:
                cells = json.loads((file.metadata() or {})["cells"])
        except (SafetensorError, OSError, KeyError, ValueError):
            continue
        if set(cells) <= set(stored):
            path.unlink(missing_ok=True)
            path.with_suffix(".progress").unlink(missing_ok=True)
