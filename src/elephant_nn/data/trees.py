"""Image data sets in the forms people keep them: archives, extracted trees, class folders, `.npz`.

Samples get a canonical order, by class and then by the SHA-256 of their pixels, so that every form
gives the same arrays.
"""

import contextlib
import hashlib
import io
import pickletools
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from elephant_nn.data.dataset import Dataset
from elephant_nn.data.formats import Files, optional
from elephant_nn.data.sources import DAMAGED, Notice
from elephant_nn.files import DataError

Member = tuple[str, Callable[[], bytes]]
Labels = np.ndarray | Sequence[int | str]

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".webp")
ARCHIVES = (".zip", ".npz", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
FOLDERS = {"train": "train", "training": "train", "val": "test", "valid": "test",
           "validation": "test", "test": "test"}  # fmt: skip


@dataclass(frozen=True)
class ImageSet:
    """What a complete copy of a data set contains.

    Attributes:
        classes: the names of the classes, sorted; class folders are named so.
        side: height and width of the images.
        per_class: images per class, for training and for testing.
        label_bytes: bytes before the pixels of a record of the binary files; the last is the label.
        members: the official files that are not images, without `.bin`, and the part they hold.
        archives: how the names of the official archives begin.
    """

    name: str
    classes: tuple[str, ...]
    side: int
    per_class: tuple[int, int]
    label_bytes: int = 0
    members: Mapping[str, str] = field(default_factory=dict)
    archives: tuple[str, ...] = ()


Samples = list[tuple[np.ndarray, int, str]]
"""Pixels, the label, and the file that they come from."""


def read_archive(kind: ImageSet, name: str, files: Files) -> Dataset:
    """A data set from the bytes of its one archive."""
    del name
    (content,) = files.values()
    return read_image_set(kind, content, lambda text: None)


def read_image_set(
    kind: ImageSet, source: Path | bytes, notice: Notice, *, order: str = ""
) -> Dataset:
    """A data set from an archive, a folder, or the bytes of an archive, in any of its forms.

    `order` names a file with the place of each canonical sample in the official order.
    """
    where = str(source) if isinstance(source, Path) else "the archive"
    parts: dict[str, Samples] = {"train": [], "test": []}
    annotations: dict[str, str] = {}
    unlabelled: Samples = []
    archives: list[Path] = []
    total, told = sum(kind.per_class) * len(kind.classes), 0
    with _naming(where):
        for name, read in _members(source):
            place = PurePosixPath(name)
            suffix = place.suffix.lower()
            if suffix in IMAGES:
                _sort_image(kind, place, read, parts, unlabelled)
            elif place.name == "val_annotations.txt":
                lines = (line.split("\t") for line in read().decode().splitlines() if line.strip())
                annotations = {line[0]: line[1] for line in lines}
            elif place.name.removesuffix(".bin") in kind.members:
                decode = _from_records if place.suffix == ".bin" else _from_pickle
                parts[kind.members[place.name.removesuffix(".bin")]] += decode(kind, name, read())
            elif name in ("x_train.npy", "y_train.npy") or name.lower().endswith(ARCHIVES):
                archives.append(Path(name))
            found = len(parts["train"]) + len(parts["test"]) + len(unlabelled)
            if found - told >= total // 10:
                told = found
                notice(f"{kind.name}: read {found:,} of {total:,} images")
        if not any(parts.values()) and isinstance(source, Path) and archives:
            if source.is_dir():
                chosen = source / _one_archive(kind, archives, where)
                return read_image_set(kind, chosen, notice, order=order)
            if Path("x_train.npy") not in archives:
                raise DataError(f"{where} contains {archives[0]}; extract it first")
            parts = _from_npz(kind, source)
    for pixels, _, name in unlabelled:
        label = annotations.get(PurePosixPath(name).name)
        if label is not None:
            parts["test"].append((pixels, _label(kind, label, name), name))
    dataset = _complete(kind, parts, where)
    return _in_official_order(dataset, order) if order else dataset


def _one_archive(kind: ImageSet, archives: list[Path], where: str) -> Path:
    official = [path for path in archives if path.name.startswith(kind.archives)]
    if not official and len(archives) > 1:
        raise DataError(
            f"{where} has several archives: {', '.join(map(str, archives[:4]))}; name the one with "
            f"{kind.name}"
        )
    return (official or archives)[0]


def _in_official_order(dataset: Dataset, file: str) -> Dataset:
    places = np.load(Path(__file__).with_name(file), allow_pickle=False)
    train = len(dataset.y_train)
    official = (np.argsort(places[:train]), np.argsort(places[train:]))
    (x, y, x_test, y_test), (first, last) = dataset.parts.values(), official
    return replace(dataset, x_train=x[first], y_train=y[first], x_test=x_test[last],
                   y_test=y_test[last])  # fmt: skip


def canonical_parts(dataset: Dataset) -> Iterator[tuple[str, bytes | memoryview]]:
    """The arrays as bytes, one at a time: what checksums are of."""
    for name, values in dataset.parts.items():
        yield name, np.ascontiguousarray(values).data.cast("B")


def canonical(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The rows in canonical order: by label, then by the SHA-256 of the pixels."""
    digests = [hashlib.sha256(image).digest() for image in np.ascontiguousarray(x)]
    return np.array(sorted(range(len(x)), key=lambda i: (int(y[i]), digests[i])), np.int64)


def _complete(kind: ImageSet, parts: dict[str, Samples], where: str) -> Dataset:
    """The arrays in canonical order, if every class has all its images."""
    if not any(parts.values()):
        raise DataError(
            f"{where} has no images of {kind.name}; expected the official archive, its extracted "
            "files, train/<class>/ and test/<class>/ with images, or an .npz file"
        )
    arrays: dict[str, np.ndarray] = {}
    for part, expected in zip(("train", "test"), kind.per_class, strict=True):
        samples = parts[part]
        labels = np.array([label for _, label, _ in samples], np.int32)
        counts = np.bincount(labels, minlength=len(kind.classes))
        wrong = np.flatnonzero(counts != expected)
        if len(wrong):
            label = int(wrong[0])
            more = f", and {len(wrong) - 1} more classes are wrong" if len(wrong) > 1 else ""
            raise DataError(
                f"{where} is not complete or has other images, too: {part} has {counts[label]} "
                f"images of {kind.classes[label]!r}, expected {expected}{more}"
            )
        x = np.stack([pixels for pixels, _, _ in samples])
        samples.clear()  # a gigabyte
        order = canonical(x, labels)
        arrays |= {f"x_{part}": x[order], f"y_{part}": labels[order]}
    return Dataset(kind.name, **arrays, names=kind.classes)


@contextlib.contextmanager
def _naming(where: str) -> Iterator[None]:
    try:
        yield
    except (DataError, MemoryError):
        raise
    except PermissionError as error:
        raise DataError(f"{error.filename or where} cannot be read: {error.strerror}") from error
    except DAMAGED as error:
        raise DataError(f"{where} is damaged or not an archive: {error}") from error


def _members(source: Path | bytes) -> Iterator[Member]:
    """The files of a folder, zip or tar archive, each read when asked for; hidden ones are not."""
    for name, read in _every_member(source):
        if not PurePosixPath(name).name.startswith("."):
            yield name, read


def _every_member(source: Path | bytes) -> Iterator[Member]:
    if isinstance(source, Path) and source.is_dir():
        for path in sorted(source.rglob("*")):
            if path.is_file():
                yield path.relative_to(source).as_posix(), path.read_bytes
        return
    file: Any = source if isinstance(source, Path) else io.BytesIO(source)
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    yield entry.filename, lambda entry=entry: archive.read(entry)  # type: ignore[misc]
        return
    opened = {"name": file} if isinstance(source, Path) else {"fileobj": file}
    with tarfile.open(**opened) as tar:
        for member in tar:
            if member.isfile():
                yield member.name, lambda member=member: tar.extractfile(member).read()  # type: ignore[misc,union-attr]


def _sort_image(
    kind: ImageSet, place: PurePosixPath, read: Callable[[], bytes], parts: dict[str, Samples],
    unlabelled: Samples,
) -> None:  # fmt: skip
    """Decode an image and put it where its path says."""
    folders = [folder for folder in place.parts[:-1] if folder != "images"]
    # The first match counts: CIFAR-100 has a class `train`.
    depth = next((i for i, folder in enumerate(folders) if folder.lower() in FOLDERS), None)
    if depth is None:
        return
    folder = folders[depth].lower()
    labelled = depth < len(folders) - 1
    if not labelled and folder == "test":  # Tiny ImageNet's test images have no labels
        return
    pixels = _decode(kind, str(place), read())
    if not labelled:
        unlabelled.append((pixels, -1, str(place)))
    else:
        label = _label(kind, folders[-1], str(place))
        parts[FOLDERS[folder]].append((pixels, label, str(place)))


def _label(kind: ImageSet, name: str, where: str) -> int:
    try:
        return kind.classes.index(name)
    except ValueError:
        raise DataError(f"{where}: {kind.name} has no class {name!r}") from None


def _decode(kind: ImageSet, name: str, content: bytes) -> np.ndarray:
    pillow = optional("PIL.Image", "Pillow", f"images of {kind.name}")
    try:
        with pillow.open(io.BytesIO(content)) as image:
            pixels = np.asarray(image.convert("RGB"))
    except (*DAMAGED, pillow.DecompressionBombError) as error:
        raise DataError(f"{name} is damaged: {error}; get it again") from error
    if pixels.shape != (kind.side, kind.side, 3):
        raise DataError(
            f"{name} has {pixels.shape[1]}x{pixels.shape[0]} pixels, expected "
            f"{kind.side}x{kind.side}"
        )
    return pixels


def _from_records(kind: ImageSet, name: str, content: bytes) -> Samples:
    """Records of label bytes and pixels, channel by channel."""
    length = kind.label_bytes + 3 * kind.side**2
    if not content or len(content) % length:
        raise DataError(f"{name} is damaged: {len(content)} bytes are no records of {length}")
    table = np.frombuffer(content, np.uint8).reshape(-1, length)
    return _samples(kind, name, table[:, kind.label_bytes :], table[:, kind.label_bytes - 1])


def _from_pickle(kind: ImageSet, name: str, content: bytes) -> Samples:
    """The official Python files. They are pickles: tokens are read, nothing is unpickled."""
    size = 3 * kind.side**2
    pixels, labels, reading = b"", bytearray(), False
    try:
        for code, found, _ in pickletools.genops(content):
            argument: Any = found
            if code.name in ("BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES",
                             "BINUNICODE", "SHORT_BINUNICODE"):  # fmt: skip
                text = argument if isinstance(argument, str) else argument.decode("latin-1")
                if len(text) >= size:
                    pixels = text.encode("latin-1")
                reading = text in ("fine_labels", "labels")
            elif reading and code.name in ("BININT", "BININT1", "BININT2"):
                labels.append(argument)
    except DAMAGED as error:
        raise DataError(f"{name} is damaged: {error}") from error
    if not pixels or len(pixels) != size * len(labels):
        raise DataError(
            f"{name} is damaged or not an official file: {len(labels)} labels and "
            f"{len(pixels)} bytes of pixels"
        )
    table = np.frombuffer(pixels, np.uint8).reshape(-1, size)
    return _samples(kind, name, table, np.frombuffer(bytes(labels), np.uint8))


def _samples(kind: ImageSet, name: str, pixels: np.ndarray, labels: np.ndarray) -> Samples:
    if labels.max() >= len(kind.classes):
        raise DataError(f"{name} has label {labels.max()}; {kind.name} has {len(kind.classes)}")
    images = pixels.reshape(-1, 3, kind.side, kind.side).transpose(0, 2, 3, 1)
    images = np.ascontiguousarray(images)
    return [(image, int(label), name) for image, label in zip(images, labels, strict=True)]


def _from_npz(kind: ImageSet, path: Path) -> dict[str, Samples]:
    """Arrays x_train, y_train, x_test and y_test; labels are numbers or names of classes."""
    from elephant_nn.data.loading import from_npz

    mine = from_npz(path)
    shape = (kind.side, kind.side, 3)
    if mine.x_train.shape[1:] != shape or mine.x_train.dtype != np.uint8:
        raise DataError(
            f"{path}: x_train holds {mine.x_train.dtype} of shape {mine.x_train.shape[1:]}, "
            f"expected uint8 of shape {shape}"
        )
    if mine.classes != len(kind.classes):
        raise DataError(f"{path} has {mine.classes} classes, expected {len(kind.classes)}")
    both = (("train", mine.x_train, mine.y_train), ("test", mine.x_test, mine.y_test))
    return {
        part: [(image, int(label), str(path)) for image, label in zip(x, y, strict=True)]
        for part, x, y in both
    }
