"""Small data sets in the official formats, for the tests of this folder."""

import dataclasses
import gzip
import io
import itertools
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np

from elephant_nn.data.catalog import CATALOG
from elephant_nn.data.dataset import Dataset
from elephant_nn.data.formats import checksums, from_idx, to_idx

RNG = np.random.default_rng(0)
SMALL = Dataset(
    "small",
    RNG.integers(0, 256, (6, 28, 28, 1), np.uint8),
    np.array([0, 1, 0, 1, 2, 2], np.int32),
    RNG.integers(0, 256, (3, 28, 28, 1), np.uint8),
    np.array([2, 1, 0], np.int32),
)
FILES = dict(to_idx(SMALL))
GZ = {f"{name}.gz": gzip.compress(content) for name, content in FILES.items()}
CIFAR = Dataset(
    "cifar",
    RNG.integers(0, 256, (10, 32, 32, 3), np.uint8),
    np.arange(10, dtype=np.int32),
    RNG.integers(0, 256, (2, 32, 32, 3), np.uint8),
    np.array([3, 4], np.int32),
)


def known(*sources, **changes):
    return dataclasses.replace(
        CATALOG["mnist"],
        name="small",
        sources=tuple((source, from_idx) for source in sources),
        sha256=checksums(FILES.items()),
        **changes,
    )


def save(folder, files=FILES):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def assert_same(one, other):
    for name, part in one.parts.items():
        np.testing.assert_array_equal(part, other.parts[name])
        assert part.dtype == other.parts[name].dtype


def archived(members, mode="w:gz"):
    """A tar of these files, as bytes."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode=mode) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def strips():
    """CIFAR as in the npm package."""
    from PIL import Image

    def strip(images):
        image = io.BytesIO()
        Image.fromarray(images.reshape(len(images), 1024, 3)).save(image, "png")
        return image.getvalue()

    files = {f"data_batch_{i + 1}.png": strip(CIFAR.x_train[2 * i : 2 * i + 2]) for i in range(5)}
    files["test_batch.png"] = strip(CIFAR.x_test)
    files["train_lables.json"] = json.dumps(CIFAR.y_train.tolist()).encode()
    files["test_lables.json"] = json.dumps(CIFAR.y_test.tolist()).encode()
    return files


def flips(content, places, bits=(255,)):
    """The same bytes, each time with some bits of one byte inverted."""
    for place, mask in itertools.product(places, bits):
        yield content[:place] + bytes([content[place] ^ mask]) + content[place + 1 :]


def start(script, *arguments):
    """Start a Python process that can import this module."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(script, *arguments):
    process = start(script, *arguments)
    output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors
