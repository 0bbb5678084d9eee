"""What a state looks like, as an RGB picture."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import UInt8

from elephant_nn.rl.catcher import FRUIT, PADDLE, PADDLE_Y
from elephant_nn.rl.pixelcopter import GAP, PLAYER_X, block_path

Picture = UInt8[np.ndarray, "h w 3"]

SKY, GROUND, LINE = (244, 246, 249), (96, 125, 99), (40, 44, 52)
BLUE, RED, GREEN, YELLOW = (0, 114, 178), (213, 94, 0), (0, 158, 115), (240, 190, 40)
SCALE = 6


def _blank(height: int, width: int, colour: tuple[int, int, int]) -> np.ndarray:
    return np.full((height, width, 3), colour, np.uint8)


def _disc(picture: np.ndarray, x: float, y: float, radius: float, colour: Any) -> None:
    rows, columns = np.ogrid[: picture.shape[0], : picture.shape[1]]
    picture[(columns - x) ** 2 + (rows - y) ** 2 <= radius**2] = colour


def _bar(picture: np.ndarray, a: np.ndarray, b: np.ndarray, thick: float, colour: Any) -> None:
    """All pixels nearer than `thick` to the line from a to b."""
    rows, columns = np.mgrid[: picture.shape[0], : picture.shape[1]]
    along = b - a
    share = ((columns - a[0]) * along[0] + (rows - a[1]) * along[1]) / max(along @ along, 1e-9)
    share = np.clip(share, 0, 1)
    far = (columns - a[0] - share * along[0]) ** 2 + (rows - a[1] - share * along[1]) ** 2
    picture[far <= thick**2] = colour


def _box(
    picture: np.ndarray, left: float, top: float, width: float, height: float, colour: Any
) -> None:
    at = lambda value, size: round(min(max(value * SCALE, 0), size))
    rows = slice(at(top, picture.shape[0]), at(top + height, picture.shape[0]))
    columns = slice(at(left, picture.shape[1]), at(left + width, picture.shape[1]))
    picture[rows, columns] = colour


def draw_mountain_car(state: Any) -> Picture:
    width, height = 480, 320
    picture = _blank(height, width, SKY)
    across = lambda position: (position + 1.2) / 1.8 * width
    up = lambda position: height * (0.82 - 0.30 * (np.sin(3 * position) + 0.6))
    places = -1.2 + 1.8 * np.arange(width) / width
    rows = np.arange(height)[:, None]
    picture[rows >= up(places)] = GROUND
    _bar(picture, np.array([across(0.5), up(0.5)]), np.array([across(0.5), up(0.5) - 45]), 2, LINE)
    _box(picture, across(0.5) / SCALE, (up(0.5) - 45) / SCALE, 4, 2.5, RED)
    position = float(state.position)
    x, y = across(position), up(position) - 12
    _disc(picture, x - 9, y + 7, 6, LINE)
    _disc(picture, x + 9, y + 7, 6, LINE)
    _bar(picture, np.array([x - 11, y]), np.array([x + 11, y]), 7, BLUE)
    return picture


def draw_acrobot(state: Any) -> Picture:
    side, unit = 400, 85.0
    picture = _blank(side, side, SKY)
    hook = np.array([side / 2, side / 2])
    goal = hook[1] - unit
    _bar(picture, np.array([0.0, goal]), np.array([side - 1.0, goal]), 1, RED)
    t1, t2 = (float(angle) for angle in state.angles)
    elbow = hook + unit * np.array([np.sin(t1), np.cos(t1)])
    tip = elbow + unit * np.array([np.sin(t1 + t2), np.cos(t1 + t2)])
    _bar(picture, hook, elbow, 7, BLUE)
    _bar(picture, elbow, tip, 7, GREEN)
    for joint in (hook, elbow):
        _disc(picture, joint[0], joint[1], 8, YELLOW)
    return picture


def draw_catcher(state: Any) -> Picture:
    picture = _blank(64 * SCALE, 64 * SCALE, LINE)
    x, fruit_x, fruit_y = int(state.x), int(state.fruit_x), int(state.fruit_y)
    _box(picture, fruit_x - FRUIT / 2, fruit_y - FRUIT / 2, FRUIT, FRUIT, RED)
    _box(picture, x - PADDLE // 2, PADDLE_Y - 1, PADDLE, 3, (255, 255, 255))
    for life in range(int(state.lives)):
        _box(picture, 2 + 4 * life, 2, 2, 2, GREEN)
    return picture


def draw_pixelcopter(state: Any, columns: Any) -> Picture:
    """`columns`: pairs of place and middle of the cave's columns that may be in the picture."""
    picture = _blank(48 * SCALE, 48 * SCALE, LINE)
    for x, middle in columns:
        _box(picture, x - 2, 0, 4, middle - GAP, GREEN)
        _box(picture, x - 2, middle + GAP, 4, 48, GREEN)
    for block in (state.block, state.passed):
        x = block_path()[int(block.born) - 48, int(block.age)]
        _box(picture, x - 2, int(block.y) - 4, 4, 9, YELLOW)
    _box(picture, PLAYER_X - 1, float(state.y) - 1, 2, 2, (255, 255, 255))
    return picture


PICTURES: dict[str, Callable[..., Picture]] = {
    "mountain-car": draw_mountain_car,
    "acrobot": draw_acrobot,
    "catcher": draw_catcher,
}
