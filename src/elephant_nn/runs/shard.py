"""A shard: some cells of one compiled program, run side by side in chunks. What a worker does."""

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from elephant_nn.learners.recipe import make_recipe
from elephant_nn.runs.cells import Cell, digest
from elephant_nn.runs.checkpoint import load_checkpoint, save_checkpoint
from elephant_nn.runs.machine import machine
from elephant_nn.runs.program import (
    Bound,
    Carry,
    Data,
    Floats,
    Outputs,
    Program,
    bind,
    cell_key,
    resolve,
    source_hash,
)
from elephant_nn.runs.store import Record


@dataclass(frozen=True)
class Work:
    """Which program to run, as names that a worker on any machine can resolve.

    `evaluations`: how often to evaluate, in a problem's own unit. `source`: a hash of the user's
    code behind the program, if any.
    """

    problem: str
    build: str
    evaluations: float = 1.0
    source: str = ""

    def bind(self, cell: Cell) -> Bound:
        return bind(resolve(self.problem), resolve(self.build), cell.hyper)

    def group(self, cell: Cell) -> str:
        """Equal for cells that share one compiled program."""
        bound = self.bind(cell)
        recipe = make_recipe(bound.method.build, (), bound.method.settings)[0]
        parts = (bound.static, recipe.static, sorted(bound.floats))
        return digest(cell.experiment, cell.method, self.build, *parts)

    @property
    def code(self) -> str:
        """A hash of what a checkpoint depends on besides its cells."""
        names = (Path(self.problem).name, Path(self.build).name)  # of a file wherever it is
        return digest(*names, self.evaluations, self.source, machine()["versions"])


@dataclass(frozen=True)
class Shard:
    """Cells that share one program. Always run with `lanes` lanes, the last cell repeated to fill.

    The width is fixed so that a run's numbers do not depend on which others it was run with. With
    `keep`, what the runs learned is written beside the rows, if the program says what that is.
    """

    work: Work
    cells: tuple[Cell, ...]
    lanes: int
    keep: bool = False

    @cached_property
    def id(self) -> str:
        return digest(*(cell.id for cell in self.cells))

    @property
    def padded(self) -> tuple[Cell, ...]:
        return self.cells + (self.cells[-1],) * (self.lanes - len(self.cells))


@dataclass(frozen=True)
class Compiled:
    program: Program
    start: Callable[[Any, Floats, Data], Carry]
    advance: Callable[[Carry, Floats, Data, int], tuple[Carry, Outputs, jax.Array]]


def compiled(shard: Shard) -> tuple[Compiled, dict[str, jax.Array]]:
    """The compiled program of a shard, and the hyper-parameters of its lanes."""
    work = shard.work
    if work.source and source_hash(resolve(work.build)) != work.source:
        raise RuntimeError(f"{work.build.rpartition(':')[0]} changed since the command started")
    bound = [work.bind(cell) for cell in shard.padded]
    floats = {name: jnp.array([b.floats[name] for b in bound]) for name in bound[0].floats}
    found = _compile(_Key(work.group(shard.cells[0]), work, shard.cells[0]), shard.lanes)
    for values in bound[: len(shard.cells)]:
        found.program.check(values.floats)
    return found, floats


@dataclass(frozen=True, eq=False)
class _Key:
    """Equal for equal groups: the first cell only tells how to build the program."""

    group: str
    work: Work
    cell: Cell

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and (self.group, self.work) == (other.group, other.work)

    def __hash__(self) -> int:
        return hash((self.group, self.work))


@lru_cache(maxsize=8)
def _compile(key: _Key, lanes: int) -> Compiled:
    problem, bound = resolve(key.work.problem), key.work.bind(key.cell)
    program = problem.program(bound.method, key.work.evaluations, **bound.own)

    def advance(
        carry: Carry, floats: Floats, data: Data, index: jax.Array
    ) -> tuple[Carry, Outputs, jax.Array]:
        carry, outputs = program.chunk(carry, floats, data, index)
        return carry, outputs, _all_finite(carry)

    return Compiled(
        program,
        jax.jit(_side_by_side(program.init, lanes, (0, 0, None))),
        jax.jit(
            _side_by_side(advance, lanes, (0, 0, None, None)),
            donate_argnums=0,
            compiler_options=compiler_options(),
        ),
    )


def compiler_options() -> dict[str, Any] | None:
    # XLA's default on recent x86 is half the vector width; element-wise work gains up to 1.8 times.
    return {"xla_cpu_prefer_vector_width": 512} if jax.default_backend() == "cpu" else None


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


def run_shard(shard: Shard, scratch: Path, checkpoint_seconds: float = 10.0) -> list[Record]:
    """Run a shard, from its checkpoint if there is one, and return one row per cell.

    Checkpoints and progress go to `scratch`. Chunks are the same whether or not the run was
    interrupted, so the rows are too. A lane whose numbers stop being finite gives a row with
    status `diverged`; when all lanes have diverged the rest is skipped.
    """
    steps, floats = compiled(shard)
    program, data, ids = steps.program, steps.program.data, [cell.id for cell in shard.cells]
    keys = jnp.stack([cell_key(cell.experiment, cell.seed) for cell in shard.padded])

    # Large networks leave no memory for an initial state beside the restored one.
    shapes = jax.eval_shape(steps.start, keys, floats, data)
    collected, died = _empty_outputs(steps, shapes, floats), np.zeros(shard.lanes, int)
    path = checkpoint_file(shard, scratch)
    code = shard.work.code
    done, (carry, collected, died) = load_checkpoint(path, (shapes, collected, died), code) or (
        0,
        (steps.start(keys, floats, data), collected, died),
    )
    collected, died = jax.tree.map(np.array, (collected, died))
    progress = _Progress(progress_file(shard, scratch), program.chunks)
    saved, pause = time.monotonic(), checkpoint_seconds
    for index in range(done, program.chunks):
        carry, outputs, alive = steps.advance(carry, floats, data, index)
        for name, value in outputs.items():
            collected[name][:, index] = np.asarray(value)
        died = np.where((died == 0) & ~np.asarray(alive), index + 1, died)
        if died.all():
            break
        progress(index + 1)
        if time.monotonic() - saved >= pause and index + 1 < program.chunks:
            began = time.monotonic()
            save_checkpoint(path, index + 1, (carry, collected, died), ids, code)
            saved = time.monotonic()
            if checkpoint_seconds:  # at most 5% of the time
                pause = max(checkpoint_seconds, 20 * (saved - began))
    rows = []
    for lane, cell in enumerate(shard.cells):
        outputs_here = {name: value[lane] for name, value in collected.items()}
        rows.append(_row(shard.work, cell, program, outputs_here, int(died[lane])))
        if shard.keep and program.learned and not died[lane]:
            learned = program.learned(jax.tree.map(lambda leaf, at=lane: leaf[at], carry))
            save_checkpoint(learned_file(scratch.parent, cell), program.chunks, learned)
    path.unlink(missing_ok=True)
    progress.stop()
    return rows


def checkpoint_file(shard: Shard, scratch: Path) -> Path:
    return scratch / f"{shard.id}.safetensors"


def progress_file(shard: Shard, scratch: Path) -> Path:
    """Has the finished fraction of a shard while it runs."""
    return scratch / f"{shard.id}.progress"


def learned_file(folder: Path, cell: Cell) -> Path:
    """Where the learned parameters of a run are kept, in the table's folder of the store."""
    return folder / "learned" / f"{cell.id}.safetensors"


def load_learned(work: Work, cell: Cell, path: Path) -> Any | None:
    """What a run learned, from its file; None without a usable file."""
    steps, floats = compiled(Shard(work, (cell,), 1))
    program, learned = steps.program, steps.program.learned
    if learned is None:
        raise ValueError(f"{cell.experiment} keeps nothing of what {cell.method} learned")
    scalars = {name: value[0] for name, value in floats.items()}
    like = jax.eval_shape(
        lambda key: learned(program.init(key, scalars, program.data)),
        cell_key(cell.experiment, cell.seed),
    )
    found = load_checkpoint(path, like)
    return found[1] if found else None


def _empty_outputs(steps: Compiled, carry: Carry, floats: Floats) -> dict[str, np.ndarray]:
    """Arrays for every lane's outputs of every chunk, NaN until filled."""
    _, outputs, _ = jax.eval_shape(steps.advance, carry, floats, steps.program.data, 0)
    room = {}
    for name, leaf in outputs.items():
        fill = np.nan if np.issubdtype(leaf.dtype, np.floating) else 0
        lanes, *rest = leaf.shape
        room[name] = np.full((lanes, steps.program.chunks, *rest), fill, leaf.dtype)
    return room


def _row(
    work: Work, cell: Cell, program: Program, outputs: dict[str, np.ndarray], died: int
) -> Record:
    columns: Record = {}
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
        "cell": cell.id, "experiment": cell.experiment, "method": cell.method,
        "hyper": json.dumps(cell.hyper, sort_keys=True), "seed": cell.seed,
        "setting": cell.setting, "revision": cell.revision,
        "status": "diverged" if died else "ok", "reason": reason,
        **program.contract, **machine(), **({"source": work.source} if work.source else {}),
        **columns,
    }  # fmt: skip


class _Progress:
    """Writes the finished fraction of a shard into a small file, once per second."""

    def __init__(self, path: Path, chunks: int):
        self.path, self.chunks, self.last = path, chunks, time.monotonic()

    def __call__(self, chunk: int) -> None:
        if time.monotonic() - self.last >= 1:
            with contextlib.suppress(OSError):  # progress is not worth a failure
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.write_text(f"{chunk / self.chunks:.4f}")
            self.last = time.monotonic()

    def stop(self) -> None:
        self.path.unlink(missing_ok=True)
