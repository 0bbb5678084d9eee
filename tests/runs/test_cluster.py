"""Sweeps on real Dask clusters that break in every way end with the rows of an unbroken one."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import toy
from dask_processes import alive, computing, dask_processes, until
from support import children_of

from elephant_nn.data.embedding import embedding_path
from elephant_nn.files import ClusterError
from elephant_nn.runs import dispatch
from elephant_nn.runs.cluster import cluster_executor
from elephant_nn.runs.executors import LocalProcesses
from elephant_nn.runs.run import run_cells
from elephant_nn.runs.store import read_rows, rows_folder

pytestmark = pytest.mark.slow
CELLS = [toy.cell(seed, "slow") for seed in range(8)]


def run(cells, out, executor, **options):
    outcome = run_cells(
        [(toy.work(cell.method), cell) for cell in cells], out, lanes=lambda cell: 1,
        executor=executor, checkpoint_seconds=0, **options,
    )  # fmt: skip
    return outcome, stored(out)


def stored(out):
    rows = read_rows(rows_folder(out, "toy"))
    return rows.sort("cell") if rows.height else rows


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    outcome, rows = run(CELLS, tmp_path_factory.mktemp("unbroken"), LocalProcesses(2, 1))
    assert outcome.ran == len(CELLS)
    return rows


@pytest.fixture
def cluster(tmp_path):
    with dask_processes(tmp_path / "cluster") as processes:
        processes.scheduler()
        yield processes


def names(folder):
    return sorted(path.name for path in rows_folder(folder, "toy").glob("*.parquet"))


def test_a_lost_worker_and_late_ones(cluster, tmp_path, unbroken):
    """One worker is killed in the middle of a shard; one that computes with it dies, too; another
    joins late, after the command has said that it waits, and does the rest."""
    first, said, late = cluster.worker(), [], []
    cluster.wait_for_workers(1)

    def break_it(done, total):
        if done >= 2 and first.poll() is None:
            child = computing(first)
            first.kill()
            first.wait()
            until(lambda: not alive(child), "the end of its computing process", 20)
            said.append("killed")
            late.append(time.monotonic() + 20)
        elif late and len(late) < 2:
            if "waiting for workers" in said[said.index("killed") :]:
                late.append(cluster.worker(threads=2))
            assert time.monotonic() < late[0], said

    with cluster_executor(str(cluster.file), notice=said.append) as executor:
        outcome, rows = run(CELLS, tmp_path / "out", executor, report=break_it)
    assert (outcome.ran, outcome.failed) == (len(CELLS), {})
    assert first.returncode == -signal.SIGKILL
    assert set(rows["threads"]) == {1, 2}
    assert rows.drop("threads").equals(unbroken.drop("threads"))
    assert said[0].startswith("dashboard: http")


def test_a_slow_worker_holds_up_one_shard(cluster, tmp_path, unbroken):
    slow = cluster.worker(threads=2, TOY_CHUNK_SECONDS="2")
    cluster.worker()
    cluster.wait_for_workers(2)
    with cluster_executor(str(cluster.file)) as executor:
        _, rows = run(CELLS, tmp_path / "out", executor)
    assert slow.poll() is None
    assert rows.drop("threads").equals(unbroken.drop("threads"))
    assert (rows["threads"] == 2).sum() <= 2


def test_a_lost_scheduler_loses_nothing_that_came_back(cluster, tmp_path, unbroken):
    scheduler, out = cluster.started[0], tmp_path / "out"
    cluster.worker()
    cluster.wait_for_workers(1)

    def kill(done, total):
        if done >= 2:
            scheduler.kill()

    with (
        pytest.raises(ClusterError, match="the connection to the scheduler is lost; finished runs"),
        cluster_executor(str(cluster.file)) as executor,
    ):
        run(CELLS, out, executor, report=kill)
    before = names(out)
    assert 2 <= len(before) < len(CELLS)
    cluster.scheduler()
    cluster.worker()
    cluster.wait_for_workers(1)
    with cluster_executor(str(cluster.file)) as executor:
        outcome, rows = run(CELLS, out, executor)
    assert outcome.kept == len(before)
    assert set(before) < set(names(out))
    assert rows.equals(unbroken)


COMMAND = """
import sys
import threading
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from test_cluster import CELLS, run
from elephant_nn.runs import dispatch
from elephant_nn.runs.cluster import cluster_executor
if __name__ == "__main__":
    with cluster_executor(sys.argv[1]) as executor:
        run(CELLS, Path(sys.argv[2]), executor)
"""


@pytest.fixture
def command(tmp_path):
    script = tmp_path / "command.py"
    script.write_text(COMMAND)
    started = []

    def start(address, out):
        here = os.path.dirname(__file__)  # noqa: PTH120
        started.append(
            subprocess.Popen(
                [sys.executable, str(script), address, str(out), here],
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_killed_client_leaves_no_orphans(cluster, tmp_path, unbroken, command):
    worker, out = cluster.worker(TOY_CHUNK_SECONDS="0.4"), tmp_path / "out"
    client = command(str(cluster.file), out)
    until(lambda: len(names(out)) >= 2, "two rows")
    child = computing(worker)
    client.kill()
    client.wait()
    idle = lambda: not any(w["keys"] for w in cluster.overview()["workers"].values())
    until(idle, "an idle cluster", 20)
    until(lambda: not alive(child), "the end of the orphaned shard", 20)
    assert worker.poll() is None
    before = names(out)
    assert len(before) < len(CELLS)
    assert command(str(cluster.file), out).wait(120) == 0
    assert set(before) < set(names(out))
    assert stored(out).equals(unbroken)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_local_cluster_ends_with_its_command(tmp_path, unbroken, command, how):
    out = tmp_path / "out"
    client = command("local:2", out)
    until(lambda: len(names(out)) >= 2, "two rows")
    family = list(descendants(client.pid))
    assert len(family) >= 4  # two workers, each with a computing process
    os.killpg(client.pid, how) if how == signal.SIGINT else client.kill()
    client.wait(30)
    until(lambda: not any(map(alive, family)), "the end of all processes", 20)
    assert command("local:2", out).wait(120) == 0
    assert stored(out).drop("threads").equals(unbroken.drop("threads"))


def descendants(pid):
    for child in children_of(pid):
        yield child
        yield from descendants(child)


def test_shards_that_kill_fail_alone_and_data_is_sent(cluster, tmp_path, monkeypatch):
    """A shard whose process dies three times, one that raises, and one that needs data. A worker
    with too little memory passes all of them on."""
    cache = tmp_path / "cache"
    cluster.worker(ELEPHANT_NN_CACHE=str(cache))
    cluster.worker("--memory-limit", "0.3GB", threads=2)
    cluster.wait_for_workers(2)
    monkeypatch.setenv("ELEPHANT_NN_CACHE", str(tmp_path / "here"))
    mine = embedding_path("digits", "mine")
    mine.parent.mkdir(parents=True)
    x, y = np.arange(12.0, dtype=np.float32).reshape(6, 2), np.arange(6, dtype=np.int32) % 2
    np.savez(mine, x_train=x, y_train=y, x_test=x, y_test=y)
    poison, bad, data = toy.cell(0, "die"), toy.cell(0, "fail"), toy.cell(0, "train")
    with cluster_executor(str(cluster.file), send_data=True) as executor:
        outcome, rows = run([poison, bad, data], tmp_path / "out", executor)
        from_data = run_cells(
            [(toy.work("train", "EMBEDDED"), toy.cell(7, embedding="mine"))], tmp_path / "data",
            lanes=lambda cell: 1, executor=executor,
        )  # fmt: skip
    assert rows.select("cell", "threads").rows() == [(data.id, 1)]
    assert outcome.failed[poison] == "its worker died three times (killed: out of memory?)"
    assert outcome.failed[bad].startswith("RuntimeError: this method always fails (toy.py:")
    assert from_data.ran == 1
    sent = cache / "embeddings" / "digits" / "mine.npz"
    assert sent.read_bytes() == mine.read_bytes()
    assert not list(cache.glob(".arriving*"))


def test_other_versions_and_full_disks(cluster, tmp_path, unbroken):
    """A worker with another version gets nothing, and one with a full disk does not go on; shards
    run elsewhere. A command that finds another version from the start says so."""
    other = tmp_path / "other" / "elephant_nn-9.9.9.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: elephant-nn\nVersion: 9.9.9\n")
    path = os.pathsep.join([str(other.parent), *sys.path])
    full = cluster.worker(threads=2)
    cluster.wait_for_workers(1)
    said, joined = [], []

    def report(done, total):
        if done >= 1 and not joined:
            resource.prlimit(computing(full), resource.RLIMIT_FSIZE, (100, 100))
            joined.append(cluster.worker(threads=3, PYTHONPATH=path))
            cluster.wait_for_workers(2)
            joined.append(cluster.worker())

    with cluster_executor(str(cluster.file), notice=said.append) as executor:
        outcome, rows = run(CELLS, tmp_path / "out", executor, report=report)
    assert (outcome.ran, outcome.failed) == (len(CELLS), {})
    assert rows.drop("threads").equals(unbroken.drop("threads"))
    assert set(rows["threads"]) == {1, 2}
    assert full.poll() is None
    assert any("takes no more shards: cannot write" in text for text in said), said
    assert any("it has elephant-nn 9.9.9" in text for text in said), said
    disagree = r"versions do not agree: worker tcp://\S+ has elephant-nn 9.9.9"
    with pytest.raises(ClusterError, match=disagree), cluster_executor(str(cluster.file)):
        raise AssertionError


def test_a_command_waits_when_workers_that_gave_up_are_gone(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(dispatch, "GRACE_SECONDS", 1.5)
    first, said, gone = cluster.worker(), [], []
    cluster.wait_for_workers(1)

    def report(done, total):
        if not gone and children_of(first.pid):
            resource.prlimit(computing(first), resource.RLIMIT_FSIZE, (100, 100))
            gone.append(0.0)
        elif gone == [0.0] and any("takes no more shards" in text for text in said):
            first.kill()
            gone.append(time.monotonic() + 2.5)
        elif len(gone) == 2 and time.monotonic() > gone[1]:
            gone.append(cluster.worker())

    with cluster_executor(str(cluster.file), notice=said.append) as executor:
        outcome, _ = run(CELLS[:1], tmp_path / "out", executor, report=report)
    assert (len(gone), outcome.ran, outcome.failed) == (3, 1, {})


def test_a_command_ends_when_every_worker_has_given_up(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(dispatch, "GRACE_SECONDS", 1.0)
    (tmp_path / "file").write_text("no folder for checkpoints")
    cluster.worker()
    cluster.wait_for_workers(1)
    with (
        pytest.raises(ClusterError, match=r"no worker can go on \(tcp://\S+: cannot write"),
        cluster_executor(str(cluster.file), checkpoints=tmp_path / "file") as executor,
    ):
        run(CELLS[:2], tmp_path / "out", executor)


def test_a_command_ends_when_data_cannot_be_sent(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(dispatch, "GRACE_SECONDS", 1.0)
    monkeypatch.setenv("ELEPHANT_NN_CACHE", str(tmp_path / "here"))
    cluster.worker(ELEPHANT_NN_CACHE=str(tmp_path / "cache"))
    cluster.wait_for_workers(1)
    job = (toy.work("train", "EMBEDDED"), toy.cell(embedding="mine"))
    with (
        pytest.raises(ClusterError, match=r"no worker can go on \(\S+: digits cannot be sent"),
        cluster_executor(str(cluster.file), send_data=True) as executor,
    ):
        run_cells([job], tmp_path / "out", lanes=lambda cell: 1, executor=executor)


@pytest.mark.parametrize("limit", ["0", "1GB"])
def test_shards_that_need_much_memory(cluster, tmp_path, limit):
    """One worker is too small; the other, which is unlimited or large enough, is lost."""
    big = cluster.worker("--memory-limit", limit, threads=2, TOY_CHUNK_SECONDS="0.2")
    cluster.worker("--memory-limit", "0.3GB")
    cluster.wait_for_workers(2)

    def report(done, total):
        if done >= 2:
            big.kill()

    with cluster_executor(str(cluster.file)) as executor:
        outcome, rows = run(CELLS[:4], tmp_path / "out", executor, report=report)
    assert set(rows["threads"]) == {2}
    assert outcome.ran + len(outcome.failed) == 4
    for reason in outcome.failed.values():
        assert "it needs about 0.6 GB, and no worker has more than 0.3 GB" in reason
    assert outcome.failed


def test_notebooks_join_a_cluster(cluster):
    """They run code inside an event loop."""

    async def cell():
        with cluster_executor(str(cluster.file)) as executor:
            return executor.client.status

    assert asyncio.run(cell()) == "running"
