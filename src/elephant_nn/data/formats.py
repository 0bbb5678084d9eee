"""Official file formats of the known data sets: decode, encode again, compute checksums."""

import gzip
import hashlib
import importlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from elephant_nn.data.dataset import Dataset
from elephant_nn.files import DataError

Files = Mapping[str, bytes]

IDX_FILES = {
    "x_train": "train-images-idx3-ubyte",
    "y_train": "train-labels-idx1-ubyte",
    "x_test": "t10k-images-idx3-ubyte",
    "y_test": "t10k-labels-idx1-ubyte",
}
CIFAR_TRAIN = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
CIFAR_TEST = "test_batch.bin"
STRIP_FILES = (
    *(f"data_batch_{i}.png" for i in range(1, 6)),
    "test_batch.png",
    "train_lables.json",  # so spelled in the package
    "test_lables.json",
)


def optional(
    module: str, package: str, purpose: str, install: str = '"elephant-nn[experiments]"'
) -> Any:
    """Import a module of an optional dependency."""
    try:
        return importlib.import_module(module)
    except (ImportError, RuntimeError) as error:  # RuntimeError: versions that do not fit together
        command = f"pip install {install}"
        reason = "" if isinstance(error, ImportError) else f" ({error})"
        raise DataError(f"{purpose} needs {package}{reason}; install it with: {command}") from error


def from_idx(name: str, files: Files) -> Dataset:
    """MNIST's format: four files with a header and unsigned bytes, plain or gzipped."""
    parts: dict[str, Any] = {}
    for part, filename in IDX_FILES.items():
        content = files.get(filename) or gzip.decompress(files[f"{filename}.gz"])
        dimensions = content[3]
        shape = np.frombuffer(content, ">i4", dimensions, 4)
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape)
        parts[part] = values[..., None] if part[0] == "x" else values.astype(np.int32)
    return Dataset(name, **parts)


def to_idx(dataset: Dataset) -> Iterator[tuple[str, bytes]]:
    """The official files, one at a time."""
    for part, filename in IDX_FILES.items():
        values = dataset.parts[part]
        values = values[..., 0] if part[0] == "x" else values
        header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">i4").tobytes()
        yield filename, header + values.astype(np.uint8, copy=False).tobytes()


def from_mnist_csv(name: str, files: Files) -> Dataset:
    """Tables with the label first, then 784 pixels, below one line of column names."""
    parts: dict[str, Any] = {}
    for part in ("train", "test"):
        lines = io.BytesIO(files[f"mnist_{part}.csv"])
        table = np.loadtxt(lines, np.uint8, comments=None, delimiter=",", skiprows=1, ndmin=2)
        parts[f"x_{part}"] = np.ascontiguousarray(table[:, 1:]).reshape(-1, 28, 28, 1)
        parts[f"y_{part}"] = table[:, 0].astype(np.int32)
    return Dataset(name, **parts)


def from_cifar_binary(name: str, files: Files) -> Dataset:
    """CIFAR-10's binary format: records of a label byte and 3072 bytes, channel by channel."""

    def decode(names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        table = np.concatenate([np.frombuffer(files[n], np.uint8).reshape(-1, 3073) for n in names])
        images = table[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        return np.ascontiguousarray(images), table[:, 0].astype(np.int32)

    return Dataset(name, *decode(CIFAR_TRAIN), *decode((CIFAR_TEST,)))


def to_cifar_binary(dataset: Dataset) -> Iterator[tuple[str, bytes]]:
    """The official files, one at a time."""
    split = lambda values: np.array_split(values, len(CIFAR_TRAIN))
    x, y = [*split(dataset.x_train), dataset.x_test], [*split(dataset.y_train), dataset.y_test]
    for filename, images, labels in zip((*CIFAR_TRAIN, CIFAR_TEST), x, y, strict=True):
        pixels = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
        yield filename, np.column_stack([labels.astype(np.uint8), pixels]).tobytes()


def from_cifar_archive(name: str, files: Files) -> Dataset:
    """The official archive: a gzipped tar of the binary files."""
    (content,) = files.values()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = {m.name.rpartition("/")[2]: m for m in archive.getmembers() if m.isfile()}
        wanted = {n: archive.extractfile(members[n]) for n in (*CIFAR_TRAIN, CIFAR_TEST)}
        return from_cifar_binary(name, {n: file.read() for n, file in wanted.items() if file})


def from_cifar_strips(name: str, files: Files) -> Dataset:
    """Six PNG images whose row i holds the 1024 pixels of sample i, and labels as JSON."""
    pillow = optional("PIL.Image", "Pillow", f"this copy of {name}")

    def strip(filename: str) -> np.ndarray:
        try:
            with pillow.open(io.BytesIO(files[filename])) as image:
                return np.asarray(image.convert("RGB")).reshape(-1, 32, 32, 3)
        except pillow.DecompressionBombError as error:
            raise ValueError(f"{filename}: {error}") from error

    *train, test, train_labels, test_labels = STRIP_FILES
    labels = lambda filename: np.array(json.loads(files[filename]), np.int32)
    x_train = np.concatenate([strip(filename) for filename in train])
    return Dataset(name, x_train, labels(train_labels), strip(test), labels(test_labels))


def checksums(files: Iterable[tuple[str, bytes | memoryview]]) -> dict[str, str]:
    """The SHA-256 of each file."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in files}
