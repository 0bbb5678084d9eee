"""Leases on cells: two commands that share a store do not run the same cell at the same time.

A lease is a lock on one byte of a file, at an offset that the cell's id gives. The system drops the
locks of a process when it ends, however it ends.
"""

import errno
import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from elephant_nn.runs.cells import Cell

_TAKEN = (errno.EACCES, errno.EAGAIN)
_OFFSETS = 1 << 62


class Leases:
    """The leases that this process holds on cells of one table.

    Locks belong to the process, so one process should run a table once at a time. Where the file
    system has no locks, every lease is granted: a cell that is run twice gives the same row.
    """

    def __init__(self, file: int):
        self._file = file

    def take(self, cells: Sequence[Cell]) -> bool:
        """Take all of these or none; False if another process has one of them."""
        for count, cell in enumerate(cells):
            try:
                self._lock(cell, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in _TAKEN:
                    return True
                self.release(cells[:count])
                return False
        return True

    def release(self, cells: Sequence[Cell]) -> None:
        for cell in cells:
            try:
                self._lock(cell, fcntl.LOCK_UN)
            except OSError:
                return

    def free(self, cells: Sequence[Cell]) -> bool:
        """Whether they could be taken now."""
        taken = self.take(cells)
        if taken:
            self.release(cells)
        return taken

    def _lock(self, cell: Cell, how: int) -> None:
        fcntl.lockf(self._file, how, 1, int(cell.id, 16) % _OFFSETS)


@contextmanager
def leases(path: Path) -> Iterator[Leases]:
    """The leases of a table; all that are held are given back at the end."""
    with path.open("a+b") as file:
        yield Leases(file.fileno())
