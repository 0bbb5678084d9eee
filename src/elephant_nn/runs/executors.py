"""Where shards run. An executor takes shards and yields each with its rows or its failure."""

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from elephant_nn.runs.shard import Shard, run_shard
from elephant_nn.runs.store import Record

TRIES = 2
"""A shard whose worker dies is run once more."""


@dataclass(frozen=True)
class Failure:
    reason: str


Result = list[Record] | Failure
Waiting = Callable[[Sequence[Shard]], None]


@runtime_checkable
class Executor(Protocol):
    """Takes shards one by one and yields them in any order, each with its rows or its failure.

    `waiting` is called regularly with the shards that are running.
    """

    def run(
        self, shards: Iterable[Shard], scratch: Path, checkpoint_seconds: float, waiting: Waiting
    ) -> Iterator[tuple[Shard, Result]]: ...


class ThisProcess:
    """One shard after another, here."""

    def run(
        self, shards: Iterable[Shard], scratch: Path, checkpoint_seconds: float, waiting: Waiting
    ) -> Iterator[tuple[Shard, Result]]:
        for shard in shards:
            yield shard, _attempt(shard, scratch, checkpoint_seconds)


@dataclass(frozen=True)
class LocalProcesses:
    """Worker processes that share the cores.

    For small networks one single-threaded process per core beats one program on all cores. A worker
    holds nothing that is not in the store, and ends with this process, however that ends.
    """

    workers: int
    threads: int

    def run(
        self, shards: Iterable[Shard], scratch: Path, checkpoint_seconds: float, waiting: Waiting
    ) -> Iterator[tuple[Shard, Result]]:
        fresh, again = iter(shards), list[tuple[Shard, int]]()
        take = lambda: again.pop() if again else next(((shard, 1) for shard in fresh), None)
        idle: list[Worker] = []
        busy: dict[Worker, tuple[Shard, int]] = {}
        try:
            while True:
                while len(busy) < self.workers and (task := take()):
                    worker = idle.pop() if idle else Worker(self.threads)
                    busy[worker] = task
                    worker.send(_attempt, task[0], scratch, checkpoint_seconds)
                if not busy:
                    return
                ready = wait([worker.connection for worker in busy], timeout=0.5)
                for worker in [worker for worker in busy if worker.connection in ready]:
                    shard, tries = busy.pop(worker)
                    result = worker.receive()
                    if result is not None:
                        idle.append(worker)
                        yield shard, result
                    elif tries < TRIES:
                        again.append((shard, tries + 1))
                    else:
                        yield shard, Failure(f"its worker died twice ({worker.death()})")
                waiting([shard for shard, _ in busy.values()])
        finally:
            for worker in (*idle, *busy):
                worker.stop()


class Worker:
    """A process that calls one function at a time."""

    def __init__(self, threads: int):
        context = multiprocessing.get_context("spawn")  # JAX's threads do not survive a fork
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, threads), daemon=True)
        with _ignoring_interrupts(), _without_main():
            self.process.start()
        theirs.close()

    def send(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function there; if the process has died, `receive` says so."""
        with suppress(OSError):
            self.connection.send((function, *arguments))

    def receive(self) -> Any:
        """The result; None if the process died."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.process.join(timeout=1)
            self.stop()
            return None

    def death(self) -> str:
        killed = self.process.exitcode == -signal.SIGKILL
        return "killed: out of memory?" if killed else f"exit status {self.process.exitcode}"

    def stop(self) -> None:
        """End the process at once: an unfinished shard is run again another time."""
        self.process.kill()
        self.process.join()
        self.connection.close()


@contextmanager
def _without_main() -> Iterator[None]:
    """Workers import by name what they need; importing a user's script would run it again."""
    main = sys.modules["__main__"]
    names: tuple[str, ...] = ("__file__", "__spec__")
    hidden = {name: vars(main).pop(name) for name in names if name in vars(main)}
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update(hidden)


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Workers inherit this from their start: the parent decides what Ctrl-C stops."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _work(connection: Connection, threads: int) -> None:
    os.environ["PJRT_NPROC"] = str(threads)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    while True:
        try:
            function, *arguments = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(function(*arguments))


def _attempt(shard: Shard, scratch: Path, checkpoint_seconds: float) -> Result:
    try:
        return run_shard(shard, scratch, checkpoint_seconds)
    except Exception as error:
        # A sweep goes on without a shard that fails, whatever the reason; the reason is reported.
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return Failure(f"{type(error).__name__}: {error} ({where})")


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
