"""Progress of long runs: a bar with the time left on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[float, int], None]


@contextmanager
def progress(label: str, quiet_seconds: float = 10.0) -> Iterator[Report]:
    """Yield `report(done, total)`, in runs; `done` includes parts of unfinished runs."""
    if sys.stderr.isatty():
        with _bar(label) as bar:
            yield bar
        return
    began = last = time.monotonic() - quiet_seconds
    stored, before = 0.0, (1.0, 0)

    def report(done: float, total: int) -> None:
        nonlocal began, last, stored, before
        now, unchanged = time.monotonic(), (done, total) == before
        if total != before[1] or done < stored:  # the next group of runs
            began, stored = now, done  # runs found in the store took no time
        before = (done, total)
        due = now - last >= quiet_seconds or done == total > stored
        if stored == total or unchanged or not due:
            return
        last, elapsed = now, now - began
        rest = elapsed / (done - stored) * (total - done) if stored < done < total else 0
        left = f", about {rest:.0f} s left" if rest else ""
        print(f"{label}: {int(done)} of {total} runs, {elapsed:.0f} s{left}", file=sys.stderr)

    yield report


@contextmanager
def _bar(label: str) -> Iterator[Report]:
    from rich import progress as rich_progress
    from rich.console import Console

    columns = (
        "{task.description}", rich_progress.BarColumn(), rich_progress.MofNCompleteColumn(), "runs",
        rich_progress.TimeElapsedColumn(), "left:", rich_progress.TimeRemainingColumn(),
    )  # fmt: skip
    with rich_progress.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=int(done), total=total)
