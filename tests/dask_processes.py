"""A Dask cluster as a user starts one: `dask scheduler` and `dask worker`, each a process."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from distributed import Client
from support import children_of

from elephant_nn.runs.remote import overview

DASK = [sys.executable, "-m", "dask"]


def until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.05)
    return found


class Processes:
    """Processes of a cluster in a folder; all are ended with it."""

    def __init__(self, folder):
        self.folder, self.started, self.file = folder, [], folder / "scheduler.json"

    def start(self, arguments, before=(), **environment):
        with (self.folder / f"{len(self.started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [*before, *DASK, *map(str, arguments)], stdout=log, stderr=log, cwd=self.folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
            )  # fmt: skip
        self.started.append(process)
        return process

    def scheduler(self):
        self.file.unlink(missing_ok=True)
        process = self.start(
            ["scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard",
             "--scheduler-file", self.file]
        )  # fmt: skip
        until(lambda: self.file.exists() and self.file.stat().st_size, "the scheduler")
        return process

    def worker(self, *arguments, threads=1, **options):
        return self.start(
            ["worker", "--scheduler-file", self.file, "--nthreads", threads, "--no-nanny",
             "--no-dashboard", "--local-directory", self.folder, *arguments], **options,
        )  # fmt: skip

    def overview(self):
        with Client(scheduler_file=str(self.file), set_as_default=False, timeout=20) as client:
            return client.run_on_scheduler(overview)

    def wait_for_workers(self, count):
        until(lambda: len(self.overview()["workers"]) >= count, f"{count} workers")

    def stop(self):
        for process in self.started:
            process.kill()
            process.wait()


@contextmanager
def dask_processes(folder):
    folder.mkdir(parents=True, exist_ok=True)
    processes = Processes(folder)
    try:
        yield processes
    finally:
        processes.stop()


def computing(worker):
    """The process in which a worker computes."""
    return until(lambda: children_of(worker.pid), "a computing process")[0]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
