"""Simple shapes on RGB pictures: what the environments draw themselves with."""

import numpy as np
from jaxtyping import UInt8

Picture = UInt8[np.ndarray, "h w 3"]
Colour = tuple[int, int, int]

SKY, GROUND, LINE = (244, 246, 249), (96, 125, 99), (40, 44, 52)
BLUE, RED, GREEN, YELLOW = (0, 114, 178), (213, 94, 0), (0, 158, 115), (240, 190, 40)
WHITE = (255, 255, 255)
SCALE = 6


def blank(height: int, width: int, colour: Colour) -> Picture:
    """A picture of one colour."""
    return np.full((height, width, 3), colour, np.uint8)


def disc(picture: np.ndarray, x: float, y: float, radius: float, colour: Colour) -> None:
    """A filled circle."""
    rows, columns = np.ogrid[: picture.shape[0], : picture.shape[1]]
    picture[(columns - x) ** 2 + (rows - y) ** 2 <= radius**2] = colour


def bar(picture: np.ndarray, a: np.ndarray, b: np.ndarray, thick: float, colour: Colour) -> None:
    """All pixels nearer than `thick` to the line from a to b."""
    rows, columns = np.mgrid[: picture.shape[0], : picture.shape[1]]
    along = b - a
    share = ((columns - a[0]) * along[0] + (rows - a[1]) * along[1]) / max(along @ along, 1e-9)
    share = np.clip(share, 0, 1)
    far = (columns - a[0] - share * along[0]) ** 2 + (rows - a[1] - share * along[1]) ** 2
    picture[far <= thick**2] = colour


def box(
    picture: np.ndarray, left: float, top: float, width: float, height: float, colour: Colour
) -> None:
    """A rectangle, in pixels of the games, which are SCALE of ours; cut off at the borders."""
    at = lambda value, size: round(min(max(value * SCALE, 0), size))
    rows = slice(at(top, picture.shape[0]), at(top + height, picture.shape[0]))
    columns = slice(at(left, picture.shape[1]), at(left + width, picture.shape[1]))
    picture[rows, columns] = colour
