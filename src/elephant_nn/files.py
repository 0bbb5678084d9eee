"""Files that are written whole or not at all."""

import errno
import os
import shutil
import tempfile
import time
from pathlib import Path


class StorageError(Exception):
    """A file or folder could not be used; the message is a sentence for people."""


class DataError(Exception):
    """A data set could not be had; the message says why and what to try next."""


class StoreWarning(UserWarning):
    """A file of the store was unreadable and set aside."""


def make_folder(folder: Path, otherwise: str = "choose another with --out") -> Path:
    """Make a folder that can be written to, or say in one sentence why not, and what to do."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise StorageError(
            f"cannot write to {folder}: {error.strerror or error}; {otherwise}"
        ) from error
    return folder


def write_whole(path: Path, content: bytes) -> Path:
    """Write beside, flush, rename: readers see all of the file or none, even after a kill."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        beside = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.chmod(0o644)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; make room or choose another folder"
        ) from error
    return path


def set_aside(
    path: Path, reason: str, then: str = "its runs will be done again when asked for"
) -> str:
    """Move an unreadable file out of the way, beside it, and say so in one sentence."""
    try:
        shelf = path.parent / "set-aside"
        shelf.mkdir(exist_ok=True)
        path.replace(shelf / path.name)
        return f"{path.name} {reason}; moved to {shelf}, {then}"
    except OSError as error:
        return f"{path} {reason}, and could not be moved away ({error.strerror}); it is passed over"


def remove_leftovers(
    folder: Path, pattern: str = ".*.part", older_than_seconds: float = 3600.0
) -> None:
    """Remove what killed writers left behind; young ones may belong to a writer at work."""
    for path in folder.glob(pattern):
        try:
            if time.time() - path.stat().st_mtime > older_than_seconds:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        except OSError:
            continue
