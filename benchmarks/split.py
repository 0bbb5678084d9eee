"""Class-incremental learning against bare matrix products and PyTorch; memory; runs per minute.

The runs are those of `elephant sweep split-mnist`, on real MNIST, through the same programs.
"""

import math
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.table import Measurement
from elephant_nn.data.catalog import CATALOG, cached, fetch
from elephant_nn.runs.cells import Cell
from elephant_nn.runs.checkpoint import save_checkpoint
from elephant_nn.runs.machine import cores
from elephant_nn.runs.program import cell_key
from elephant_nn.runs.run import local_executor, run_cells
from elephant_nn.runs.shard import Compiled, Shard, Work, compiled, run_shard
from elephant_nn.runs.worker import Worker

BATCH, ROUNDS = 125, 4
SETTINGS: dict[str, Any] = {
    "lr": 1e-6, "a": 0.08, "sigma_bias": 0.32, "d": 4, "E": 1, "batch": BATCH, "held_out": 50,
}  # fmt: skip


def measure() -> list[Measurement]:
    if cached(CATALOG["mnist"]) is None:
        fetch(CATALOG["mnist"], notice=lambda text: print(text, file=sys.stderr))
    return [
        *_steps("emlp", 10000, "EMLP 10K on Split MNIST, per step", 1.3),
        *_steps("ecnn", 1000, "ECNN 1K on Split MNIST, per step", 1.5),
        _memory(),
        *_runs_per_minute(),
    ]


def _steps(method: str, neurons: int, what: str, torch_target: float) -> list[Measurement]:
    """Seconds per step, ours and the others in turn; every pass of each is some 20 batches."""
    ours, batches = _our_pass(method, neurons)
    others: dict[str, Callable[[], None]] = {}
    if method == "emlp":
        what_is_bare = "bare matrix products and one pass over parameters and second moments"
        others[what_is_bare] = bare_pass(784, neurons, batches)
    torch_pass = _torch_pass(method, neurons, batches)
    if torch_pass is not None:
        others["an eager PyTorch loop doing the same updates"] = torch_pass
    times = in_turn([ours, *others.values()])
    mine = times[0] / batches
    measurements = []
    for name, taken in zip(others, times[1:], strict=True):
        other = taken / batches
        bare = name.startswith("bare")
        measurements.append(
            Measurement(
                what,
                f"{mine * 1e3:.1f} ms",
                f"{name}, {other * 1e3:.1f} ms",
                mine / other if bare else other / mine,
                "<= 1.3" if bare else f">= {torch_target}",
            )
        )
    return measurements


def in_turn(passes: Sequence[Callable[[], object]], rounds: int = ROUNDS) -> list[float]:
    """The least seconds of each, in turn so that noise hits all alike; the first round warms up."""
    times: list[list[float]] = [[] for _ in passes]
    for round_ in range(rounds + 1):
        for run, taken in zip(passes, times, strict=True):
            started = time.perf_counter()
            run()
            if round_:
                taken.append(time.perf_counter() - started)
    return [min(taken) for taken in times]


def _our_pass(method: str, neurons: int) -> tuple[Callable[[], None], int]:
    """The second chunk of a run, over and over, as the runner compiles it, and its batches."""
    steps, floats, carry = _started(method, neurons)

    def run() -> None:
        nonlocal carry
        carry, _, _ = steps.advance(carry, floats, steps.program.data, 1)
        jax.block_until_ready(carry)

    task = 12413 // BATCH  # batches of the first two classes, a fiftieth held out
    bounds = np.linspace(0, task, 5).round().astype(int)
    return run, int(bounds[2] - bounds[1])


def _started(method: str, neurons: int) -> tuple[Compiled, dict[str, jax.Array], Any]:
    steps, floats = compiled(_shard(method, neurons))
    keys = jnp.stack([cell_key("split-mnist", 0)])
    return steps, floats, steps.start(keys, floats, steps.program.data)


def _work(method: str) -> Work:
    home = "elephant_nn.experiments"
    return Work(f"{home}.problems:split_mnist", f"{home}.methods:{method}", 4.0)


def _shard(method: str, neurons: int) -> Shard:
    cell = Cell.of("split-mnist", method, {**SETTINGS, "neurons": neurons}, 0)
    return Shard(_work(method), (cell,), 1)


def bare_pass(
    inputs: int, neurons: int, batches: int, classes: int = 10, batch: int = BATCH
) -> Callable[[], None]:
    """The products that a step needs, and reading and writing weights and moments."""
    key = jax.random.key(0)
    x = jax.random.uniform(key, (batch, inputs))
    y = jax.random.uniform(key, (batch, classes))

    def step(_: Any, carry: Any) -> Any:
        (w, u), (v, s) = carry
        h = x @ w
        out = h @ u
        back = (out - y) @ u.T
        slopes = x.T @ back, h.T @ (out - y)
        moments = tuple(0.999 * m + g for m, g in zip((v, s), slopes, strict=True))
        return tuple(p - 1e-9 * m for p, m in zip((w, u), moments, strict=True)), moments

    many = jax.jit(
        lambda carry: jax.lax.fori_loop(0, batches, step, carry),
        donate_argnums=0,
        compiler_options={"xla_cpu_prefer_vector_width": 512},
    )
    weights = (jnp.full((inputs, neurons), 1e-3), jnp.full((neurons, classes), 1e-3))
    carry = (weights, jax.tree.map(jnp.zeros_like, weights))

    def run() -> None:
        nonlocal carry
        carry = jax.block_until_ready(many(carry))

    return run


def _torch_pass(method: str, neurons: int, batches: int) -> Callable[[], None] | None:
    """The loop one would write in PyTorch, with the same form of RMSProp; None without PyTorch."""
    try:
        import torch
        import torch.nn.functional as F  # noqa: N812
    except ImportError:
        print("PyTorch is not installed, so nothing is compared with it", file=sys.stderr)
        return None

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.random((batches, BATCH, 1, 28, 28), np.float32))
    labels = torch.from_numpy(rng.integers(0, 10, (batches, BATCH)))
    inputs = 784 if method == "emlp" else 14 * 14 * 64
    uniform = lambda *shape, n: ((2 * torch.rand(*shape) - 1) / math.sqrt(n)).requires_grad_()
    hidden, output = uniform(neurons, inputs, n=inputs), uniform(10, neurons, n=neurons)
    bias = torch.linspace(-0.5, 0.5, neurons).requires_grad_()
    params = [hidden, bias, output]
    if method == "ecnn":
        kernel, shift = uniform(64, 1, 3, 3, n=9), torch.zeros(64, requires_grad=True)
        params += [kernel, shift]
    moments = [torch.zeros_like(p) for p in params]

    def loss(x: Any, y: Any) -> Any:
        if method == "ecnn":
            x = F.max_pool2d(F.relu(F.conv2d(x, kernel, shift, padding=1)), 2)
        z = F.linear(x.flatten(1), hidden, bias) / SETTINGS["a"]
        h = 1 / (1 + (z * z) ** 2)
        return F.cross_entropy(F.linear(h, output), y)

    def run() -> None:
        for x, y in zip(images, labels, strict=True):
            slopes = torch.autograd.grad(loss(x, y), params)
            with torch.no_grad():
                for p, v, g in zip(params, moments, slopes, strict=True):
                    v.mul_(0.999).addcmul_(g, g, value=0.001)
                    p.addcdiv_(g, (v + 1e-8).sqrt_(), value=-SETTINGS["lr"])

    return run


def _memory() -> Measurement:
    """Peak memory of processes that learn with 125 million weights, measure and save, or resume."""
    with tempfile.TemporaryDirectory() as scratch:
        peak = 0.0
        for resumed in (False, True):
            fresh = Worker(cores())
            fresh.send(_peak_of_a_wide_ecnn, Path(scratch), resumed)
            peak = max(peak, fresh.receive() or math.inf)
            fresh.stop()
    return Measurement(
        "ECNN 10K (125 M weights): a piece of a task, both test sets, a checkpoint, resuming; "
        "peak memory",
        f"{peak:.2f} GB",
        "the target, 4 GB",
        peak / 4,
        "<= 1",
    )


def _peak_of_a_wide_ecnn(scratch: Path, resumed: bool) -> float:
    """The last chunk of a run, with all evaluations, as a shard runs it."""
    shard = _shard("ecnn", 10000)
    if not resumed:
        steps, floats, carry = _started("ecnn", 10000)
        last = steps.program.chunks - 1
        carry, outputs, _ = steps.advance(carry, floats, steps.program.data, last)
        seen = {name: np.repeat(value[:, None], last + 1, 1) for name, value in outputs.items()}
        save_checkpoint(scratch / f"{shard.id}.safetensors", last, (carry, seen, np.zeros(1, int)))
    else:
        run_shard(shard, scratch)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def _runs_per_minute() -> list[Measurement]:
    """Runs of the EMLP grid at 1K, one process per core, and how busy the cores are."""
    cells = [
        Cell.of("split-mnist", "emlp", {**SETTINGS, "neurons": 1000, "a": a}, 1000 + seed)
        for a in (0.04, 0.08, 0.16, 0.32)
        for seed in range(2 * cores() + 2)
    ]
    with tempfile.TemporaryDirectory() as out:
        before, started = _cpu_seconds(), time.perf_counter()
        jobs = [(_work("emlp"), cell) for cell in cells]
        run_cells(jobs, Path(out), lanes=lambda cell: 1, executor=local_executor(None))
        taken = time.perf_counter() - started
        busy = _cpu_seconds() - before
    return [
        Measurement(
            f"EMLP 1K, {len(cells)} runs of the grid, everything included",
            f"{60 * len(cells) / taken:.0f} runs per minute",
            f"all {cores()} cores busy all the time",
            busy / (taken * cores()),
            ">= .9",
        )
    ]


def _cpu_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system + times.user + times.system
