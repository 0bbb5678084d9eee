"""The EMLP sine grid, 750 runs, against the same runs one after another in a lean Python loop."""

import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax

from benchmarks.table import Measurement
from elephant_nn.experiments.api import Runner
from elephant_nn.experiments.tables import TABLES
from elephant_nn.nn.networks import emlp
from elephant_nn.runs.cells import Cell
from elephant_nn.runs.program import cell_key
from elephant_nn.runs.run import local_executor
from elephant_nn.streams.samples import sine_stream
from elephant_nn.streams.stream import named_key

LEAN_RUNS = 20


def measure() -> list[Measurement]:
    """Ours is timed whole, worker start and compilation included, and again without them.

    The lean loop is timed on evenly spaced runs of the grid after one to compile, before and after
    our run, and scaled to all runs; once reading every error as it goes, as one does to log it, and
    once leaving them on the device until the end, so that Python and the device overlap.
    """
    table = TABLES["sine"]
    row = next(row for row in table.rows if row.method == "emlp")
    cells = table.choosing_cells(row, row.candidates(), table.seeds)
    sample = cells[:: len(cells) // LEAN_RUNS][:LEAN_RUNS]
    loop = LeanLoop(*(int(row.settings[name]) for name in ("d", "E", "neurons")))
    loop.run(sample[0], read=True)

    def time_lean(part: list[Cell]) -> dict[bool, float]:
        taken = {True: 0.0, False: 0.0}
        for cell in part:
            for read in taken:
                started = time.perf_counter()
                loop.run(cell, read)
                taken[read] += time.perf_counter() - started
        return taken

    before = time_lean(sample[: LEAN_RUNS // 2])
    with tempfile.TemporaryDirectory() as folder:
        marks: list[tuple[float, float]] = []
        report = lambda done, total: marks.append((time.perf_counter(), done))
        runner = Runner(Path(folder), local_executor(None), report=report)
        runner.run(table, [(row, cell) for cell in cells])
    after = time_lean(sample[LEAN_RUNS // 2 :])
    whole = marks[-1][0] - marks[0][0]
    end, last = marks[-1]
    warm, first = next((mark for mark in marks if 0 < mark[1] < last), marks[0])
    steady_run = (end - warm) / (last - first)
    lines = []
    for read, how in ((True, "reading each error"), (False, "reading errors at the end")):
        lean_run = (before[read] + after[read]) / LEAN_RUNS
        against = f"lean loop {how}, {lean_run:.3f} s a run ({LEAN_RUNS} runs timed)"
        for what, ours, ratio, target in (
            (
                "once workers have started and compiled",
                f"{steady_run:.4f} s a run",
                lean_run / steady_run,
                ">= 15",
            ),
            ("everything included", f"{whole:.1f} s", lean_run * len(cells) / whole, ""),
        ):
            what = f"EMLP sine grid, {len(cells)} runs, {what}"
            lines.append(Measurement(what, ours, against, ratio, target))
    return lines


class LeanLoop:
    """What one would write by hand: a jitted update, a jitted evaluation, called from Python.

    Hyper-parameters are traced, so each function compiles once for the whole grid.
    """

    def __init__(self, d: int, updates: int, neurons: int):
        self.updates, self.sizes, self.d = updates, (1, neurons, 1), d
        self.stream = sine_stream()
        self.samples = list(zip(self.stream.x[:, None], self.stream.y[:, None], strict=True))
        self.init = jax.jit(lambda key, floats: self.network(floats).init(key))
        self.update = jax.jit(self._update)
        self.evaluate = jax.jit(self._evaluate)

    def network(self, floats):  # type: ignore[no-untyped-def]
        return emlp(self.sizes, a=floats["a"], sigma_bias=floats["sigma_bias"], d=self.d)

    def _update(self, params, state, floats, x, y):  # type: ignore[no-untyped-def]
        optimiser = optax.adam(floats["lr"])
        loss = lambda p: jnp.mean((self.network(floats).apply(p, x) - y) ** 2)
        change, state = optimiser.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, change), state

    def _evaluate(self, params, floats):  # type: ignore[no-untyped-def]
        out = self.network(floats).apply(params, self.stream.test_x)
        return jnp.mean((out - self.stream.test_y) ** 2)

    def run(self, cell: Cell, read: bool) -> list[Any]:
        floats = {name: jnp.float32(cell.hyper[name]) for name in ("lr", "a", "sigma_bias")}
        params = self.init(named_key(cell_key(cell.experiment, cell.seed), "init"), floats)
        state = optax.adam(0.0).init(params)
        curve = []
        for x, y in self.samples:
            for _ in range(self.updates):
                params, state = self.update(params, state, floats, x, y)
            error = self.evaluate(params, floats)
            curve.append(float(error) if read else error)
        return jax.block_until_ready(curve)
