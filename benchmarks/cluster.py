"""A Dask cluster on this machine against the local pool, and a model of 64 machines."""

import heapq
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import psutil

from benchmarks.table import Measurement
from elephant_nn.experiments.api import work_of
from elephant_nn.experiments.spec import Row
from elephant_nn.experiments.tables import TABLES
from elephant_nn.runs.cells import Cell
from elephant_nn.runs.executors import Executor, LocalProcesses
from elephant_nn.runs.machine import cores
from elephant_nn.runs.program import Method, Program
from elephant_nn.runs.run import plan_shards
from elephant_nn.runs.shard import Shard, Work
from elephant_nn.runs.store import write_rows

SINE_SHARDS, ROUNDS, WORKERS = 24, 3, 2
SHORT_SHARDS = 60


@dataclass(frozen=True)
class Wait:
    """Shards that take a given time and no processor: what is left is the executor's own time."""

    def lanes(self, hyper: Any) -> int:
        return 1

    def program(self, method: Method, evaluations: float, *, seconds: float) -> Program:
        finish = lambda outputs: time.sleep(evaluations) or {}
        init = lambda key, floats, data: jnp.zeros(())
        chunk = lambda carry, floats, data, index: (carry, {})
        return Program(init, chunk, 1, finish, {})


WAIT = Wait()


def nothing() -> None:
    """A builder without settings."""


def waiting_shards(count: int, seconds: float) -> list[Shard]:
    work = Work("benchmarks.cluster:WAIT", "benchmarks.cluster:nothing", seconds)
    cells = [Cell.of("wait", "wait", {"seconds": seconds}, seed) for seed in range(count)]
    return [Shard(work, (cell,), 1) for cell in cells]


def sine_shards() -> list[Shard]:
    """The first shards of the EMLP sine grid."""
    table = TABLES["sine"]
    row = next(row for row in table.rows if row.method == "emlp")
    cells = table.choosing_cells(row, row.candidates(), table.seeds)
    return plan_shards([(work_of(table, row), c) for c in cells], lambda cell: 15)[:SINE_SHARDS]


@dataclass
class Timed:
    """When shards came back, in seconds since before the executor was there, and the processor time
    used by then; names of files."""

    back: list[float]
    used: list[float]
    files: set[str]

    def rate(self, workers: int) -> float:
        """Shards per second once all workers are at work."""
        return (len(self.back) - workers) / (self.back[-1] - self.back[workers - 1])

    def processor(self, workers: int) -> float:
        """Processor seconds per shard once all workers are at work, on a busy machine, too."""
        return (self.used[-1] - self.used[workers - 1]) / (len(self.used) - workers)


def processor_seconds() -> float:
    """Of this process and all that come from it."""
    me, total = psutil.Process(), 0.0
    for process in (me, *me.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


@contextmanager
def local_pool(workers: int) -> Iterator[Executor]:
    yield LocalProcesses(workers, max(1, cores() // workers))


def local_cluster(workers: int) -> Any:
    from elephant_nn.runs.cluster import cluster_executor

    return cluster_executor(f"local:{workers}")


def run(make: Any, workers: int, shards: list[Shard], warm: list[Shard] = ()) -> Timed:  # type: ignore[assignment]
    """Run shards; with `warm`, run those before the clock starts."""
    started, back, used, files = time.perf_counter(), [], [], set()
    with tempfile.TemporaryDirectory() as folder, make(workers) as executor:
        go = lambda some: executor.run(some, Path(folder) / "scratch", 10.0, lambda partly: None)
        if warm:
            list(go(warm))
            started = time.perf_counter()
        for shard, rows in go(shards):
            back.append(time.perf_counter() - started)
            used.append(processor_seconds())
            files.add(write_rows(Path(folder), shard.id, rows).name)  # fails on a failure
    return Timed(back, used, files)


def measure() -> list[Measurement]:
    """Interleaved; the best of some rounds, because a busy machine only makes things slower."""
    shards = sine_shards()
    pool, cluster = [], []
    for _ in range(ROUNDS):
        pool.append(run(local_pool, WORKERS, shards))
        cluster.append(run(local_cluster, WORKERS, shards))
    same = {frozenset(timed.files) for timed in (*pool, *cluster)}
    first = [min(timed.back[0] for timed in many) for many in (pool, cluster)]
    rates = [max(timed.rate(WORKERS) for timed in many) for many in (pool, cluster)]
    used = [min(timed.processor(WORKERS) for timed in many) for many in (pool, cluster)]
    whole = [min(timed.back[-1] for timed in many) for many in (pool, cluster)]
    lines = [
        Measurement(
            f"local:{WORKERS} until the first shard is back", f"{first[1]:.1f} s",
            f"local pool, {first[0]:.1f} s", first[1] / first[0], "",
        ),
        Measurement(
            f"local:{WORKERS}, {len(shards)} shards of the sine grid, all workers busy",
            f"{rates[1]:.2f} shards/s", f"local pool, {rates[0]:.2f} shards/s",
            rates[1] / rates[0], ">= .95",
        ),
        Measurement(
            "the same, processor time", f"{used[1]:.2f} s per shard",
            f"local pool, {used[0]:.2f} s per shard", used[0] / used[1], ">= .95",
        ),
        Measurement(
            "the same, everything included", f"{whole[1]:.1f} s", f"local pool, {whole[0]:.1f} s",
            whole[0] / whole[1], "",
        ),
        Measurement("the same bytes", f"{len(cluster[0].files)} files", "local pool",
                    float(len(same) == 1), "1"),
    ]  # fmt: skip
    return [*lines, *_overhead(), *_more_workers(), *_model()]


def _overhead() -> list[Measurement]:
    """What a shard costs besides its own time, by its length."""
    lines = []
    for seconds, count in ((0.001, SHORT_SHARDS), (0.1, SHORT_SHARDS), (1.0, SHORT_SHARDS // 5)):
        shards = waiting_shards(count, seconds)
        extra = []
        for make in (local_pool, local_cluster):
            rates = [run(make, WORKERS, shards).rate(WORKERS) for _ in range(2)]
            extra.append(1000 * (WORKERS / max(rates) - seconds))
        lines.append(
            Measurement(
                f"overhead of a shard of {1000 * seconds:.0f} ms on local:{WORKERS}",
                f"{extra[1]:.1f} ms",
                f"local pool, {extra[0]:.1f} ms",
                extra[1] / extra[0],
                "",
            )
        )
    return lines


def _more_workers() -> list[Measurement]:
    """Shards that need no processor, on more workers than there are cores."""
    lines = []
    for workers in (2, 4, 8):
        count, seconds = 6 * workers, 0.5
        timed = run(local_cluster, workers, waiting_shards(count, seconds), waiting_shards(24, 0.1))
        lines.append(
            Measurement(
                f"local:{workers}, {count} shards of {seconds} s that need no processor",
                f"{timed.back[-1]:.2f} s",
                "without overhead",
                count * seconds / workers / timed.back[-1],
                "",
            )
        )
    return lines


RUN_MINUTES = {  # of one run on one core, from docs/classes.md and runs there; assumptions
    ("cnn", 1000): 0.9, ("cnn", 10_000): 7.0, ("sdmlp", 1000): 30.0, ("sdmlp", 10_000): 45.0,
    ("other", 1000): 0.15, ("other", 10_000): 1.3,
}  # fmt: skip


def minutes(row: Row) -> float:
    """The assumed time of one run of a row."""
    wide = 10_000 if int(row.settings.get("neurons", 1000)) > 2000 else 1000
    kind = "cnn" if "cnn" in row.method else "sdmlp" if row.settings.get("passes", 1) != 1 else ""
    return RUN_MINUTES[kind or "other", wide]


def phases(name: str) -> list[list[float]]:
    """Minutes of the shards of `elephant results`, which waits between the lists."""
    table, found, reported = TABLES[name], [], list[float]()
    groups: dict[Any, list[Row]] = {}
    for row in table.rows:
        seeds = row.runs or table.published_seeds or table.seeds
        reported += [minutes(row)] * seeds * (1 + len(row.variants))
        if row.search and row.grid:
            groups.setdefault((row.search, seeds), []).append(row)
    for (search, _), rows in groups.items():
        tried = [minutes(r) for r in rows for _ in r.candidates(coarse=search.coarse)]
        found.append(tried * search.seeds)
        found.append([minutes(r) for r in rows for _ in range(3 * search.seeds * search.finalists)])
    return [phase for phase in (*found, reported) if phase]


def finish_time(tasks: list[float], machines: int) -> float:
    """When the last of some tasks ends that machines take in the order of the list."""
    free = [0.0] * machines
    for task in tasks:
        heapq.heapreplace(free, free[0] + task)
    return max(free)


def _model() -> list[Measurement]:
    """64 machines with two workers each: no overhead, no failures, runs as fast as here."""
    lists = phases("split-mnist")
    total, shards = sum(map(sum, lists)), sum(map(len, lists))
    lines = []
    for machines in (1, 8, 64):
        workers = 2 * machines
        taken = sum(finish_time(tasks, workers) for tasks in lists)
        lines.append(
            Measurement(
                f"model: results split-mnist, {shards} shards in {len(lists)} phases, longest "
                f"{max(map(max, lists)):.0f} min, {machines} machines of 2 workers",
                f"{taken / 60:.1f} h",
                f"{total / 60:.0f} h of one core, divided",
                total / workers / taken,
                "",
            )
        )
    return lines
