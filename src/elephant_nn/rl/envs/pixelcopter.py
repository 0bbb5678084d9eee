"""Pixelcopter of the PyGame Learning Environment: fly through a cave, around blocks.

The cave and the blocks move the same way whatever the player does, so when which column is where is
known beforehand: it is worked out once, in the double precision that the original uses, and looked
up. That keeps the original's ties exact in float32, and a step cheap.
"""

from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from elephant_nn.rl.envs.drawing import GREEN, LINE, SCALE, WHITE, YELLOW, Picture, blank, box
from elephant_nn.rl.envs.environment import Environment, Transition, pixel, whole

SIDE, PLAYER_X, GAP = 48, 16, 12
_SCROLL = 0.0004 * 48 * (1000 / 30)  # 0.6400000000000001, as the original has it
_CLIMB, _FALL, _DRAG = -0.56, 0.0576, 0.99
_PLAYER = 2.4
_BATCH, _SPACING = 48, 4


class Block(NamedTuple):
    """Where a block was born, its height, and how many ticks ago."""

    born: Int[Array, ""]
    y: Int[Array, ""]
    age: Int[Array, ""]


class CopterState(NamedTuple):
    y: Float[Array, ""]
    momentum: Float[Array, ""]
    block: Block
    passed: Block
    seed: UInt32[Array, ""]
    time: Int[Array, ""]


class Cave(NamedTuple):
    """By tick: the one or two columns under the player (-1: none) and the columns that left.

    By column: where and when it was born, and in which batch.
    """

    under: np.ndarray
    left: np.ndarray
    born: np.ndarray
    since: np.ndarray
    batch: np.ndarray


def _pixel(x: np.ndarray, truncating: bool) -> np.ndarray:
    """`pixel` in double precision, which the ties of the cave need."""
    return (np.trunc(x) if truncating else np.sign(x) * np.floor(np.abs(x) + 0.5)).astype(int)


@lru_cache
def cave(cap: int, truncating: bool) -> Cave:
    columns: list[tuple[int, float]] = []
    born: list[int] = []
    since: list[int] = []
    batch: list[int] = []

    def add(start: int, tick: int) -> None:
        for k in range(_BATCH):
            columns.append((len(born), float(start + 2 + _SPACING * k)))
            born.append(start + 2 + _SPACING * k)
            since.append(tick)
            batch.append((len(born) - 1) // _BATCH)

    add(0, 0)
    under, left = np.full((cap + 1, 2), -1), np.zeros(cap + 1)
    for tick in range(cap + 1):
        if tick:
            columns = [(index, x - _SCROLL) for index, x in columns]
        place = _pixel(np.array([x for _, x in columns]), truncating)
        below = np.flatnonzero((place - 2 < PLAYER_X + 1) & (place + 2 > PLAYER_X - 1))
        under[tick, : len(below)] = [columns[i][0] for i in below]
        if tick:
            stay = [(index, x) for index, x in columns if x > -_SPACING]
            left[tick] = len(columns) - len(stay)
            columns = stay
            if len(columns) <= 13:
                add(SIDE, tick)
    return Cave(under, left, *map(np.array, (born, since, batch)))


@lru_cache
def block_path() -> np.ndarray:
    """Where a block is, by the place of its birth (48 to 71) and its age, until it has left."""
    ages = int((71 + _SPACING) / _SCROLL) + 3
    path = np.zeros((24, ages))
    path[:, 0] = np.arange(48, 72)
    for age in range(1, ages):
        path[:, age] = path[:, age - 1] - _SCROLL
    return path


def pixelcopter(cap: int = 500, *, truncating: bool = False) -> Environment:
    """+1 for every column of the cave and every block that is left behind, -5 for a crash.

    Actions: up, nothing. Positions are rounded to whole pixels for collisions as pygame 2.3 and
    later do; `truncating` cuts them off as pygame up to 2.2 did. Observations, raw: height,
    momentum, room above and below, distance of the next block, and its height twice (the original
    reports it as top, and nine more as bottom, though the block reaches four up and five down).
    """
    scene, path = cave(cap, truncating), block_path()
    place, where = _pixel(path, truncating).astype(np.int32), path.astype(np.float32)
    behind, under, left = path <= PLAYER_X, scene.under, scene.left.astype(np.float32)
    oldest = path.shape[1] - 1
    # Tables stay NumPy's until a step is traced: nothing that runs JAX may come before a fork.
    at = lambda table, *index: jnp.asarray(table)[index]

    def new_block(draws: Array) -> Block:
        return Block(48 + whole(draws[0], 24), 12 + whole(draws[1], 24), jnp.int32(0))

    def begin(draws: Array) -> CopterState:
        gone = Block(jnp.int32(48), jnp.int32(0), jnp.int32(oldest))
        seed = (draws[2] * 2**24).astype(jnp.uint32)
        start = jnp.float32(SIDE / 2)
        return CopterState(start, 0 * start, new_block(draws), gone, seed, jnp.int32(0))

    def hit(block: Block, y: Array) -> Array:
        x, row = at(place, block.born - 48, block.age), pixel(y, truncating)
        beside = (x - 2 < PLAYER_X + 1) & (x + 2 > PLAYER_X - 1)
        return beside & (block.y - 4 < row + 1) & (block.y + 5 > row - 1)

    def advance(state: CopterState, action: Array, draws: Array) -> Transition:
        push = jnp.where(action == 0, _CLIMB, _FALL)
        momentum = _DRAG * (state.momentum + push)
        y = state.y + momentum
        time = jnp.minimum(state.time + 1, cap)
        block, passed = (
            b._replace(age=jnp.minimum(b.age + 1, oldest)) for b in (state.block, state.passed)
        )
        crashed = hit(block, y) | hit(passed, y) | (y < 6) | (y > 42)
        for column in at(under, time):
            center = middle(scene, state.seed, column)
            scraped = (y - _PLAYER <= center - GAP) | (y >= center + GAP)
            crashed |= (column >= 0) & scraped
        done = at(behind, block.born - 48, block.age)
        keep = lambda new, old: jnp.where(done, new, old)
        passed = Block(*map(keep, block, passed))
        block = Block(*map(keep, new_block(draws), block))
        reward = at(left, time) + done - 5.0 * crashed
        new = CopterState(y, momentum, block, passed, state.seed, time)
        return Transition(new, observe(new), reward, crashed, ~crashed & (time >= cap))

    def observe(state: CopterState) -> Array:
        center = middle(scene, state.seed, at(under, state.time, 0))
        block = state.block
        distance = at(where, block.born - 48, block.age) - PLAYER_X
        above, below = state.y - (center - GAP), center + GAP - state.y
        height = block.y.astype(jnp.float32)
        return jnp.stack([state.y, state.momentum, above, below, distance, height, height + 9])

    def draw(state: CopterState) -> Picture:
        alive = np.flatnonzero(scene.since <= int(state.time))
        places = scene.born[alive] - _SCROLL * (int(state.time) - scene.since[alive])
        heights = np.asarray(middle(scene, state.seed, jnp.asarray(alive)))
        return draw_pixelcopter(state, places, heights)

    low = (-10.0, -60.0, -60.0, -60.0, 0.0, 12.0, 21.0)
    bounds = (low, (60.0, 10.0, 60.0, 60.0, 55.0, 35.0, 44.0))
    return Environment("pixelcopter", begin, advance, observe, 2, 7, cap, 3, 2, bounds, draw)


def middle(scene: Cave, seed: Array, column: Array) -> Array:
    """The height of the cave's middle in a column, a whole number."""
    born, batch = jnp.asarray(scene.born, jnp.float32), jnp.asarray(scene.batch, jnp.uint32)
    wave = 4.5 / SIDE - 0.01 + 0.02 * _noise(seed, batch[column] + 4096)
    offset = 0.5 * _noise(seed, column.astype(jnp.uint32))
    return jnp.floor(SIDE / 2 + 6 * jnp.sin(wave * born[column] + offset))


def _noise(seed: Array, index: Array) -> Array:
    """A uniform number in [0, 1) for each index of a seed: a few integer operations, no state."""
    h = seed * jnp.uint32(0x9E3779B1) + index * jnp.uint32(0x85EBCA77) + jnp.uint32(0x165667B1)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        h = (h ^ (h >> shift)) * jnp.uint32(factor)
    return ((h ^ (h >> 16)) >> 8).astype(jnp.float32) / 2**24


def draw_pixelcopter(
    state: CopterState, places: Float[np.ndarray, " n"], heights: Float[np.ndarray, " n"]
) -> Picture:
    """`places` and `heights` of the middle of the cave's columns."""
    picture = blank(48 * SCALE, 48 * SCALE, LINE)
    for x, height in zip(places.tolist(), heights.tolist(), strict=True):
        box(picture, x - 2, 0, 4, height - GAP, GREEN)
        box(picture, x - 2, height + GAP, 4, 48, GREEN)
    for block in (state.block, state.passed):
        x = block_path()[int(block.born) - 48, int(block.age)]
        box(picture, x - 2, int(block.y) - 4, 4, 9, YELLOW)
    box(picture, PLAYER_X - 1, float(state.y) - 1, 2, 2, WHITE)
    return picture
