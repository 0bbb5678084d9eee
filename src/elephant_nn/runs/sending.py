"""Send a data set from the cache of this machine to that of a worker, in parts, with checksums."""

import hashlib
import shutil
from pathlib import Path

from distributed import Client

from elephant_nn.data.cache import cache_folder, cache_path
from elephant_nn.data.embedding import embedding_path
from elephant_nn.data.loading import has_data

PART = 1 << 25


def send_data(client: Client, worker: str, name: str, embedding: str) -> None:
    """Send a data set, or an embedding of it, unless the worker's cache has it by now.

    Parts go through the scheduler one after another, so that it never holds a whole data set.
    """
    here = lambda function, *arguments: client.run(function, *arguments, workers=[worker])[worker]
    if here(has_data, name, embedding):
        return
    source = embedding_path(name, embedding) if embedding else cache_path(name)
    what = str(source.relative_to(cache_folder()))
    sums = {}
    for path in sorted(source.iterdir()) if source.is_dir() else [source]:
        if path.name.startswith("."):
            continue
        file, digest = str(path.relative_to(cache_folder())), hashlib.sha256()
        with path.open("rb") as content:
            first = True
            while (part := content.read(PART)) or first:
                here(receive, client.id, file, part, first)
                digest.update(part)
                first = False
        sums[file] = digest.hexdigest()
    here(accept, client.id, what, sums)


def receive(sender: str, file: str, part: bytes, first: bool) -> None:
    path = _arrivals(sender) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb" if first else "ab") as content:
        content.write(part)


def accept(sender: str, what: str, sums: dict[str, str]) -> None:
    """Put what has arrived into the cache, if it is complete."""
    arrived, place = _arrivals(sender), cache_folder() / what
    try:
        for file, expected in sums.items():
            with (arrived / file).open("rb") as content:
                if hashlib.file_digest(content, "sha256").hexdigest() != expected:
                    raise OSError(f"the checksum of {file} does not match")
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            (arrived / what).rename(place)
    finally:
        shutil.rmtree(arrived, ignore_errors=True)


def _arrivals(sender: str) -> Path:
    name = hashlib.sha256(sender.encode()).hexdigest()[:16]
    return cache_folder() / f".arriving-{name}.part"
