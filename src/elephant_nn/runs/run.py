"""Run cells: skip what the store has, spread the rest over workers, keep each shard as it ends."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

from elephant_nn.files import make_folder, remove_leftovers
from elephant_nn.runs.cells import Cell, group_cells
from elephant_nn.runs.executors import cores, local_pool, stop_pool
from elephant_nn.runs.progress import Report
from elephant_nn.runs.shard import ProgramFactory, Shard, run_shard
from elephant_nn.runs.store import Row, done_cells, has_shard, rows_folder, write_rows


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
    program: ProgramFactory,
    cells: Iterable[Cell],
    lanes: Callable[[Cell], int],
    *,
    keep: bool = False,
) -> list[Shard]:
    """Cut each group of cells into shards of as many lanes as its program likes."""
    return [
        Shard(program, tuple(group[start : start + width]), width, keep)
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
    keep: bool = False,
    report: Report = lambda done, total: None,
    checkpoint_seconds: float = 10.0,
) -> Outcome:
    """Run all cells of one experiment that the store does not hold yet.

    Each shard is stored the moment it ends, so a kill at any time loses only shards under way, and
    the same call goes on from there. A shard that raises is reported and not stored; one whose
    worker dies is run once more, alone. With `workers=0` everything runs in this process. With
    `keep`, what the runs learned is kept too, where a program says what that is.
    """
    cells = list(dict.fromkeys(cells))
    if not cells:
        return Outcome()
    experiment = cells[0].experiment
    folder = make_folder(rows_folder(out, experiment))
    scratch = make_folder(out / experiment / "unfinished")
    for place in (folder, scratch):
        remove_leftovers(place)
    stored = done_cells(folder)
    missing = [cell for cell in cells if cell.id not in stored]
    outcome = Outcome(kept=len(cells) - len(missing))
    shards = plan_shards(program, missing, lanes, keep=keep)
    # Threads add up large sums in another order: their number must not depend on what is left.
    threads = max(1, cores() // max(workers, 1))
    job = _Job(folder, scratch, len(cells), report, checkpoint_seconds, outcome, threads)
    job.tell([])
    if workers == 0:
        for shard in shards:
            job.run_here(shard)
    while workers and shards:
        suspects, shards = job.spread(shards, min(workers, len(shards)))
        for shard in suspects:
            job.run_alone(shard)
    return outcome


@dataclass
class _Job:
    folder: Path
    scratch: Path
    total: int
    report: Report
    checkpoint_seconds: float
    outcome: Outcome
    threads: int

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

    def run_here(self, shard: Shard) -> None:
        task: Future[list[Row]] = Future()
        try:
            task.set_result(run_shard(shard, self.scratch, self.checkpoint_seconds))
        except Exception as error:  # what a pool does with a task that raises
            task.set_exception(error)
        self.settle(shard, task)
        self.tell([])

    def settle(self, shard: Shard, task: Future[list[Row]]) -> None:
        error = task.exception()
        if error is None:
            self.keep(shard, task.result())
        else:
            self.fail(shard, f"{type(error).__name__}: {error}")

    def spread(self, shards: list[Shard], workers: int) -> tuple[list[Shard], list[Shard]]:
        """Run shards on one pool. If a worker dies the pool is lost with all it had in hand.

        Returns those, any of which may have killed it, and the shards that were not begun.
        """
        waiting, running = list(reversed(shards)), dict[Future[list[Row]], Shard]()
        pool = local_pool(workers, self.threads)
        try:
            while waiting or running:
                while waiting and len(running) <= workers:
                    if has_shard(self.folder, waiting[-1].id):  # another command was here first
                        self.outcome.kept += len(waiting.pop().cells)
                        continue
                    task = pool.submit(
                        run_shard, waiting[-1], self.scratch, self.checkpoint_seconds
                    )
                    running[task] = waiting.pop()
                done = wait(running, timeout=0.5, return_when=FIRST_COMPLETED).done
                lost = [task for task in done if isinstance(task.exception(), BrokenProcessPool)]
                for task in done.difference(lost):
                    self.settle(running.pop(task), task)
                self.tell(running.values())
                if lost:
                    break
        except BrokenProcessPool:
            pass  # noticed while handing out work; nothing was taken from the queue
        except BaseException:
            stop_pool(pool)
            raise
        finished = [task for task in running if task.done() and task.exception() is None]
        for task in finished:
            self.settle(running.pop(task), task)
        stop_pool(pool)
        return list(running.values()), list(reversed(waiting))

    def run_alone(self, shard: Shard) -> None:
        """Run a shard that may have killed its worker where it can harm no other."""
        pool = local_pool(1, self.threads)
        try:
            task = pool.submit(run_shard, shard, self.scratch, self.checkpoint_seconds)
            while not wait([task], timeout=0.5).done:
                self.tell([shard])
            if isinstance(task.exception(), BrokenProcessPool):
                self.fail(shard, "its worker died twice (out of memory?)")
            else:
                self.settle(shard, task)
        finally:
            stop_pool(pool)
