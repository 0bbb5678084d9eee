"""Run cells: skip what the store has, spread the rest over workers, keep each shard as it ends."""

import contextlib
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

from elephant_nn.files import make_folder, remove_leftovers
from elephant_nn.runs.cells import Cell, group_cells
from elephant_nn.runs.executors import local_pool, stop_pool
from elephant_nn.runs.progress import Report
from elephant_nn.runs.shard import ProgramFactory, Shard, run_shard
from elephant_nn.runs.store import Row, done_cells, has_shard, rows_folder, write_rows

_ATTEMPTS = 3


@dataclass
class Outcome:
    """What became of the cells that were asked for."""

    kept: int = 0
    ran: int = 0
    diverged: int = 0
    failed: dict[Cell, str] = field(default_factory=dict)

    @property
    def settled(self) -> int:
        return self.kept + self.ran + len(self.failed)


def plan_shards(
    program: ProgramFactory, cells: Iterable[Cell], lanes: Callable[[Cell], int]
) -> list[Shard]:
    """Cut each group of cells into shards of as many lanes as its program likes."""
    return [
        Shard(program, tuple(group[start : start + width]), width)
        for group in group_cells(cells)
        for width in [lanes(group[0])]
        for start in range(0, len(group), width)
    ]


def run_cells(
    program: ProgramFactory,
    cells: Iterable[Cell],
    out: Path,
    *,
    lanes: Callable[[Cell], int],
    workers: int,
    report: Report = lambda done, total: None,
    checkpoint_seconds: float = 30.0,
) -> Outcome:
    """Run all cells of one experiment that the store does not hold yet.

    Each shard is stored the moment it ends, so a kill at any time loses only shards under way, and
    the same call goes on from there. A shard that raises is reported and not stored; one whose
    worker dies is run again, three times at most. With `workers=0` everything runs in this
    process.
    """
    cells = list(dict.fromkeys(cells))
    if not cells:
        return Outcome()
    experiment = cells[0].experiment
    folder, scratch = rows_folder(out, experiment), out / experiment / "unfinished"
    remove_leftovers(make_folder(folder))
    stored = done_cells(folder)
    missing = [cell for cell in cells if cell.id not in stored]
    outcome = Outcome(kept=len(cells) - len(missing))
    shards = plan_shards(program, missing, lanes)
    job = _Job(folder, scratch, len(cells), report, checkpoint_seconds, outcome)
    job.tell([])
    if workers == 0:
        for shard in shards:
            job.keep(shard, run_shard(shard, scratch, checkpoint_seconds))
            job.tell([])
    attempts = dict.fromkeys(shards, 0)
    while workers and shards:
        shards = job.spread(shards, attempts, min(workers, len(shards)))
    with contextlib.suppress(OSError):  # not empty: another command's, or a failed shard's
        scratch.rmdir()
    return outcome


@dataclass
class _Job:
    folder: Path
    scratch: Path
    total: int
    report: Report
    checkpoint_seconds: float
    outcome: Outcome

    def keep(self, shard: Shard, rows: list[Row]) -> None:
        write_rows(self.folder, shard.id, rows)
        self.outcome.ran += len(rows)
        self.outcome.diverged += sum(row["status"] == "diverged" for row in rows)

    def fail(self, shard: Shard, reason: str) -> None:
        self.outcome.failed.update(dict.fromkeys(shard.cells, reason))

    def tell(self, running: Iterable[Shard]) -> None:
        partly = sum(len(shard.cells) * self.fraction(shard) for shard in running)
        self.report(self.outcome.settled + partly, self.total)

    def fraction(self, shard: Shard) -> float:
        try:
            return float((self.scratch / f"{shard.id}.progress").read_text())
        except (OSError, ValueError):
            return 0.0

    def spread(self, shards: list[Shard], attempts: dict[Shard, int], workers: int) -> list[Shard]:
        """Run shards on one pool. If a worker dies the pool is lost: return what to redo."""
        waiting, running = list(reversed(shards)), dict[Future, Shard]()
        pool = local_pool(workers)
        try:
            while waiting or running:
                while waiting and len(running) <= workers:
                    shard = waiting.pop()
                    if has_shard(self.folder, shard.id):  # another command was here first
                        self.outcome.kept += len(shard.cells)
                        continue
                    task = pool.submit(run_shard, shard, self.scratch, self.checkpoint_seconds)
                    running[task] = shard
                for future in wait(running, timeout=0.5, return_when=FIRST_COMPLETED).done:
                    error = future.exception()
                    if isinstance(error, BrokenProcessPool):
                        raise error
                    shard = running.pop(future)
                    if error is None:
                        self.keep(shard, future.result())
                    else:
                        self.fail(shard, f"{type(error).__name__}: {error}")
                self.tell(running.values())
        except BrokenProcessPool:
            return list(reversed(waiting)) + self.to_redo(running.values(), attempts)
        except BaseException:
            stop_pool(pool)
            raise
        pool.shutdown()
        return []

    def to_redo(self, lost: Iterable[Shard], attempts: dict[Shard, int]) -> list[Shard]:
        again = []
        for shard in lost:
            attempts[shard] += 1
            if attempts[shard] < _ATTEMPTS:
                again.append(shard)
            else:
                self.fail(shard, f"its worker died {_ATTEMPTS} times (out of memory?)")
        return again
