"""What a Dask worker does. It computes nothing: shards go on to a process of their own.

So no compilation silences the worker's heartbeats, the threads of XLA are bound however the worker
was started, a shard whose client is gone can be stopped, and one that takes too much memory does
not take the worker along. This module is imported by schedulers, too, and is light.
"""

import hashlib
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from distributed import Scheduler, Worker as DaskWorker, WorkerPlugin, get_worker
from distributed.utils import sync

import elephant_nn
from elephant_nn.runs.answers import UNLIMITED, Answer, Died, Unfit
from elephant_nn.runs.machine import machine
from elephant_nn.runs.worker import Worker

SHARDS = "elephant-nn"
"""The resource of a worker that takes shards: it has one, so it runs one shard at a time."""
MEMORY = "elephant-nn-memory"
TOPIC = "elephant-nn"
"""Events: shards that start, their progress, workers that do not fit, and what commands say."""
POLL_SECONDS, PROGRESS_SECONDS = 0.2, 2.0

_processes: dict[str, Worker] = {}


def versions() -> str:
    """What has to agree: versions as in rows, and the package's own code."""
    return f"{machine()['versions']}, code {_code()}"


@lru_cache
def _code() -> str:
    digest, root = hashlib.sha256(), Path(elephant_nn.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:8]


class Join(WorkerPlugin):
    """Lets workers of the right version take shards: those there are, and those that join later."""

    name = "elephant-nn"

    def __init__(self, expected: str):
        self.expected = expected

    async def setup(self, worker: DaskWorker) -> None:
        fits = versions() == self.expected
        await worker.set_resources(**{SHARDS: int(fits), MEMORY: _memory(worker)})
        if not fits:
            about = {"worker": worker.address, "reason": f"it has {versions()}"}
            say = lambda: worker.log_event(TOPIC, {"kind": "unfit", **about})
            worker.loop.call_later(1, say)  # a worker that joins cannot speak yet


def _memory(worker: DaskWorker) -> int:
    """Bytes that the worker may use; a number, because Dask compares it."""
    return worker.memory_manager.memory_limit or UNLIMITED


def take_part(description: dict[str, Any], options: dict[str, Any]) -> Answer | None:
    """Run a shard on this worker; None once nobody waits for it any more."""
    dask = get_worker()
    key, private = dask.get_current_task(), Path(dask.local_directory) / "elephant-nn"
    shared = options["checkpoints"]
    scratch = (Path(shared) if shared else private) / description["table"] / "unfinished"
    progress = scratch / f"{description['id']}.progress"
    limits = {**options, "memory": _memory(dask)}

    def say(kind: str, **more: Any) -> None:
        about = {"key": key, "worker": dask.address, "label": description["label"]}
        dask.log_event(TOPIC, {"kind": kind, **about, **more})

    say("start")
    process = _process(dask)
    process.send(_attempt, description, scratch, private, limits)
    told, last = time.monotonic(), ""
    while not process.connection.poll(POLL_SECONDS):
        if not _wanted(dask, key):
            _processes.pop(dask.id).stop()
            return None
        if time.monotonic() - told >= PROGRESS_SECONDS:
            told, text = time.monotonic(), _read(progress)
            if text and text != last:
                last = text
                say("progress", fraction=float(text))
    answer = process.receive()
    if answer is None:
        return Died(_processes.pop(dask.id).death())
    if isinstance(answer, Unfit):
        leave(dask)
    return answer


def _attempt(*arguments: Any) -> Answer:
    from elephant_nn.runs.attempt import attempt

    return attempt(*arguments)


def leave(dask_worker: DaskWorker) -> None:
    """Take no more shards, until a command asks again."""
    change: Callable[..., Any] = dask_worker.set_resources
    if threading.get_ident() == dask_worker.thread_id:
        dask_worker.loop.add_callback(change, **{SHARDS: 0})
    else:
        sync(dask_worker.loop, change, **{SHARDS: 0})


def _process(dask: DaskWorker) -> Worker:
    """The computing process of this worker; it keeps its compiled programs between shards."""
    process = _processes.get(dask.id)
    if process is None or process.process.poll() is not None:
        process = _processes[dask.id] = Worker(dask.state.nthreads)
    return process


def _wanted(dask: DaskWorker, key: Any) -> bool:
    task = dask.state.tasks.get(key)
    return task is not None and task.state not in ("cancelled", "resumed")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def overview(dask_scheduler: Scheduler) -> dict[str, Any]:
    """What the scheduler knows: its workers with what they are running, and its clients."""
    return {
        "workers": {
            address: {
                "name": str(worker.name),
                "host": worker.host,
                "takes": worker.resources.get(SHARDS, 0) > 0,
                "given_up": worker.resources.get(SHARDS) == 0,
                "memory": worker.resources.get(MEMORY, 0),
                "keys": [str(task.key) for task in worker.processing],
            }
            for address, worker in dask_scheduler.workers.items()
        },
        "clients": list(dask_scheduler.clients),
        "waiting": len(dask_scheduler.unrunnable),
    }
