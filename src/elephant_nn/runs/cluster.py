"""Join a Dask cluster by address or scheduler file, or start one on this machine: `local:2`."""

import logging
import math
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster

from elephant_nn.files import ClusterError
from elephant_nn.runs.description import label_of
from elephant_nn.runs.dispatch import DEATHS, Dispatch, Notice
from elephant_nn.runs.executors import Failure, Result, Waiting
from elephant_nn.runs.machine import cores
from elephant_nn.runs.remote import TOPIC, Join, versions
from elephant_nn.runs.shard import Shard

CONNECT_SECONDS = 15


@dataclass
class DaskCluster:
    """An executor: the workers of a Dask cluster.

    Args:
        checkpoints: a folder that all workers share; default: each worker's own scratch.
        send: whether data sets are sent from here, instead of fetched by each worker.
    """

    client: Client
    checkpoints: str = ""
    send: bool = False
    reads_data_here: bool = False
    notice: Notice = lambda text: None
    announced: float = -math.inf

    def run(
        self, shards: Iterable[Shard], scratch: Path, checkpoint_seconds: float, waiting: Waiting
    ) -> Iterator[tuple[Shard, Result]]:
        options = {
            "checkpoints": self.checkpoints, "send_data": self.send,
            "checkpoint_seconds": checkpoint_seconds,
        }  # fmt: skip
        dispatch = Dispatch(self.client, self.notice, iter(shards), scratch.parent, options)
        self.client.subscribe_topic(TOPIC, lambda event: dispatch.events.put(event[1]))
        try:
            for shard, result in dispatch.results(waiting):
                if isinstance(result, Failure):
                    about = {"label": label_of(shard), "reason": result.reason}
                    self.client.log_event(TOPIC, {"kind": "failed", **about})
                yield shard, result
        finally:
            if self.client.status == "running":
                self.client.unsubscribe_topic(TOPIC)
                self.client.cancel([flight.future for flight in dispatch.flying.values()])

    def announce(self, table: str, done: float, total: int) -> None:
        now = time.time()
        if self.client.status == "running" and (done == total or now - self.announced >= 1):
            self.announced, said = now, {"table": table, "done": done, "total": total, "time": now}
            self.client.log_event(TOPIC, {"kind": "command", "client": self.client.id, **said})


@contextmanager
def cluster_executor(
    address: str, *, checkpoints: Path | str = "", send_data: bool = False,
    notice: Notice = lambda text: None,
) -> Iterator[DaskCluster]:  # fmt: skip
    """An executor for `run_cells`, `reproduce` and `sweep` that uses a Dask cluster.

    Args:
        address: of a scheduler (`tcp://`, `tls://`), a scheduler file, or `local:N` for N worker
            processes here, which share the cores.
        checkpoints: a folder that all workers share; default: each worker's own scratch.
        send_data: send data sets from this machine to workers that lack them, instead of letting
            workers fetch them.
        notice: called with the dashboard's address, and with what happens to workers.
    """
    with connected(address) as client:
        check_versions(client)
        client.register_plugin(Join(versions()))
        notice(f"dashboard: {client.dashboard_link}")
        folder = str(Path(checkpoints).resolve()) if checkpoints else ""
        here = send_data or address.startswith("local:")
        yield DaskCluster(client, folder, send_data, here, notice)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of a running scheduler, or of a cluster that is started here and ends with it."""
    if address.startswith("local:"):
        with _local(address) as cluster, Client(cluster, set_as_default=False) as client:
            yield client
        return
    where: dict[str, Any] = {"address": address}
    if "://" not in address:
        if not Path(address).is_file():
            raise ValueError(
                "cluster takes local:N, the address of a scheduler such as tcp://host:8786, or a "
                f"scheduler file, got {address!r}"
            )
        where = {"scheduler_file": address}
    try:
        client = Client(**where, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(f"there is no scheduler to join at {address}: {error}") from error
    with client:
        yield client


@contextmanager
def _local(address: str) -> Iterator[LocalCluster]:
    match = re.fullmatch(r"local:([1-9]\d*)", address)
    if match is None:
        raise ValueError(f"cluster takes local:N with N of 1 or more, got {address!r}")
    count = int(match[1])
    settings = {"distributed.scheduler.allowed-failures": DEATHS - 1}
    with dask.config.set(settings), LocalCluster(
        n_workers=count, threads_per_worker=max(1, cores() // count), processes=True,
        dashboard_address=":0", silence_logs=logging.CRITICAL,
    ) as cluster:  # fmt: skip
        yield cluster


def check_versions(client: Client) -> None:
    """Raise a ClusterError unless scheduler and workers have the versions of this process."""
    mine = versions()
    try:
        theirs = {"the scheduler": client.run_on_scheduler(versions)}
        theirs |= {f"worker {name}": found for name, found in client.run(versions).items()}
    except Exception as error:
        raise ClusterError(
            "elephant-nn cannot be imported by the scheduler or a worker; install the same "
            f"versions there as here ({mine}): {type(error).__name__}: {error}"
        ) from error
    for name, found in theirs.items():
        if found != mine:
            raise ClusterError(
                f"versions do not agree: {name} has {found}, and this command {mine}; install the "
                "same everywhere"
            )
