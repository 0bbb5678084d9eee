"""Load a data set by name or by path: built in, fetched, or the user's own."""

import difflib
import zipfile
import zlib
from pathlib import Path

import numpy as np

from elephant_nn.data.catalog import CATALOG, cached
from elephant_nn.data.dataset import Dataset
from elephant_nn.files import DataError

BUILT_IN = "digits"
_PICTURES = {".png", ".jpg", ".jpeg", ".bmp"}


def load(name: str) -> Dataset:
    """`digits` (built in), a fetched data set, a path to an `.npz`, or to a folder of pictures."""
    if name == BUILT_IN:
        return digits()
    if name in CATALOG:
        dataset = cached(CATALOG[name])
        if dataset is None:
            raise DataError(f"{name} is not on this machine yet; run: elephant data fetch {name}")
        return dataset
    path = Path(name)
    if path.is_dir():
        return from_pictures(path)
    if path.is_file():
        return from_npz(path)
    known = [BUILT_IN, *CATALOG]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    raise DataError(f"there is no data set or file {name!r}; {hint}")


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
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise DataError(f"{path} holds one array; it needs {', '.join(names)}: np.savez")
            missing = [name for name in names if name not in archive]
            if missing:
                raise DataError(f"{path} has no {', '.join(missing)}; it needs {', '.join(names)}")
            parts = {name: archive[name] for name in names}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
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
    """Your own arrays as a data set: checked, labels as whole numbers from 0, features as float32.

    Labels may be numbers or names; they are numbered in their sorted order.
    """
    x_train, y_train, x_test, y_test = map(np.asarray, (x_train, y_train, x_test, y_test))
    y_train, y_test = (y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y for y in (y_train, y_test))
    if x_train.shape[1:] != x_test.shape[1:]:
        raise DataError(
            f"{name}: a sample of x_train has shape {x_train.shape[1:]}, one of x_test "
            f"{x_test.shape[1:]}; they must be alike"
        )
    for part, x, y in (("train", x_train, y_train), ("test", x_test, y_test)):
        if y.ndim != 1 or y.dtype.kind not in "buifU":
            raise DataError(
                f"{name}: y_{part} must be one label a row, a number or a name, got shape "
                f"{y.shape} of {y.dtype}; y.astype(str) makes names of objects"
            )
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise DataError(f"{name}: y_{part} has NaN or infinity; drop those rows first")
        if x.ndim < 2 or x.dtype.kind not in "buif":
            raise DataError(
                f"{name}: x_{part} must be rows of numbers, got shape {x.shape} of {x.dtype}"
            )
        if len(x) != len(y) or len(x) == 0:
            raise DataError(f"{name}: x_{part} has {len(x)} rows and y_{part} {len(y)}")
        if x.dtype != np.uint8 and not np.isfinite(_plain(x)).all():
            raise DataError(
                f"{name}: x_{part} has NaN, infinity or what float32 cannot hold; drop or fill "
                "those rows first"
            )
    labels = np.unique(y_train)
    strange = np.setdiff1d(y_test, labels)
    if len(strange):
        raise DataError(f"{name}: y_test has labels that y_train lacks: {strange[:5].tolist()}")
    number = lambda y: np.asarray(np.searchsorted(labels, y), np.int32)
    return Dataset(name, _plain(x_train), number(y_train), _plain(x_test), number(y_test))


def _plain(x: np.ndarray) -> np.ndarray:
    if x.dtype == np.uint8:
        return x
    with np.errstate(over="ignore"):
        return x.astype(np.float32)


def from_pictures(folder: Path) -> Dataset:
    """Pictures in `train/<class>/` and `test/<class>/`, all of one size."""
    from PIL import Image, UnidentifiedImageError

    parts: dict[str, np.ndarray] = {}
    for part in ("train", "test"):
        files = sorted(p for p in (folder / part).glob("*/*") if p.suffix.lower() in _PICTURES)
        if not files:
            raise DataError(f"{folder} needs pictures in {part}/<class>/; there are none")
        pictures = []
        for path in files:
            try:
                with Image.open(path) as picture:
                    pictures.append(np.asarray(picture.convert("RGB")))
            except (UnidentifiedImageError, OSError) as error:
                raise DataError(f"{path} is not a picture: {error}") from error
            if pictures[-1].shape != pictures[0].shape:
                raise DataError(
                    f"{path} is {pictures[-1].shape[1]}x{pictures[-1].shape[0]}, but {files[0]} is "
                    f"{pictures[0].shape[1]}x{pictures[0].shape[0]}; make them one size first"
                )
        parts[f"x_{part}"] = np.stack(pictures)
        parts[f"y_{part}"] = np.array([path.parent.name for path in files])
    return from_arrays(**parts, name=folder.name)
