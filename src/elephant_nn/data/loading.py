"""Load a data set by name or by path: built in, fetched, or the user's own."""

import contextlib
import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elephant_nn.data.catalog import CATALOG, cached
from elephant_nn.data.dataset import Dataset
from elephant_nn.data.sources import DAMAGED
from elephant_nn.files import DataError

BUILT_IN = "digits"


def load(name: str | Path) -> Dataset:
    """`digits` (built in), a fetched data set, a path to an `.npz`, or to a folder of pictures."""
    name = str(name)
    if name == BUILT_IN:
        return digits()
    if name in CATALOG:
        dataset = cached(CATALOG[name])
        if dataset is None:
            raise DataError(f"{name} is not in the cache; run: elephant data fetch {name}")
        return dataset
    path = Path(name)
    if path.is_dir():
        return from_pictures(path)
    if path.is_file():
        return from_npz(path)
    known = [BUILT_IN, *CATALOG]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are the data sets {', '.join(known)}"
    raise DataError(f"there is no data set, file or folder {name!r}; {hint}")


def digits() -> Dataset:
    """The 1,797 real 8x8 digits of scikit-learn; every fifth of a class is for testing."""
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x = np.round(x * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8, 1)
    y = np.asarray(y, np.int32)
    return Dataset(BUILT_IN, x, y, x[:0], y[:0]).held_out(every=5)


def from_npz(path: Path) -> Dataset:
    """Your own arrays: x_train, y_train, x_test, y_test in one `.npz`."""
    names = ("x_train", "y_train", "x_test", "y_test")
    try:
        with path.open("rb") as file:
            if file.read(2) != b"PK":
                raise DataError(f"{path} is not an .npz; np.savez makes one of {', '.join(names)}")
            file.seek(0)
            archive = np.load(file, allow_pickle=False)
            missing = [name for name in names if name not in archive]
            if missing:
                raise DataError(f"{path} has no {', '.join(missing)}; it needs {', '.join(names)}")
            parts = {name: archive[name] for name in names}
    except DAMAGED as error:
        raise DataError(f"{path} is not an .npz of plain arrays: {error}") from error
    return from_arrays(**parts, name=path.stem)


def from_arrays(
    x_train: np.ndarray,
    y_train: np.ndarray,
    x_test: np.ndarray,
    y_test: np.ndarray,
    *,
    name: str = "own",
) -> Dataset:
    """Your own arrays as a data set: checked, labels as whole numbers from 0, inputs as float32.

    Labels may be numbers or names; they are numbered in their sorted order, names that are whole
    numbers in the order of the numbers, and kept in `names`. Bytes stay bytes. Arrays of three
    dimensions are grey pictures and get a last axis for their one channel.
    """
    if any(np.ma.is_masked(part) for part in (x_train, y_train, x_test, y_test)):
        raise DataError(f"{name}: arrays have masked values; fill them, or drop those rows first")
    x_train, y_train, x_test, y_test = map(np.asarray, (x_train, y_train, x_test, y_test))
    y_train, y_test = (y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y for y in (y_train, y_test))
    if x_train.shape[1:] != x_test.shape[1:]:
        raise DataError(
            f"{name}: a sample of x_train has shape {x_train.shape[1:]}, one of x_test "
            f"{x_test.shape[1:]}; they must be alike"
        )
    if (x_train.dtype == np.uint8) != (x_test.dtype == np.uint8):
        raise DataError(
            f"{name}: x_train is of {x_train.dtype} and x_test of {x_test.dtype}; bytes are pixels "
            "from 0 to 255 and both are scaled alike, so give both the same type and range"
        )
    for part, x, y in (("train", x_train, y_train), ("test", x_test, y_test)):
        if y.ndim != 1 or y.dtype.kind not in "buifU":
            raise DataError(
                f"{name}: y_{part} must be one label a row, a number or a name, got shape "
                f"{y.shape} of {y.dtype}; y.astype(str) makes names of objects"
            )
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise DataError(
                f"{name}: y_{part} has NaN or infinity in {_strange_rows(y)}; drop those rows first"
            )
        if x.ndim < 2 or x.dtype.kind not in "buif":
            raise DataError(
                f"{name}: x_{part} must be rows of numbers, got shape {x.shape} of {x.dtype}"
            )
        if len(x) != len(y) or x.size == 0:
            raise DataError(
                f"{name}: x_{part} has shape {x.shape} and y_{part} {y.shape}; there must be a row "
                "for each label, none of them empty"
            )
        if x.dtype != np.uint8 and not np.isfinite(_plain(x)).all():
            raise DataError(
                f"{name}: x_{part} has NaN, infinity or what float32 cannot hold in "
                f"{_strange_rows(_plain(x))}; drop or fill those rows first"
            )
    labels = np.unique(y_train)
    strange = np.setdiff1d(y_test, labels)
    if len(strange):
        raise DataError(f"{name}: y_test has labels that y_train lacks: {strange[:5].tolist()}")
    names = labels.tolist()
    if labels.dtype.kind == "U":
        with contextlib.suppress(ValueError):
            names.sort(key=int)
    where = {label: i for i, label in enumerate(names)}
    place = np.array([where[label] for label in labels.tolist()], np.int32)
    number = lambda y: place[np.searchsorted(labels, y)]
    return Dataset(
        name, _plain(x_train), number(y_train), _plain(x_test), number(y_test), tuple(names)
    )


def _plain(x: np.ndarray) -> np.ndarray:
    x = x[..., None] if x.ndim == 3 else x
    if x.dtype == np.uint8:
        return x
    with np.errstate(over="ignore"):
        return x.astype(np.float32)


def _strange_rows(x: np.ndarray) -> str:
    rows = np.flatnonzero(~np.isfinite(x).reshape(len(x), -1).all(1))
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return f"{'row' if len(rows) == 1 else 'rows'} {', '.join(map(str, rows[:5]))}{more}"


def from_pictures(folder: Path) -> Dataset:
    """Pictures in `train/<class>/` and `test/<class>/`, all of one size, in any format of Pillow.

    Grey ones have one channel, unless there are coloured ones among them; then all have three.
    Sixteen bits of grey stay what they are, as float32; a camera's note of how it was held is
    followed; hidden files are passed over.
    """
    files = {part: _files(folder / part) for part in ("train", "test")}
    looks = {path: _look(path) for paths in files.values() for path in paths}
    first, (size, deep, _) = next(iter(looks.items()))
    for path, look in looks.items():
        for what, mine, others in (("pixels", look.size, size), ("bits", look.bits, deep)):
            if mine != others:
                raise DataError(
                    f"{path} has {_spelled(mine)} {what}, but {first} has {_spelled(others)}; make "
                    "them alike first"
                )
    channels = 3 if any(look.coloured for look in looks.values()) else 1
    parts: dict[str, np.ndarray] = {}
    for part, paths in files.items():
        kind = np.uint8 if deep == 8 else np.float32
        parts[f"x_{part}"] = x = np.empty((len(paths), size[1], size[0], channels), kind)
        for row, path in zip(x, paths, strict=True):
            row[:] = _pixels(path, channels)
        parts[f"y_{part}"] = np.array([path.parent.name for path in paths])
    return from_arrays(**parts, name=folder.name)


def _files(folder: Path) -> list[Path]:
    """Every file of every class; nothing that might be a sample is left out in silence."""
    if not folder.is_dir():
        raise DataError(f"{folder.parent} needs pictures in {folder.name}/<class>/; there are none")
    found = []
    for path in _visible(folder):
        inside = _visible(path) if path.is_dir() else []
        nested = [p.name for p in inside if p.is_dir()]
        if nested or not inside:
            what = f"has a folder {nested[0]!r} in it" if nested else "is no folder with pictures"
            raise DataError(f"{path} {what}; they go right into the folder of their class")
        found += inside
    if not found:
        raise DataError(f"{folder.parent} needs pictures in {folder.name}/<class>/; there are none")
    return found


def _visible(folder: Path) -> list[Path]:
    hidden = lambda name: name.startswith(".") or name.lower() in ("thumbs.db", "desktop.ini")
    return sorted(path for path in folder.iterdir() if not hidden(path.name))


class _Look(NamedTuple):
    """What the head of a picture's file says."""

    size: tuple[int, int]
    bits: int
    coloured: bool


def _look(path: Path) -> _Look:
    with _opened(path) as picture:
        mode = picture.mode
        if mode.startswith("I;16"):
            return _Look(picture.size, 16, coloured=False)
        if mode in ("I", "F"):
            raise DataError(f"{path} has 32 bits a pixel; save it with 8 or 16")
        palette = np.reshape(picture.getpalette("RGB") or [], (-1, 3)) if mode == "P" else None
        grey = mode in ("1", "L", "LA") if palette is None else not np.ptp(palette, axis=1).any()
        return _Look(picture.size, 8, coloured=not grey)


def _pixels(path: Path, channels: int) -> np.ndarray:
    """Of shape (height, width, 1 or 3)."""
    with _opened(path) as picture:
        if picture.mode.startswith("I;16"):
            return np.asarray(picture)[..., None]
        if picture.has_transparency_data:
            opaque, _ = picture.convert("RGBA").getchannel("A").getextrema()
            if opaque != 255:
                raise DataError(f"{path} is transparent in places; give it a background first")
        grey = channels == 1
        return np.asarray(picture.convert("L" if grey else "RGB")).reshape(
            picture.height, picture.width, channels
        )


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as picture:
            if (frames := getattr(picture, "n_frames", 1)) > 1:
                raise DataError(f"{path} has {frames} frames; save each as a file")
            yield ImageOps.exif_transpose(picture) if "exif" in picture.info else picture
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(
            f"{path} cannot be read as a picture: {error}; mend it or take it away"
        ) from error


def _spelled(value: int | tuple[int, int]) -> str:
    return f"{value[0]}x{value[1]}" if isinstance(value, tuple) else str(value)
