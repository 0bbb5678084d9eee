"""What a worker of a cluster answers to a shard. Light: imported without JAX."""

from dataclasses import dataclass, field
from typing import Any

UNLIMITED = 1 << 62
"""Bytes of a worker that has no limit of its own."""


@dataclass(frozen=True)
class Done:
    """The rows of a shard, and the files of learned parameters of its cells."""

    rows: list[dict[str, Any]]
    learned: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Failed:
    """The shard raised; it would elsewhere."""

    reason: str


@dataclass(frozen=True)
class Died:
    """The process that ran the shard died."""

    how: str


@dataclass(frozen=True)
class Unfit:
    """Something is wrong with this worker, such as a full disk; it takes no more shards."""

    reason: str


@dataclass(frozen=True)
class NeedsMemory:
    """The shard needs more bytes than this worker has."""

    size: int


@dataclass(frozen=True)
class NeedsData:
    """This worker lacks a data set, or an embedding of it, that the command offered to send."""

    name: str
    embedding: str


Answer = Done | Failed | Died | Unfit | NeedsMemory | NeedsData
