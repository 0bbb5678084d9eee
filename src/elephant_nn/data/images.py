"""A folder of images as arrays."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elephant_nn.data.formats import optional
from elephant_nn.files import DataError


def image_arrays(folder: Path) -> dict[str, np.ndarray]:
    """x_train, y_train, x_test and y_test of a folder of images; labels are folder names."""
    files = {part: _files(folder / part) for part in ("train", "test")}
    headers = {path: _header(path) for paths in files.values() for path in paths}
    first, expected = next(iter(headers.items()))
    for path, header in headers.items():
        if str(header) != str(expected):
            raise DataError(
                f"{path} has {header}, but {first} has {expected}; convert all images to the same "
                "size and depth"
            )
    (width, height), bits, _ = expected
    channels = 3 if any(header.coloured for header in headers.values()) else 1
    dtype = np.uint8 if bits == 8 else np.float32
    parts: dict[str, np.ndarray] = {}
    for part, paths in files.items():
        parts[f"x_{part}"] = x = np.empty((len(paths), height, width, channels), dtype)
        for row, path in zip(x, paths, strict=True):
            row[:] = _pixels(path, channels)
        parts[f"y_{part}"] = np.array([path.parent.name for path in paths])
    return parts


def _files(folder: Path) -> list[Path]:
    """All files of all classes; whatever might be a misplaced sample is an error."""
    found = []
    for path in _visible(folder) if folder.is_dir() else []:
        inside = _visible(path) if path.is_dir() else []
        nested = [p.name for p in inside if p.is_dir()]
        if nested or not inside:
            what = f"contains a folder, {nested[0]!r}" if nested else "is not a folder with images"
            raise DataError(f"{path} {what}; put images directly into the folder of their class")
        found += inside
    if not found:
        raise DataError(f"{folder.parent} needs images in {folder.name}/<class>/; there are none")
    return found


def _visible(folder: Path) -> list[Path]:
    hidden = lambda name: name.startswith(".") or name.lower() in ("thumbs.db", "desktop.ini")
    return sorted(path for path in folder.iterdir() if not hidden(path.name))


class _Header(NamedTuple):
    """Properties of an image, known without decoding its pixels."""

    size: tuple[int, int]
    bits: int
    coloured: bool

    def __str__(self) -> str:
        return f"{self.size[0]}x{self.size[1]} pixels of {self.bits} bits"


def _header(path: Path) -> _Header:
    with _opened(path) as image:
        mode = image.mode
        if mode.startswith("I;16"):
            return _Header(image.size, 16, coloured=False)
        if mode in ("I", "F"):
            raise DataError(f"{path} has 32 bits per pixel; save it with 8 or 16")
        palette = np.reshape(image.getpalette("RGB") or [], (-1, 3)) if mode == "P" else None
        grey = mode in ("1", "L", "LA") if palette is None else not np.ptp(palette, axis=1).any()
        return _Header(image.size, 8, coloured=not grey)


def _pixels(path: Path, channels: int) -> np.ndarray:
    """Pixels of shape (height, width, channels); channels is 1 or 3."""
    with _opened(path) as image:
        if image.mode.startswith("I;16"):
            return np.asarray(image)[..., None]
        if image.has_transparency_data:
            least_opaque, _ = image.convert("RGBA").getchannel("A").getextrema()
            if least_opaque != 255:
                raise DataError(f"{path} has transparent pixels; save it with a background")
        pixels = np.asarray(image.convert("L" if channels == 1 else "RGB"))
        return pixels.reshape(image.height, image.width, channels)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    pillow = optional("PIL.Image", "Pillow", "a folder of images")
    operations = optional("PIL.ImageOps", "Pillow", "a folder of images")
    try:
        with pillow.open(path) as image:
            if (frames := getattr(image, "n_frames", 1)) > 1:
                raise DataError(f"{path} has {frames} frames; save each frame as its own file")
            yield operations.exif_transpose(image) if "exif" in image.info else image
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise DataError(
            f"{path} cannot be read as an image: {error}; repair or remove the file"
        ) from error
