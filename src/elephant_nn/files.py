"""Write files and folders atomically: after a crash they are complete or absent."""

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path


class StorageError(Exception):
    """A file or folder cannot be read or written; the message is one sentence for the user."""


class DataError(Exception):
    """A data set is missing, damaged or unsuitable; the message says why and what to do."""


class ClusterError(Exception):
    """A cluster cannot be used, or is lost; the message is one sentence for the user."""


class StoreWarning(UserWarning):
    """A stored file was damaged and has been set aside."""


@contextlib.contextmanager
def _writing(what: str, advice: str = "free disk space or choose another folder") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write {what}: {error.strerror or error}; {advice}") from error


def make_folder(folder: Path, otherwise: str = "choose another with --out") -> Path:
    """Create a writable folder; the error says why it failed and what to do `otherwise`."""
    with _writing(f"to {folder}", otherwise):
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return folder


def write_whole(path: Path, content: bytes | memoryview) -> Path:
    """Write a file atomically: to a temporary sibling, flushed to disk, then renamed."""
    with _writing(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    return path


def write_folder(path: Path, fill: Callable[[Path], None]) -> bool:
    """Write a folder of files atomically; return False, and change nothing, if `path` exists.

    `fill` writes the files to a temporary folder, which is flushed to disk and then renamed.
    """
    with _writing(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(".part", f".{path.name}.", path.parent) as temporary:
            folder = Path(temporary) / path.name
            folder.mkdir()
            fill(folder)
            for written in folder.iterdir():
                with written.open("rb+") as file:
                    os.fsync(file.fileno())
            try:
                folder.rename(path)
            except OSError:
                if not path.exists():
                    raise
                return False
    return True


def set_aside(path: Path, reason: str, then: str = "its runs are repeated when needed") -> str:
    """Move a damaged file or folder to `set-aside` next to it; return a sentence about it."""
    folder = path.parent / "set-aside"
    try:
        folder.mkdir(exist_ok=True)
        if (folder / path.name).is_dir():
            shutil.rmtree(folder / path.name)
        path.replace(folder / path.name)
        return f"{path.name} {reason}; moved to {folder}, {then}"
    except OSError as error:
        return f"{path} {reason}, and could not be moved ({error.strerror}); it is ignored"


def remove_leftovers(
    folder: Path, pattern: str = ".*.part", older_than_seconds: float = 3600.0
) -> None:
    """Remove temporary files of killed processes; recent ones may still be in use."""
    for path in folder.glob(pattern):
        try:
            if time.time() - path.stat().st_mtime > older_than_seconds:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        except OSError:
            continue
