"""Drawing of simple shapes, for the environments' `render`."""

import numpy as np
from jaxtyping import UInt8

Frame = UInt8[np.ndarray, "h w 3"]
COLOURS = {
    "sky": (244, 246, 249), "ground": (96, 125, 99), "dark": (40, 44, 52), "white": (255,) * 3,
    "blue": (0, 114, 178), "red": (213, 94, 0), "green": (0, 158, 115), "yellow": (240, 190, 40),
}  # fmt: skip
SCALE = 6
"""Frame pixels per game pixel."""


def blank_frame(height: int, width: int, colour: str) -> Frame:
    """Create a frame of one colour."""
    return np.full((height, width, 3), COLOURS[colour], np.uint8)


def draw_circle(frame: np.ndarray, x: float, y: float, radius: float, colour: str) -> None:
    """Draw a filled circle."""
    rows, columns = np.ogrid[: frame.shape[0], : frame.shape[1]]
    frame[(columns - x) ** 2 + (rows - y) ** 2 <= radius**2] = COLOURS[colour]


def draw_line(
    frame: np.ndarray, start: np.ndarray, end: np.ndarray, radius: float, colour: str
) -> None:
    """Draw a line with round ends, `2 * radius` pixels wide."""
    rows, columns = np.mgrid[: frame.shape[0], : frame.shape[1]]
    along = end - start
    share = (columns - start[0]) * along[0] + (rows - start[1]) * along[1]
    share = np.clip(share / max(along @ along, 1e-9), 0, 1)
    dx, dy = columns - start[0] - share * along[0], rows - start[1] - share * along[1]
    frame[dx**2 + dy**2 <= radius**2] = COLOURS[colour]


def draw_rectangle(
    frame: np.ndarray, left: float, top: float, width: float, height: float, colour: str
) -> None:
    """Draw a filled rectangle, given in game pixels and clipped to the frame."""
    at = lambda value, size: round(min(max(value * SCALE, 0), size))
    rows = slice(at(top, frame.shape[0]), at(top + height, frame.shape[0]))
    columns = slice(at(left, frame.shape[1]), at(left + width, frame.shape[1]))
    frame[rows, columns] = COLOURS[colour]
