"""Hand shards to the workers of a Dask cluster, and decide what to do when something fails."""

from __future__ import annotations

import math
import queue
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from distributed import Client, Future, KilledWorker

from elephant_nn.files import ClusterError, write_whole
from elephant_nn.runs.answers import Answer, Died, Done, Failed, NeedsData, NeedsMemory, Unfit
from elephant_nn.runs.connection import DEATHS
from elephant_nn.runs.description import describe
from elephant_nn.runs.executors import Failure, Result, Waiting
from elephant_nn.runs.remote import MEMORY, SHARDS, leave, overview, take_part
from elephant_nn.runs.sending import send_data
from elephant_nn.runs.shard import Shard

REFRESH_SECONDS = 1.0
GRACE_SECONDS = 30.0
"""How long to wait for another worker when all there are have given up."""
Notice = Callable[[str], None]


@dataclass
class Flight:
    """A shard that is with the cluster."""

    shard: Shard
    future: Future[Any]
    worker: str = ""
    starts: int = 0
    fraction: float = 0.0


@dataclass
class Dispatch:
    """Shards on their way: which are with the cluster, which have to be sent again, and why.

    Args:
        folder: of the table, for learned parameters.
        options: for `take_part`.
    """

    client: Client
    notice: Notice
    source: Iterator[Shard]
    folder: Path
    options: dict[str, Any]
    flying: dict[str, Flight] = field(default_factory=dict)
    again: list[Shard] = field(default_factory=list)
    failed: list[tuple[Shard, Failure]] = field(default_factory=list)
    deaths: dict[str, tuple[int, float]] = field(default_factory=dict)
    needs: dict[str, int] = field(default_factory=dict)
    unfit: dict[str, str] = field(default_factory=dict)
    ready: dict[str, float] = field(default_factory=dict)
    events: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    refreshed: float = -math.inf
    lonely: bool = False
    hopeful: float = field(default_factory=time.monotonic)
    there: list[str] = field(default_factory=list)

    def results(self, waiting: Waiting) -> Iterator[tuple[Shard, Result]]:
        while True:
            self.refresh()
            # One more per worker than it runs, so that it need not wait for the next.
            while len(self.flying) < 2 * len(self.ready) and (shard := self.take()):
                self.submit(shard)
            yield from self.drain_failed()
            if not self.flying and not self.more():
                return
            if self.ready:
                self.lonely, self.hopeful = False, time.monotonic()
            else:
                self.nobody()
            try:
                event = self.events.get(timeout=0.5)
            except queue.Empty:
                event = {"kind": "nothing"}
            while event is not None:
                if event["kind"] == "done":
                    yield from self.landed(event["key"])
                else:
                    self.told(event)
                event = None if self.events.empty() else self.events.get()
            yield from self.drain_failed()
            waiting(sum(f.fraction * len(f.shard.cells) for f in self.flying.values()))

    def take(self) -> Shard | None:
        return self.again.pop() if self.again else next(self.source, None)

    def drain_failed(self) -> Iterator[tuple[Shard, Result]]:
        while self.failed:
            yield self.failed.pop()

    def more(self) -> bool:
        """Whether there are shards that are not with the cluster."""
        shard = self.take()
        self.again += [shard] if shard else []
        return shard is not None

    def nobody(self) -> None:
        """No worker takes shards: wait for some, unless all there are have given up for a while."""
        if not self.lonely:
            self.lonely = True
            self.notice("waiting for workers")
        if not self.there or set(self.there) - set(self.unfit):
            self.hopeful = time.monotonic()
        elif time.monotonic() - self.hopeful > GRACE_SECONDS:
            reasons = "; ".join(f"{worker}: {why}" for worker, why in self.unfit.items())
            raise ClusterError(f"no worker can go on ({reasons}); finished runs are stored")

    def refresh(self) -> None:
        """Ask the scheduler, once per second, who takes shards."""
        if time.monotonic() - self.refreshed < REFRESH_SECONDS and self.running():
            return
        try:
            there = self.client.run_on_scheduler(overview)["workers"]
        except (OSError, TimeoutError, RuntimeError) as error:
            raise self.lost() from error
        self.there = list(there)
        self.unfit = {worker: why for worker, why in self.unfit.items() if worker in there}
        takes = lambda address: there[address]["takes"] and address not in self.unfit
        ready = {address: w["memory"] for address, w in there.items() if takes(address)}
        changed, self.ready = ready.keys() != self.ready.keys(), ready
        self.refreshed = time.monotonic()
        for key in [key for key, f in self.flying.items() if f.worker not in ("", *self.there)]:
            flight = self.take_back(key)
            if not self.died(flight, "the worker was lost"):
                self.again.append(flight.shard)
        if changed:  # the scheduler does not look again at tasks that no worker could take
            self.reassign()

    def running(self) -> bool:
        if self.client.status != "running":
            raise self.lost()
        return True

    def lost(self) -> ClusterError:
        return ClusterError(
            "the connection to the scheduler is lost; finished runs are stored, and the same "
            "command continues from here when there is a scheduler"
        )

    def submit(self, shard: Shard) -> None:
        key = f"{shard.cells[0].experiment}-{uuid4().hex}"
        needed = self.needs.get(self.group(shard), 0) if self.needs else 0
        if needed > (most := max(self.ready.values(), default=math.inf)):
            reason = (
                f"it needs about {needed / 1e9:.1f} GB, and no worker has more than "
                f"{most / 1e9:.1f} GB; start one with more memory"
            )
            self.failed.append((shard, Failure(reason)))
            return
        resources = {SHARDS: 1, **({MEMORY: needed} if needed else {})}
        again = self.options["again"] and shard.id not in self.deaths
        options = {**self.options, "again": again}
        future = self.client.submit(
            take_part, describe(shard), options, key=key, resources=resources, retries=0
        )
        self.flying[key] = Flight(shard, future)
        future.add_done_callback(lambda _: self.events.put({"kind": "done", "key": key}))

    def group(self, shard: Shard) -> str:
        return shard.work.group(shard.cells[0])

    def told(self, event: dict[str, Any]) -> None:
        """Something that workers say."""
        flight = self.flying.get(event.get("key", ""))
        if event["kind"] == "unfit":
            self.dismiss(event["worker"], event["reason"])
        elif event["kind"] == "start" and flight:
            flight.worker, flight.starts = event["worker"], flight.starts + 1
            if flight.starts > 1 and self.died(flight, "the worker was lost"):
                self.take_back(event["key"])
        elif event["kind"] == "progress" and flight:
            flight.fraction = event["fraction"]

    def dismiss(self, worker: str, reason: str) -> None:
        if worker not in self.unfit:
            self.notice(f"worker {worker} takes no more shards: {reason}")
        self.unfit[worker] = reason
        self.ready.pop(worker, None)
        self.reassign()

    def reassign(self) -> None:
        """Submit shards that have not started once more: the workers have changed."""
        for key in [key for key, flight in self.flying.items() if not flight.starts]:
            self.again.append(self.take_back(key).shard)

    def take_back(self, key: str) -> Flight:
        flight = self.flying.pop(key)
        flight.future.cancel()
        return flight

    def died(self, flight: Flight, how: str) -> bool:
        """Count a death without progress since the last; True if the shard is given up."""
        count, fraction = self.deaths.get(flight.shard.id, (0, 0.0))
        if flight.fraction > fraction:
            count, fraction = 0, flight.fraction
        self.deaths[flight.shard.id] = count + 1, fraction
        if count + 1 < DEATHS:
            return False
        self.failed.append((flight.shard, Failure(f"its worker died three times ({how})")))
        return True

    def landed(self, key: str) -> Iterator[tuple[Shard, Result]]:
        """A future is done: its answer, or what became of it."""
        flight = self.flying.pop(key, None)
        if flight is None:  # taken back
            return
        self.running()
        shard = flight.shard
        try:
            answer = result_of(flight.future)
        except KilledWorker:
            yield shard, Failure("its worker died three times (the worker was lost)")
            return
        except Exception as error:
            self.running()
            yield shard, Failure(f"{type(error).__name__}: {error}")
            return
        match answer:
            case Done(rows, learned):
                for name, content in learned.items():
                    write_whole(self.folder / "learned" / name, content)
                yield shard, rows
                return
            case Failed(reason):
                yield shard, Failure(reason)
                return
            case Died(how):
                if self.died(flight, how):
                    return
            case Unfit(reason):
                self.dismiss(flight.worker, reason)
            case NeedsMemory(size):
                self.needs[self.group(shard)] = size
            case NeedsData(name, embedding):
                try:
                    send_data(self.client, flight.worker, name, embedding)
                except OSError as error:
                    self.client.run(leave, workers=[flight.worker], on_error="ignore")
                    self.dismiss(flight.worker, f"{name} cannot be sent: {error}")
        self.again.append(shard)


def result_of(future: Future[Any]) -> Answer | None:
    """The result; None if it was lost with its worker before it came here."""
    while future.status in ("finished", "error"):
        try:
            return future.result(timeout=1)
        except TimeoutError:
            continue
    return None
