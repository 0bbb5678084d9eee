"""Run cells: skip what the store has, execute the rest, store each shard as it ends."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from elephant_nn.files import make_folder, remove_leftovers
from elephant_nn.runs.cells import Cell
from elephant_nn.runs.checkpoint import remove_finished
from elephant_nn.runs.executors import Executor, Failure, LocalProcesses, ThisProcess
from elephant_nn.runs.leases import leases
from elephant_nn.runs.machine import cores
from elephant_nn.runs.progress import Report
from elephant_nn.runs.shard import Shard, Work, checkpoint_file
from elephant_nn.runs.store import done_cells, drop_older, row_files, rows_folder, write_rows

Job = tuple[Work, Cell]
"""A cell, and the program that runs it."""


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

    @property
    def failures(self) -> list[str]:
        """A sentence per failed cell."""
        return [
            f"failed: {cell.method} {cell.hyper} seed {cell.seed}: {reason}"
            for cell, reason in self.failed.items()
        ]

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(
            self.kept + other.kept,
            self.ran + other.ran,
            self.diverged + other.diverged,
            {**self.failed, **other.failed},
        )


def plan_shards(
    jobs: Iterable[Job], lanes: Callable[[Cell], int], *, keep: bool = False
) -> list[Shard]:
    """Cut each group of cells that share a program into shards of as many lanes as it likes."""
    groups: dict[tuple[Work, str], list[Cell]] = {}
    for work, cell in jobs:
        groups.setdefault((work, work.group(cell)), []).append(cell)
    return [
        Shard(work, tuple(cells[first : first + width]), width, keep)
        for (work, _), cells in groups.items()
        for width in [lanes(cells[0])]
        for first in range(0, len(cells), width)
    ]


def local_executor(workers: int | None) -> Executor:
    """`workers` processes that share the cores; None: one per core; 0: this process."""
    if workers is not None and workers < 0:
        raise ValueError(f"workers must be 0 or more, got {workers}")
    if workers == 0:
        return ThisProcess()
    workers = cores() if workers is None else workers
    # Threads add up large sums in another order: their number must not depend on what is left.
    return LocalProcesses(workers, max(1, cores() // workers))


def run_cells(
    jobs: Sequence[Job], out: Path, *, lanes: Callable[[Cell], int], executor: Executor,
    keep: bool = False, again: bool = False, prepare: Callable[[], None] = lambda: None,
    report: Report = lambda done, total: None, checkpoint_seconds: float = 10.0,
    notice: Callable[[str], None] = lambda text: None,
) -> Outcome:  # fmt: skip
    """Run all cells of one table that the store does not hold yet.

    Each shard is stored as soon as it ends, so a kill at any time loses only shards under way, and
    the same call continues from there. A shard that raises, or whose worker dies twice, is reported
    and not stored. What another command on the same store is running is waited for, and run here if
    that command ends without storing it.

    Args:
        keep: also keep what the runs learned, if the program says what that is.
        again: run cells that the store holds, too; the new rows replace the old ones.
        notice: called once if another command has to be waited for.
        prepare: called before anything runs, and only then: it may fetch data.
    """
    jobs = list({cell: (work, cell) for work, cell in jobs}.values())
    if not jobs:
        return Outcome()
    table = jobs[0][1].experiment
    folder = make_folder(rows_folder(out, table))
    scratch = make_folder(out / table / "unfinished")
    for place in (folder, scratch):
        remove_leftovers(place)
    known = set(row_files(folder))
    stored = set() if again else done_cells(folder)
    missing = [(work, cell) for work, cell in jobs if cell.id not in stored]
    outcome, written = Outcome(kept=len(jobs) - len(missing)), list[Path]()
    told = False

    def tell(partly: float = 0.0) -> None:
        report(outcome.settled + partly, len(jobs))

    def free(busy: list[Shard]) -> Iterator[Shard]:
        """Shards that no other command is running, under a lease; the others are put aside."""
        for shard in plan_shards(missing, lanes, keep=keep):
            if not leased.take(shard.cells):
                busy.append(shard)
            elif again:
                checkpoint_file(shard, scratch).unlink(missing_ok=True)
                yield shard
            elif stored_by_others().isdisjoint(cell.id for cell in shard.cells):
                yield shard
            else:
                leased.release(shard.cells)
                busy.append(shard)

    def stored_by_others() -> set[str]:
        nonlocal known
        if new := set(row_files(folder)) - known - set(written):
            stored.update(done_cells(folder, known.union(written)))
            known |= new
        return stored

    tell()
    if missing:
        prepare()
    with leases(folder.parent / "leases") as leased:
        while missing:
            busy: list[Shard] = []
            for shard, result in executor.run(free(busy), scratch, checkpoint_seconds, tell, again):
                if isinstance(result, Failure):
                    outcome.failed.update(dict.fromkeys(shard.cells, result.reason))
                else:
                    written.append(write_rows(folder, shard.id, result))
                    outcome.ran += len(result)
                    outcome.diverged += sum(row["status"] == "diverged" for row in result)
                leased.release(shard.cells)
                tell()
            while busy and not any(leased.free(shard.cells) for shard in busy):
                if not told:
                    notice(f"{table}: waiting for runs of another command on the same store")
                    told = True
                time.sleep(0.5)
            waited = {cell for shard in busy for cell in shard.cells}
            there = set() if again else stored_by_others()
            missing = [(work, cell) for work, cell in missing if cell in waited]
            outcome.kept += sum(cell.id in there for _, cell in missing)
            missing = [(work, cell) for work, cell in missing if cell.id not in there]
            if busy:
                tell()
    if again:
        drop_older(folder, [cell.id for _, cell in jobs if cell not in outcome.failed], written)
    remove_finished(scratch, done_cells(folder))
    with suppress(OSError):
        scratch.rmdir()  # unless another command, or a failed run, has something in it
    return outcome
