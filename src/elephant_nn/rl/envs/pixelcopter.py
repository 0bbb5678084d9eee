"""Pixelcopter of the PyGame Learning Environment: fly through a cave, around blocks.

The cave and the blocks scroll independently of the actions, so their positions at every step are
known in advance. They are computed once, in double precision as in the original, and looked up.
This reproduces the original's ties exactly in float32 and makes a step cheap.
"""

from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from elephant_nn.rl.envs.drawing import SCALE, Frame, blank_frame, draw_rectangle
from elephant_nn.rl.envs.environment import Environment, Transition, round_to_pixel, uniform_to_int

SIDE, PLAYER_X, GAP = 48, 16, 12
_SCROLL = 0.0004 * 48 * (1000 / 30)  # 0.6400000000000001, as in the original
_CLIMB, _FALL, _DRAG = -0.56, 0.0576, 0.99
_PLAYER = 2.4
_BATCH, _SPACING = 48, 4


class Block(NamedTuple):
    """An obstacle: where it appeared, its height, and its age in steps."""

    start_x: Int[Array, ""]
    y: Int[Array, ""]
    age: Int[Array, ""]


class CopterState(NamedTuple):
    """`block` is the next block, `passed` the one before. `seed` determines the cave's shape."""

    y: Float[Array, ""]
    momentum: Float[Array, ""]
    block: Block
    passed: Block
    seed: UInt32[Array, ""]
    time: Int[Array, ""]


class Cave(NamedTuple):
    """The schedule of the cave's columns.

    Attributes:
        under: per step, the one or two columns at the player; -1 for none.
        exited: per step, how many columns left the screen.
        start_x: per column, where it appeared.
        start_time: per column, the step at which it appeared.
        batch: per column, the batch that it appeared with.
    """

    under: np.ndarray
    exited: np.ndarray
    start_x: np.ndarray
    start_time: np.ndarray
    batch: np.ndarray


def _round_to_pixel(x: np.ndarray, truncate: bool) -> np.ndarray:
    """`round_to_pixel` in double precision, which the ties of the cave need."""
    return (np.trunc(x) if truncate else np.sign(x) * np.floor(np.abs(x) + 0.5)).astype(int)


@lru_cache
def cave_schedule(max_steps: int, truncate_pixels: bool) -> Cave:
    """Compute where the columns of the cave are, for every step of an episode."""
    columns: list[tuple[int, float]] = []
    appeared: list[tuple[int, int, int]] = []

    def add_batch(left: int, time: int) -> None:
        for x in range(left + 2, left + 2 + _SPACING * _BATCH, _SPACING):
            columns.append((len(appeared), float(x)))
            appeared.append((x, time, len(appeared) // _BATCH))

    add_batch(0, 0)
    under, exited = np.full((max_steps + 1, 2), -1), np.zeros(max_steps + 1)
    for time in range(max_steps + 1):
        if time:
            columns = [(index, x - _SCROLL) for index, x in columns]
        pixels = _round_to_pixel(np.array([x for _, x in columns]), truncate_pixels)
        here = np.flatnonzero((pixels - 2 < PLAYER_X + 1) & (pixels + 2 > PLAYER_X - 1))
        under[time, : len(here)] = [columns[i][0] for i in here]
        if time:
            remaining = [(index, x) for index, x in columns if x > -_SPACING]
            exited[time] = len(columns) - len(remaining)
            columns = remaining
            if len(columns) <= 13:
                add_batch(SIDE, time)
    return Cave(under, exited, *np.array(appeared).T)


@lru_cache
def block_paths() -> np.ndarray:
    """Positions of a block by `start_x` - 48 (0 to 23) and age, until it has left the screen."""
    ages = int((71 + _SPACING) / _SCROLL) + 3
    paths = np.zeros((24, ages))
    paths[:, 0] = np.arange(48, 72)
    for age in range(1, ages):
        paths[:, age] = paths[:, age - 1] - _SCROLL
    return paths


def pixelcopter(max_steps: int = 500, *, truncate_pixels: bool = False) -> Environment:
    """Create Pixelcopter.

    Rewards: +1 per column of the cave and per block that is passed, -5 for a crash. Actions: up,
    nothing. Observations, not scaled: height, momentum, distance to the ceiling and to the floor,
    distance to the next block, and its height twice. The original reports that height as the
    block's top, and nine more as its bottom, although a block reaches four up and five down.

    Args:
        max_steps: steps after which an episode is truncated.
        truncate_pixels: round positions toward zero in collisions, as pygame before 2.3 does. By
            default they are rounded half away from zero, as pygame does since 2.3.
    """
    cave, paths = cave_schedule(max_steps, truncate_pixels), block_paths()
    pixels = _round_to_pixel(paths, truncate_pixels).astype(np.int32)
    positions = paths.astype(np.float32)
    behind, under, exited = paths <= PLAYER_X, cave.under, cave.exited.astype(np.float32)
    oldest = paths.shape[1] - 1
    # Tables stay NumPy arrays until a step is traced: a process that has run JAX must not fork.
    at = lambda table, *index: jnp.asarray(table)[index]

    def new_block(uniforms: Array) -> Block:
        x, y = 48 + uniform_to_int(uniforms[0], 24), 12 + uniform_to_int(uniforms[1], 24)
        return Block(x, y, jnp.int32(0))

    def start(uniforms: Array) -> CopterState:
        gone = Block(jnp.int32(48), jnp.int32(0), jnp.int32(oldest))
        seed = (uniforms[2] * 2**24).astype(jnp.uint32)
        y = jnp.float32(SIDE / 2)
        return CopterState(y, 0 * y, new_block(uniforms), gone, seed, jnp.int32(0))

    def hit(block: Block, y: Array) -> Array:
        x, row = at(pixels, block.start_x - 48, block.age), round_to_pixel(y, truncate_pixels)
        beside = (x - 2 < PLAYER_X + 1) & (x + 2 > PLAYER_X - 1)
        return beside & (block.y - 4 < row + 1) & (block.y + 5 > row - 1)

    def advance(state: CopterState, action: Array, uniforms: Array) -> Transition:
        push = jnp.where(action == 0, _CLIMB, _FALL)
        momentum = _DRAG * (state.momentum + push)
        y = state.y + momentum
        time = jnp.minimum(state.time + 1, max_steps)
        block, passed = (
            b._replace(age=jnp.minimum(b.age + 1, oldest)) for b in (state.block, state.passed)
        )
        crashed = hit(block, y) | hit(passed, y) | (y < 6) | (y > 42)
        for column in at(under, time):
            centre = _centre(cave, state.seed, column)
            scraped = (y - _PLAYER <= centre - GAP) | (y >= centre + GAP)
            crashed |= (column >= 0) & scraped
        cleared = at(behind, block.start_x - 48, block.age)
        where_cleared = lambda new, old: jnp.where(cleared, new, old)
        passed = Block(*map(where_cleared, block, passed))
        block = Block(*map(where_cleared, new_block(uniforms), block))
        reward = at(exited, time) + cleared - 5.0 * crashed
        new = CopterState(y, momentum, block, passed, state.seed, time)
        return Transition(new, observe(new), reward, crashed, ~crashed & (time >= max_steps))

    def observe(state: CopterState) -> Array:
        centre = _centre(cave, state.seed, at(under, state.time, 0))
        block = state.block
        distance = at(positions, block.start_x - 48, block.age) - PLAYER_X
        above, below = state.y - (centre - GAP), centre + GAP - state.y
        height = block.y.astype(jnp.float32)
        return jnp.stack([state.y, state.momentum, above, below, distance, height, height + 9])

    def render(state: CopterState) -> Frame:
        frame, time = blank_frame(SIDE * SCALE, SIDE * SCALE, "dark"), int(state.time)
        columns = np.flatnonzero(cave.start_time <= time)
        left = cave.start_x[columns] - _SCROLL * (time - cave.start_time[columns]) - 2
        centres = np.asarray(_centre(cave, state.seed, jnp.asarray(columns)))
        for x, centre in zip(left.tolist(), centres.tolist(), strict=True):
            draw_rectangle(frame, x, 0, 4, centre - GAP, "green")
            draw_rectangle(frame, x, centre + GAP, 4, 48, "green")
        for block in (state.block, state.passed):
            x = paths[int(block.start_x) - 48, int(block.age)]
            draw_rectangle(frame, x - 2, int(block.y) - 4, 4, 9, "yellow")
        draw_rectangle(frame, PLAYER_X - 1, float(state.y) - 1, 2, 2, "white")
        return frame

    low = (-10.0, -60.0, -60.0, -60.0, 0.0, 12.0, 21.0)
    high = (60.0, 10.0, 60.0, 60.0, 55.0, 35.0, 44.0)
    return Environment(
        "pixelcopter", start, advance, observe, actions=2, size=7, max_steps=max_steps,
        reset_uniforms=3, step_uniforms=2, render=render, bounds=(low, high),
    )  # fmt: skip


def _centre(cave: Cave, seed: Array, column: Array) -> Array:
    """Height of the cave's centre in a column, an integer as float32."""
    x, batch = jnp.asarray(cave.start_x, jnp.float32), jnp.asarray(cave.batch, jnp.uint32)
    frequency = 4.5 / SIDE - 0.01 + 0.02 * _noise(seed, batch[column] + 4096)
    offset = 0.5 * _noise(seed, column.astype(jnp.uint32))
    return jnp.floor(SIDE / 2 + 6 * jnp.sin(frequency * x[column] + offset))


def _noise(seed: Array, index: Array) -> Array:
    """Hash a seed and an index to a uniform number in [0, 1)."""
    h = seed * jnp.uint32(0x9E3779B1) + index * jnp.uint32(0x85EBCA77) + jnp.uint32(0x165667B1)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        h = (h ^ (h >> shift)) * jnp.uint32(factor)
    return ((h ^ (h >> 16)) >> 8).astype(jnp.float32) / 2**24
