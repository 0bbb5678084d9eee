"""Fetch and verify known data sets, and keep them in the cache as memory-mapped arrays.

A data set is a folder with one `.npy` file per array and `stamp.json`: the verified checksums, and
the size and modification time of each file. Loading compares these and reads no array.
"""

import contextlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from elephant_nn import files
from elephant_nn.data.dataset import PARTS, Dataset
from elephant_nn.data.formats import Files, checksums
from elephant_nn.data.sources import DAMAGED, Address, Folder, Notice, Source
from elephant_nn.files import DataError, StorageError, StoreWarning

Decode = Callable[[str, Files], Dataset]
STAMP = "stamp.json"
STAMP_FORMAT = 1


@dataclass(frozen=True)
class Known:
    """A data set that can be fetched.

    `sources` are tried in order. Whatever the source, `encode` converts the decoded arrays back to
    the official files, which must have the checksums `sha256`: all sources give the same arrays.
    The user's copy is read by `from_path`, or by `from_local` from a folder with `local_files`.
    """

    name: str
    title: str
    sources: tuple[tuple[Source, Decode], ...]
    encode: Callable[[Dataset], Iterable[tuple[str, bytes | memoryview]]]
    sha256: Mapping[str, str]
    names: tuple[str, ...] = ()
    advice: str = ""
    local_files: tuple[str, ...] = ()
    from_local: Decode | None = None
    from_path: Callable[[Path, Notice], Dataset] | None = None


def cache_folder() -> Path:
    """`$ELEPHANT_NN_CACHE`, or `elephant-nn` in the user's cache folder."""
    own = os.environ.get("ELEPHANT_NN_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "elephant-nn"


def cache_path(name: str) -> Path:
    """The folder of a data set in the cache, whether it exists or not."""
    return cache_folder() / name


def is_cached(name: str) -> bool:
    """Whether the cache has the data set; its files are not examined."""
    return cache_path(name).exists()


def fetch(known: Known, folder: Path | None = None, notice: Notice = lambda text: None) -> Dataset:
    """Fetch a data set from the first source that has it, verify it, and write it to the cache.

    With `folder`, only the files in that folder are used, unpacked or as distributed (gzipped, or
    in one archive); image data sets may also be class folders, an archive or an `.npz` file.
    Nothing is cached unless every checksum matches.
    """
    sources = known.sources
    if folder is not None and known.from_path is not None:
        return _from_path(known, known.from_path, folder, notice)
    if folder is not None and known.from_local is not None:
        distributed = {s.names: decode for s, decode in sources if isinstance(s, Address)}
        forms = {known.local_files: known.from_local, **distributed}
        sources = tuple((Folder(folder, names), decode) for names, decode in forms.items())
    _make_cache()
    failures = []
    for source, decode in sources:
        notice(f"{known.name}: trying {source}")
        try:
            dataset = decode(known.name, source.get(notice))
            verify(known, dataset)
        except DataError as error:
            failures.append(f"{source}: {error}")
        except DAMAGED as error:
            failures.append(f"{source}: its files cannot be decoded ({error})")
        else:
            _write(known, dataset)
            return cached(known) or replace(dataset, names=known.names)
    tried = "\n  ".join(dict.fromkeys(failures))
    names = ", ".join(known.local_files)
    by_hand = f"put {names} into a folder and run: elephant data fetch {known.name} --from FOLDER"
    if known.from_path is not None:
        by_hand = (
            "get it as an archive, extracted files, class folders of images or an .npz file, and "
            f"run: elephant data fetch {known.name} --from PATH"
        )
    advice = f"{known.advice}; or {by_hand}" if known.advice and folder is None else by_hand
    raise DataError(f"{known.name} could not be fetched:\n  {tried}\ntry next: {advice}")


def _make_cache() -> None:
    advice = "set $ELEPHANT_NN_CACHE to a folder that can be written to"
    files.remove_leftovers(files.make_folder(cache_folder(), advice))


def _from_path(
    known: Known, read: Callable[[Path, Notice], Dataset], path: Path, notice: Notice
) -> Dataset:
    if not path.exists():
        raise DataError(f"{known.name}: there is no file or folder {path}")
    _make_cache()
    dataset = read(path, notice)
    try:
        verify(known, dataset)
    except DataError as error:
        raise DataError(
            f"{known.name}: {path} is complete, but its pixels are not the official ones ({error})"
        ) from error
    _write(known, dataset)
    return cached(known) or dataset


def verify(known: Known, dataset: Dataset) -> None:
    """Raise a DataError unless the arrays, in the official format, have the known checksums."""
    for part, values in dataset.parts.items():
        expected = np.uint8 if part.startswith("x") else np.int32
        if values.dtype != expected or values.min() < 0 or values.max() > 255:
            raise DataError(f"wrong content: {part} has a wrong type or range")  # not in the files
    found = checksums(known.encode(dataset))
    wrong = [name for name, sha in known.sha256.items() if found.get(name) != sha]
    if wrong:
        raise DataError(f"wrong content: the checksum of {', '.join(wrong)} does not match")


def cached(known: Known, always_verify: bool = False) -> Dataset | None:
    """The data set from the cache as memory-mapped, read-only arrays; None if it is not there.

    Files with the recorded size and modification time are trusted. If only the time differs, the
    content is verified once. A damaged data set is set aside with a `StoreWarning`.
    """
    path = cache_path(known.name)
    try:
        return _read(known, path, always_verify) if path.exists() else None
    except (FileNotFoundError, NotADirectoryError):
        reason = "is incomplete"
    except OSError as error:  # it may be intact, and other users may be able to read it
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from error
    except MemoryError:  # says nothing about the files
        raise
    except (*DAMAGED, DataError) as error:
        reason = f"is damaged ({error})"
    warnings.warn(files.set_aside(path, reason, "fetch it again"), StoreWarning, stacklevel=2)
    return None


def check(known: Known) -> Dataset | None:
    """Like `cached`, but always verify the content."""
    return cached(known, always_verify=True)


def _read(known: Known, path: Path, always_verify: bool) -> Dataset:
    recorded, current = json.loads((path / STAMP).read_bytes()), _stamp(known, path)
    for key in ("format", "sha256", "size"):
        if recorded[key] != current[key]:
            raise DataError(f"{key} is not as recorded in {STAMP}")
    # Like np.load with mmap_mode="r", but it accepts only .npy files and never unpickles.
    arrays = {part: np.lib.format.open_memmap(path / f"{part}.npy", mode="r") for part in PARTS}
    dataset = Dataset(known.name, **arrays, names=known.names)
    if always_verify or recorded != current:
        verify(known, dataset)
    if recorded != current:
        with contextlib.suppress(StorageError):  # a read-only cache is verified at every load
            files.remove_leftovers(path)
            files.write_whole(path / STAMP, json.dumps(current, indent=2).encode())
    return dataset


def _write(known: Known, dataset: Dataset) -> None:
    def fill(folder: Path) -> None:
        for part, values in dataset.parts.items():
            np.save(folder / f"{part}.npy", values, allow_pickle=False)
        (folder / STAMP).write_text(json.dumps(_stamp(known, folder), indent=2))

    # An intact data set stays, so that processes that fetch at the same time do no harm.
    path = cache_path(known.name)
    if not files.write_folder(path, fill) and check(known) is None:
        files.write_folder(path, fill)


def _stamp(known: Known, folder: Path) -> dict[str, Any]:
    arrays = {f"{part}.npy": (folder / f"{part}.npy").stat() for part in PARTS}
    return {
        "format": STAMP_FORMAT,
        "sha256": dict(known.sha256),
        "size": {name: file.st_size for name, file in arrays.items()},
        "mtime_ns": {name: file.st_mtime_ns for name, file in arrays.items()},
    }
