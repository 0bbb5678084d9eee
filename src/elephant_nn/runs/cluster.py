"""Run shards on a Dask cluster: `tcp://host:8786`, a scheduler file, or `local:2`."""

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from distributed import Client

from elephant_nn.runs.connection import check_versions, connected
from elephant_nn.runs.description import label_of
from elephant_nn.runs.dispatch import Dispatch, Notice
from elephant_nn.runs.executors import Failure, Result, Waiting
from elephant_nn.runs.remote import TOPIC, Join, versions
from elephant_nn.runs.shard import Shard


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
        self, shards: Iterable[Shard], scratch: Path, checkpoint_seconds: float, waiting: Waiting,
        again: bool = False,
    ) -> Iterator[tuple[Shard, Result]]:  # fmt: skip
        options = {
            "checkpoints": self.checkpoints, "send_data": self.send,
            "checkpoint_seconds": checkpoint_seconds, "again": again,
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
