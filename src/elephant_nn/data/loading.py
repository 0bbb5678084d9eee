"""Load a data set by name or path: built in, from the cache, or the user's own."""

import contextlib
import difflib
import numbers
from dataclasses import replace
from pathlib import Path

import numpy as np

from elephant_nn.data.catalog import CATALOG, cached, fetch, is_cached
from elephant_nn.data.dataset import PARTS, Dataset
from elephant_nn.data.embedding import embedding_path, make_embedding
from elephant_nn.data.formats import optional
from elephant_nn.data.images import image_arrays
from elephant_nn.data.sources import DAMAGED, Notice
from elephant_nn.files import DataError

BUILT_IN = "digits"


def load(name: str | Path, embedding: str | None = None) -> Dataset:
    """Load `digits` (built in), a fetched data set, an `.npz` file, or a folder of images.

    With `embedding`, the embeddings of a data set that `elephant data embed` has made, by their
    name, such as `efficientnet-lite0-128px-256`.
    """
    name = str(name)
    if embedding is not None:
        return _load_embedding(name, embedding)
    if name == BUILT_IN:
        return digits()
    if name in CATALOG:
        dataset = cached(CATALOG[name])
        if dataset is None:
            raise DataError(f"{name} is not in the cache; run: elephant data fetch {name}")
        return dataset
    path = Path(name)
    if path.is_dir():
        return from_image_folder(path)
    if path.is_file():
        return from_npz(path)
    raise DataError(f"no data set, file or folder is named {name!r}; {_near(name)}")


def has_data(name: str, embedding: str = "") -> bool:
    """Whether a data set, or an embedding of it, needs no fetching; files are not examined."""
    if embedding:
        return embedding_path(name, embedding).is_file()
    return name not in CATALOG or is_cached(name)


def ensure_data(name: str, embedding: str, notice: Notice) -> None:
    """Fetch a data set, or make an embedding of it, unless it is there."""
    if embedding and has_data(name, embedding):
        return
    if name in CATALOG and cached(CATALOG[name]) is None:
        fetch(CATALOG[name], notice=notice)
    if embedding:
        make_embedding(name, embedding, notice)


def _near(name: str) -> str:
    known = [BUILT_IN, *CATALOG]
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else f"the data sets are {', '.join(known)}"


def _load_embedding(name: str, embedding: str) -> Dataset:
    if name not in CATALOG and name != BUILT_IN:
        raise DataError(f"there are no embeddings of {name!r}; {_near(name)}")
    path = embedding_path(name, embedding)
    if not path.is_file():
        there = ", ".join(sorted(file.stem for file in path.parent.glob("*.npz")))
        raise DataError(
            f"there are no embeddings {embedding!r} of {name}"
            f"{f'; there are: {there}' if there else ''}; to make some, run: elephant data embed "
            f"{name} --encoder ENCODER"
        )
    found = replace(from_npz(path), name=name)
    names = CATALOG[name].names if name in CATALOG else ()
    return replace(found, names=names) if names else found


def digits() -> Dataset:
    """The 1,797 real 8x8 digits of scikit-learn; every fifth of each class is for testing."""
    sklearn = optional("sklearn.datasets", "scikit-learn", f"the data set {BUILT_IN}")
    x, y = sklearn.load_digits(return_X_y=True)
    x = np.round(x * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8, 1)
    y = np.asarray(y, np.int32)
    return Dataset(BUILT_IN, x, y, x[:0], y[:0]).held_out(every=5)


def from_image_folder(folder: Path) -> Dataset:
    """Images in `train/<class>/` and `test/<class>/`, of one size, in any format Pillow reads.

    Grey images have one channel; if any image has colours, all have three. Images with 16 bits
    become float32. The camera orientation stored in a file is applied. Hidden files are ignored.
    """
    return from_arrays(**image_arrays(folder), name=folder.name)


def from_npz(path: Path) -> Dataset:
    """Your own arrays: x_train, y_train, x_test and y_test in one `.npz` file."""
    names = ", ".join(PARTS)
    try:
        with path.open("rb") as file:
            if file.read(2) != b"PK":
                raise DataError(f"{path} is not an .npz file; write {names} with np.savez")
            file.seek(0)
            archive = np.load(file, allow_pickle=False)
            missing = [name for name in PARTS if name not in archive]
            if missing:
                raise DataError(f"{path} has no {', '.join(missing)}; expected {names}")
            parts = {name: archive[name] for name in PARTS}
    except DAMAGED as error:
        raise DataError(f"{path} is not an .npz file of plain arrays: {error}") from error
    return from_arrays(**parts, name=path.stem)


def from_arrays(
    x_train: np.ndarray, y_train: np.ndarray, x_test: np.ndarray, y_test: np.ndarray,
    *, name: str = "own",
) -> Dataset:  # fmt: skip
    """Your own arrays as a data set: checked, labels as integers from 0, inputs as float32.

    Labels are numbers or names. They are numbered in sorted order, names such as "2" and "10" in
    numerical order; `names` keeps the originals. Inputs of type uint8 stay uint8. Arrays with
    three dimensions are grey images and get a last axis for their one channel.
    """
    if any(np.ma.is_masked(values) for values in (x_train, y_train, x_test, y_test)):
        raise DataError(f"{name}: arrays have masked values; fill them or drop those rows first")
    x_train, x_test = np.asarray(x_train), np.asarray(x_test)
    train, test = ((x.shape[1:], x.dtype == np.uint8) for x in (x_train, x_test))
    if train != test:
        raise DataError(
            f"{name}: samples of x_train are {x_train.dtype} of shape {train[0]}, samples of "
            f"x_test {x_test.dtype} of shape {test[0]}; give both the same shape, type and range "
            "(uint8 means pixels from 0 to 255)"
        )
    y_train, y_test = _labels(f"{name}: y_train", y_train), _labels(f"{name}: y_test", y_test)
    for part, x, y in (("train", x_train, y_train), ("test", x_test, y_test)):
        if x.shape[:1] != y.shape or x.size == 0:
            raise DataError(
                f"{name}: x_{part} has shape {x.shape} and y_{part} has shape {y.shape}; expected "
                "one label per row of inputs, and at least one row"
            )
    x_train, x_test = _inputs(f"{name}: x_train", x_train), _inputs(f"{name}: x_test", x_test)
    labels = np.unique(y_train)
    many = len(labels) > max(20, len(y_train) / 2)
    if labels.dtype.kind == "f" and (many or (labels % 1 != 0).any()):
        raise DataError(
            f"{name}: y_train has {len(labels)} distinct values from {labels[0]:g} to "
            f"{labels[-1]:g}; these look like numbers to predict, not classes: for regression use "
            "sample_stream(x, y), for classes pass np.round(y).astype(int), or names"
        )
    unknown = np.setdiff1d(y_test, labels)
    if len(unknown):
        raise DataError(
            f"{name}: y_test has labels that are not in y_train: {unknown[:5].tolist()}; drop "
            "those rows or add samples of these classes to the training data"
        )
    names = labels.tolist()
    if labels.dtype.kind == "U":
        with contextlib.suppress(ValueError):
            names.sort(key=int)
    index = {label: i for i, label in enumerate(names)}
    number = np.array([index[label] for label in labels.tolist()], np.int32)
    y_train, y_test = (number[np.searchsorted(labels, y)] for y in (y_train, y_test))
    return Dataset(name, x_train, y_train, x_test, y_test, tuple(names))


def _labels(what: str, y: np.ndarray) -> np.ndarray:
    """Labels as a flat array of numbers or strings."""
    y = np.asarray(y)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        one_hot = "; y.argmax(axis=1) converts one-hot rows" * (y.ndim == 2)
        raise DataError(f"{what} has shape {y.shape}, expected one label per row{one_hot}")
    if y.dtype.kind in "OT" and any(
        all(isinstance(label, kind) for label in y) for kind in (str, numbers.Real)
    ):
        y = np.array(y.tolist())
    if y.dtype.kind not in "buifU":
        raise DataError(
            f"{what} holds {_kind(y)}, expected numbers or names; to make names, use "
            "np.array([str(label) for label in y])"
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError(f"{what} has NaN or infinity in {_bad_rows(y)}; drop those rows first")
    return y


def _inputs(what: str, x: np.ndarray) -> np.ndarray:
    """Inputs as uint8 or float32, with an axis for the channel of grey images."""
    if x.ndim < 2 or x.dtype.kind not in "buif":
        example = {"M": 'x.astype("int64")', "m": 'x.astype("int64")', "c": "np.abs(x)"}
        advice = f", for example with {example[x.dtype.kind]}" if x.dtype.kind in example else ""
        raise DataError(
            f"{what} holds {_kind(x)} in shape {x.shape}, expected numbers in shape (samples, "
            f"features) or (samples, height, width, channels); convert it first{advice}"
        )
    x = x[..., None] if x.ndim == 3 else x
    if x.dtype == np.uint8:
        return x
    with np.errstate(over="ignore"):
        x = x.astype(np.float32, copy=False)
    if not np.isfinite(x).all():
        raise DataError(
            f"{what} has NaN, infinity or values too large for float32 in {_bad_rows(x)}; drop or "
            "fill those rows first"
        )
    return x


def _kind(values: np.ndarray) -> str:
    kinds = {"M": "dates", "m": "time differences", "c": "complex numbers", "O": "Python objects"}
    return f"{kinds.get(values.dtype.kind, 'values')} ({values.dtype})"


def _bad_rows(x: np.ndarray) -> str:
    rows = np.flatnonzero(~np.isfinite(x).reshape(len(x), -1).all(1))
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return f"{'row' if len(rows) == 1 else 'rows'} {', '.join(map(str, rows[:5]))}{more}"
