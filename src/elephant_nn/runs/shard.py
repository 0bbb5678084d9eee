"""A shard: some cells of one compiled program, run side by side in chunks. What a worker does."""

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from elephant_nn.runs.cells import Cell, digest
from elephant_nn.runs.checkpoint import load_checkpoint, save_checkpoint
from elephant_nn.runs.program import Carry, Floats, Outputs, Program, cell_key
from elephant_nn.runs.store import Row

ProgramFactory = Callable[[str, Mapping[str, Any]], Program]


@dataclass(frozen=True)
class Shard:
    """Cells that share one program. Always run with `lanes` lanes, the last cell repeated to fill.

    The width is fixed so that a run's numbers do not depend on which others it was run with. With
    `keep`, the keepsakes of a program that has any are written beside the rows.
    """

    program: ProgramFactory
    cells: tuple[Cell, ...]
    lanes: int
    keep: bool = False

    @cached_property
    def id(self) -> str:
        return digest(*(cell.id for cell in self.cells))


@dataclass(frozen=True)
class Compiled:
    program: Program
    start: Callable[[Any, Floats], Carry]
    advance: Callable[[Carry, Floats, int], tuple[Carry, Outputs, jax.Array]]


@lru_cache(maxsize=8)
def compile_program(
    factory: ProgramFactory, method: str, static: tuple[tuple[str, Any], ...], lanes: int
) -> Compiled:
    program = factory(method, dict(static))

    def advance(carry: Carry, floats: Floats, index: jax.Array) -> tuple[Carry, Outputs, jax.Array]:
        carry, outputs = program.chunk(carry, floats, index)
        return carry, outputs, _all_finite(carry)

    # XLA's default on recent x86 is half the vector width; element-wise work gains up to 1.8 times.
    wide = {"xla_cpu_prefer_vector_width": 512} if jax.default_backend() == "cpu" else None
    return Compiled(
        program,
        jax.jit(_side_by_side(program.init, lanes, (0, 0))),
        jax.jit(
            _side_by_side(advance, lanes, (0, 0, None)), donate_argnums=0, compiler_options=wide
        ),
    )


def _side_by_side(
    function: Callable[..., Any], lanes: int, axes: tuple[int | None, ...]
) -> Callable[..., Any]:
    """`function` mapped over lanes; a single lane stays unbatched, as large matrices want it."""
    if lanes > 1:
        return jax.vmap(function, in_axes=axes)
    first = lambda arg, axis: jax.tree.map(lambda leaf: leaf[0], arg) if axis == 0 else arg

    def alone(*args: Any) -> Any:
        result = function(*(first(arg, axis) for arg, axis in zip(args, axes, strict=True)))
        return jax.tree.map(lambda leaf: leaf[None], result)

    return alone


def _all_finite(carry: Carry) -> jax.Array:
    floats = (x for x in jax.tree.leaves(carry) if jnp.issubdtype(x.dtype, jnp.floating))
    return jnp.all(jnp.array([jnp.isfinite(leaf).all() for leaf in floats] or [True]))


def run_shard(shard: Shard, scratch: Path, checkpoint_seconds: float = 10.0) -> list[Row]:
    """Run a shard, from its checkpoint if there is one, and return one row a cell.

    Checkpoints and progress go to `scratch`; chunks are the same whether or not the run was
    interrupted, so the rows are too. A lane whose numbers stop being finite gives a row with
    status `diverged`; when all lanes have diverged the rest is skipped.
    """
    first = shard.cells[0]
    machine = compile_program(shard.program, first.method, first.static, shard.lanes)
    program = machine.program
    padded = shard.cells + (shard.cells[-1],) * (shard.lanes - len(shard.cells))
    keys = jnp.stack([cell_key(cell.experiment, cell.seed) for cell in padded])
    floats = {name: jnp.array([cell.floats[name] for cell in padded]) for name in first.floats}

    # Large networks have no room for a fresh start beside what a checkpoint restores.
    shapes = jax.eval_shape(machine.start, keys, floats)
    collected, died = _empty_outputs(machine, shapes, floats), np.zeros(shard.lanes, int)
    path = scratch / f"{shard.id}.safetensors"
    done, (carry, collected, died) = load_checkpoint(path, (shapes, collected, died)) or (
        0,
        (machine.start(keys, floats), collected, died),
    )
    collected, died = jax.tree.map(np.array, (collected, died))
    beat = _Heartbeat(scratch / f"{shard.id}.progress", program.chunks)
    saved, pause = time.monotonic(), checkpoint_seconds
    for index in range(done, program.chunks):
        carry, outputs, alive = machine.advance(carry, floats, index)
        for name, value in outputs.items():
            collected[name][:, index] = np.asarray(value)
        died = np.where((died == 0) & ~np.asarray(alive), index + 1, died)
        if died.all():
            break
        beat(index + 1)
        if time.monotonic() - saved >= pause and index + 1 < program.chunks:
            began = time.monotonic()
            save_checkpoint(path, index + 1, (carry, collected, died))
            saved = time.monotonic()
            if checkpoint_seconds:  # at most 5% of the time
                pause = max(checkpoint_seconds, 20 * (saved - began))
    rows = [
        _row(
            cell, program, {name: value[lane] for name, value in collected.items()}, int(died[lane])
        )
        for lane, cell in enumerate(shard.cells)
    ]
    if shard.keep and program.keepsake:
        for lane, cell in enumerate(shard.cells):
            if not died[lane]:
                learned = program.keepsake(jax.tree.map(lambda leaf, at=lane: leaf[at], carry))
                save_checkpoint(keepsake_file(scratch.parent, cell), program.chunks, learned)
    path.unlink(missing_ok=True)
    beat.stop()
    return rows


def keepsake_file(folder: Path, cell: Cell) -> Path:
    """Where what a run learned is kept, in the experiment's folder of the store."""
    return folder / "learned" / f"{cell.id}.safetensors"


def load_keepsake(shard: Shard, path: Path) -> Any | None:
    """What the first cell of a shard learned, from its file; None if there is none to use."""
    cell = shard.cells[0]
    program = compile_program(shard.program, cell.method, cell.static, shard.lanes).program
    if program.keepsake is None:
        raise ValueError(f"{cell.experiment} keeps nothing of what {cell.method} learned")
    keepsake = program.keepsake
    like = jax.eval_shape(
        lambda key: keepsake(
            program.init(key, {n: jnp.float32(v) for n, v in cell.floats.items()})
        ),
        cell_key(cell.experiment, cell.seed),
    )
    found = load_checkpoint(path, like)
    return found[1] if found else None


def _empty_outputs(machine: Compiled, carry: Carry, floats: Floats) -> dict[str, np.ndarray]:
    """Room for every lane's outputs of every chunk, NaN until filled."""
    _, outputs, _ = jax.eval_shape(machine.advance, carry, floats, 0)
    room = {}
    for name, leaf in outputs.items():
        fill = np.nan if np.issubdtype(leaf.dtype, np.floating) else 0
        lanes, *rest = leaf.shape
        room[name] = np.full((lanes, machine.program.chunks, *rest), fill, leaf.dtype)
    return room


def _row(cell: Cell, program: Program, outputs: dict[str, np.ndarray], died: int) -> Row:
    columns: Row = {}
    for name, value in program.finish(outputs).items():
        value = np.asarray(value)
        if died:  # what came after depends on when the other lanes stopped
            columns[name] = None
        elif value.ndim == 0:
            columns[name] = float(value) if np.isfinite(value) else None
        else:
            columns[name] = value.tolist()
    reason = f"numbers stopped being finite in chunk {died} of {program.chunks}" if died else ""
    return {
        "cell": cell.id,
        "experiment": cell.experiment,
        "method": cell.method,
        "hyper": json.dumps(cell.hyper, sort_keys=True),
        "seed": cell.seed,
        "status": "diverged" if died else "ok",
        "reason": reason,
        **program.contract,
        "versions": _versions(),
        **columns,
    }


@lru_cache
def _versions() -> str:
    return f"elephant-nn {version('elephant-nn')}, jax {jax.__version__}"


class _Heartbeat:
    """Tells whoever waits how far a long shard is: a fraction in a small file, once a second."""

    def __init__(self, path: Path, chunks: int):
        self.path, self.chunks, self.last = path, chunks, time.monotonic()

    def __call__(self, chunk: int) -> None:
        if time.monotonic() - self.last >= 1:
            with contextlib.suppress(OSError):  # a missing number is no reason to stop
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.write_text(f"{chunk / self.chunks:.4f}")
            self.last = time.monotonic()

    def stop(self) -> None:
        self.path.unlink(missing_ok=True)
