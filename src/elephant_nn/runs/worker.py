"""A process that calls one function at a time, with its threads bound, and ends with its parent.

This module is light: processes that only hand on work import it without JAX.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

START = "from elephant_nn.runs.worker import work; work()"


class Worker:
    """A process that calls one function at a time.

    It is started with the number of threads in its environment, where XLA and BLAS look for it
    before they start theirs. It is in a process group of its own: what Ctrl-C stops is decided
    here.
    """

    def __init__(self, threads: int):
        self.connection, theirs = Pipe()
        paths = os.pathsep.join(path or str(os.curdir) for path in sys.path)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", START, str(theirs.fileno())],
                env={**os.environ, **bound(threads), "PYTHONPATH": paths},
                stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], process_group=0,
            )  # fmt: skip

    def send(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function there; if the process has died, `receive` says so."""
        with suppress(OSError):
            self.connection.send((function, *arguments))

    def receive(self) -> Any:
        """The result; None if the process died."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=1)
            self.stop()
            return None

    def death(self) -> str:
        killed = self.process.returncode == -signal.SIGKILL
        return "killed: out of memory?" if killed else f"exit status {self.process.returncode}"

    def stop(self) -> None:
        """End the process at once: an unfinished shard is run again another time."""
        self.process.kill()
        self.process.wait()
        self.connection.close()


def bound(threads: int) -> dict[str, str]:
    """The environment that binds XLA (which ignores OMP_NUM_THREADS) and BLAS to some threads."""
    names = ("PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return dict.fromkeys(names, str(threads))


def work() -> None:
    """What the process does: call what it is sent, until its parent ends."""
    connection, calls = Connection(int(sys.argv[1])), queue.SimpleQueue[Any]()
    threading.Thread(target=_receive, args=(connection, calls), daemon=True).start()
    while True:
        function, *arguments = calls.get()
        connection.send(function(*arguments))


def _receive(connection: Connection, calls: "queue.SimpleQueue[Any]") -> None:
    try:
        while True:
            calls.put(connection.recv())
    except (EOFError, OSError):
        os._exit(1)  # in the middle of a call, too
