"""Where shards run: a pool of processes, each on its own share of the cores."""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor


def local_pool(workers: int, threads: int | None = None) -> ProcessPoolExecutor:
    """A pool of `workers` processes that divide the cores among them, unless `threads` says how
    many each has.

    For small networks one single-threaded process a core beats one program on all cores. Workers
    hold nothing that is not in the store, and leave when this process does, however it ends.
    """
    threads = threads or max(1, cores() // workers)
    return ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),  # JAX's threads do not survive a fork
        initializer=_start_worker,
        initargs=(threads,),
    )


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def stop_pool(pool: ProcessPoolExecutor) -> None:
    """End the workers of a pool at once: what they had not finished is run again another time."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()


def _start_worker(threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C stops
    os.environ["PJRT_NPROC"] = str(threads)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
