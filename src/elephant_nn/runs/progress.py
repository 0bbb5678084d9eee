"""Progress on long work: a bar with time left on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[float, int], None]


@contextmanager
def progress(label: str, quiet_seconds: float = 10.0) -> Iterator[Report]:
    """Yields `report(done, total)`, with `done` in runs (fractions count)."""
    if sys.stderr.isatty():
        with _bar(label) as bar:
            yield bar
        return
    started, last, kept = time.monotonic(), -quiet_seconds, -1.0

    def report(done: float, total: int) -> None:
        nonlocal last, kept
        kept = done if kept < 0 else kept  # what was in the store took no time
        elapsed = time.monotonic() - started
        if elapsed - last < quiet_seconds and done < total:
            return
        last = elapsed
        rest = elapsed / (done - kept) * (total - done) if kept < done < total else 0
        left = f", about {rest:.0f} s left" if rest else ""
        print(f"{label}: {int(done)} of {total} runs, {elapsed:.0f} s{left}", file=sys.stderr)

    yield report


@contextmanager
def _bar(label: str) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=int(done), total=total)
