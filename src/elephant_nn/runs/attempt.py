"""One shard from its description, in the computing process of a cluster's worker."""

from pathlib import Path
from typing import Any

from elephant_nn.data.loading import ensure_data, has_data
from elephant_nn.files import DataError, StorageError
from elephant_nn.runs.answers import UNLIMITED, Answer, Done, Failed, NeedsData, NeedsMemory, Unfit
from elephant_nn.runs.description import Description, shard_of
from elephant_nn.runs.executors import reason_of
from elephant_nn.runs.memory import estimate_memory
from elephant_nn.runs.program import resolve
from elephant_nn.runs.shard import Shard, checkpoint_file, learned_file, run_shard


def attempt(
    description: Description, scratch: Path, private: Path, options: dict[str, Any]
) -> Answer:
    """Run a shard, or say what is in the way.

    Args:
        scratch: where checkpoints go; perhaps a folder that workers share.
        private: a folder of this worker.
        options: of the worker and the command: `memory` in bytes, whether data will be sent
            (`send_data`), `checkpoint_seconds`, and whether to start from the beginning (`again`).
    """
    try:
        shard = shard_of(description, private)
        for name, embedding in needed_data(shard):
            if options["send_data"] and not has_data(name, embedding):
                return NeedsData(name, embedding)
            ensure_data(name, embedding, lambda text: None)
        limit = options["memory"]
        if limit < UNLIMITED and (needed := estimate_memory(shard)) > limit:
            return NeedsMemory(needed)
        if options["again"]:
            checkpoint_file(shard, scratch).unlink(missing_ok=True)
        rows = run_shard(shard, scratch, options["checkpoint_seconds"])
        return Done(rows, _learned(shard, scratch.parent))
    except (StorageError, DataError) as error:
        return Unfit(str(error))
    except Exception as error:
        return Failed(reason_of(error))


def needed_data(shard: Shard) -> set[tuple[str, str]]:
    """The data sets and embeddings that a shard reads, if its problem names one."""
    name = getattr(resolve(shard.work.problem), "data", None)
    return {(name, str(c.hyper.get("embedding", ""))) for c in shard.cells} if name else set()


def _learned(shard: Shard, folder: Path) -> dict[str, bytes]:
    found = {}
    for cell in shard.cells if shard.keep else ():
        path = learned_file(folder, cell)
        if path.is_file():
            found[path.name] = path.read_bytes()
            path.unlink()
    return found
