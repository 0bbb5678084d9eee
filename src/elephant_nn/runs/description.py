"""Shards as plain data, for workers that share no disk with the command."""

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from elephant_nn.files import write_whole
from elephant_nn.runs.cells import Cell
from elephant_nn.runs.shard import Shard, Work

Description = dict[str, Any]


def describe(shard: Shard) -> Description:
    """What a worker needs to know of a shard. The user's files behind it are part of that."""
    homes = (name.rpartition(":")[0] for name in (shard.work.problem, shard.work.build))
    return {
        "id": shard.id,
        "label": label_of(shard),
        "table": shard.cells[0].experiment,
        "work": asdict(shard.work),
        "cells": [
            (cell.experiment, cell.method, cell.hyper, cell.seed, cell.revision)
            for cell in shard.cells
        ],
        "lanes": shard.lanes,
        "keep": shard.keep,
        "files": {home: Path(home).read_bytes() for home in homes if home.endswith(".py")},
    }


def shard_of(description: Description, folder: Path) -> Shard:
    """The shard of a description. Files that are not on this machine are put into `folder`."""
    work = dict(description["work"])
    for home, content in description["files"].items():
        here = str(_local(Path(home), content, folder))
        for part in ("problem", "build"):
            path, _, attribute = work[part].rpartition(":")
            work[part] = f"{here}:{attribute}" if path == home else work[part]
    cells = tuple(Cell.of(*cell) for cell in description["cells"])
    return Shard(Work(**work), cells, description["lanes"], description["keep"])


def _local(path: Path, content: bytes, folder: Path) -> Path:
    if path.is_file() and path.read_bytes() == content:
        return path
    digest = hashlib.sha256(content).hexdigest()[:16]
    return write_whole(folder / "code" / digest / path.name, content)


def label_of(shard: Shard) -> str:
    """A few words for people."""
    first, seeds = shard.cells[0], sorted({cell.seed for cell in shard.cells})
    which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    return f"{first.experiment} {first.method}, {len(shard.cells)} runs, {which}"
