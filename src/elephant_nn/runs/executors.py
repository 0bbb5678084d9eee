"""Where shards run. An executor takes shards and yields each with its rows or its failure."""

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Protocol, runtime_checkable

from elephant_nn.runs.shard import Shard, progress_file, run_shard
from elephant_nn.runs.store import Record
from elephant_nn.runs.worker import Worker

TRIES = 2
"""A shard whose worker dies is run once more."""


@dataclass(frozen=True)
class Failure:
    reason: str


Result = list[Record] | Failure
Waiting = Callable[[float], None]
"""Called regularly with the work done in unfinished shards, in runs."""


@runtime_checkable
class Executor(Protocol):
    """Takes shards one by one and yields them in any order, each with its rows or its failure.

    Learned parameters of shards that keep them are in the folder beside `scratch` when the shard is
    yielded. `reads_data_here` says whether this machine's data sets are needed. With `again`,
    checkpoints that are not in `scratch` are not continued.
    """

    @property
    def reads_data_here(self) -> bool: ...

    def run(
        self, shards: Iterable[Shard], scratch: Path, checkpoint_seconds: float, waiting: Waiting,
        again: bool = False,
    ) -> Iterator[tuple[Shard, Result]]: ...  # fmt: skip

    def announce(self, table: str, done: float, total: int) -> None:
        """Tell whoever watches the executor how many runs of a table are done."""


class ThisProcess:
    """One shard after another, here."""

    reads_data_here = True

    def run(
        self, shards: Iterable[Shard], scratch: Path, checkpoint_seconds: float, waiting: Waiting,
        again: bool = False,
    ) -> Iterator[tuple[Shard, Result]]:  # fmt: skip
        for shard in shards:
            yield shard, attempt(shard, scratch, checkpoint_seconds)

    def announce(self, table: str, done: float, total: int) -> None:
        pass


@dataclass(frozen=True)
class LocalProcesses:
    """Worker processes that share the cores.

    For small networks one single-threaded process per core beats one program on all cores. A worker
    holds nothing that is not in the store, and ends with this process, however that ends.
    """

    workers: int
    threads: int
    reads_data_here = True

    def run(
        self, shards: Iterable[Shard], scratch: Path, checkpoint_seconds: float, waiting: Waiting,
        again: bool = False,
    ) -> Iterator[tuple[Shard, Result]]:  # fmt: skip
        fresh, retries = iter(shards), list[tuple[Shard, int]]()
        take = lambda: retries.pop() if retries else next(((shard, 1) for shard in fresh), None)
        idle: list[Worker] = []
        busy: dict[Worker, tuple[Shard, int]] = {}
        try:
            while True:
                while len(busy) < self.workers and (task := take()):
                    worker = idle.pop() if idle else Worker(self.threads)
                    busy[worker] = task
                    worker.send(attempt, task[0], scratch, checkpoint_seconds)
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
                        retries.append((shard, tries + 1))
                    else:
                        yield shard, Failure(f"its worker died twice ({worker.death()})")
                waiting(sum(partly(shard, scratch) for shard, _ in busy.values()))
        finally:
            for worker in (*idle, *busy):
                worker.stop()

    def announce(self, table: str, done: float, total: int) -> None:
        pass


def partly(shard: Shard, scratch: Path) -> float:
    """How much of a running shard is done, in runs."""
    try:
        return len(shard.cells) * float(progress_file(shard, scratch).read_text())
    except (OSError, ValueError):
        return 0.0


def attempt(shard: Shard, scratch: Path, checkpoint_seconds: float) -> Result:
    try:
        return run_shard(shard, scratch, checkpoint_seconds)
    except Exception as error:
        # A sweep goes on without a shard that fails, whatever the reason; the reason is reported.
        return Failure(reason_of(error))


def reason_of(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.lineno}"
    return f"{type(error).__name__}: {error} ({where})"
