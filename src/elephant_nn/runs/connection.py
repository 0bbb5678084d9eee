"""Join a Dask cluster by address or scheduler file, or start one on this machine. Without JAX."""

import asyncio
import json
import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import dask
from distributed import Client, LocalCluster
from distributed.comm.core import connect
from distributed.security import Security

from elephant_nn.files import ClusterError
from elephant_nn.runs.machine import cores
from elephant_nn.runs.remote import versions

CONNECT_SECONDS = 15
DEATHS = 3
"""A shard whose worker has died this often is reported as failed."""


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """A client of a running scheduler, or of a cluster that is started here and ends with it."""
    if address.startswith("local:"):
        with _local(address) as cluster, Client(cluster, set_as_default=False) as client:
            yield client
        return
    where = _address(address)
    try:
        # A client that cannot connect takes long to give up. Notebooks have an event loop here.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(_reach(where))).result()
        client = Client(where, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, RuntimeError, TypeError) as error:  # the last two are about TLS settings
        raise ClusterError(f"there is no scheduler to join at {address}: {error}") from error
    with client:
        yield client


def _address(text: str) -> str:
    """An address as it is, or the one in a scheduler file."""
    if "://" in text:
        return text
    if not Path(text).is_file():
        raise ValueError(
            "cluster takes local:N, the address of a scheduler such as tcp://host:8786, or a "
            f"scheduler file, got {text!r}"
        )
    try:
        return str(json.loads(Path(text).read_text())["address"])
    except (json.JSONDecodeError, LookupError, TypeError) as error:
        raise ValueError(f"cluster: {text} is not a scheduler file: {error}") from error


async def _reach(address: str) -> None:
    security = Security().get_connection_args("client")
    try:
        comm = await connect(address, timeout=CONNECT_SECONDS, **security)
    except ValueError as error:
        raise ValueError(f"cluster {address}: {error}") from error
    await comm.close()


@contextmanager
def _local(address: str) -> Iterator[LocalCluster]:
    match = re.fullmatch(r"local:([1-9]\d*)", address)
    if match is None:
        raise ValueError(f"cluster takes local:N with N of 1 or more, got {address!r}")
    count = int(match[1])
    settings = {
        "distributed.scheduler.allowed-failures": DEATHS - 1,
        # Shards need these processes' share of the cores; nobody looks at Dask's own profiles.
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "500ms",
        "distributed.admin.system-monitor.interval": "2s",
    }
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


def silence_dask() -> None:
    """Commands say what matters."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
