"""Embed a data set with a frozen encoder: resize, encode, project, in blocks that survive a kill.

An embedding is one `.npz` file: x_train, y_train, x_test, y_test, the projection if there is one,
and `about`, a JSON text with the encoder, the SHA-256 of its weights, the image size and the data.
"""

import hashlib
import io
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from elephant_nn.data.catalog import CATALOG, cache_folder, cached
from elephant_nn.data.dataset import Dataset
from elephant_nn.data.encoders import BATCH, Encoder, Features, Images, load_encoder
from elephant_nn.data.formats import optional
from elephant_nn.data.sources import DAMAGED, Notice
from elephant_nn.files import DataError, make_folder, remove_leftovers, write_whole

BLOCK = 32 * BATCH
"""Images per block: about ten seconds of work on two cores."""

Report = Callable[[int, int], None]


def embedding_folder(dataset: str) -> Path:
    """Where the embeddings of a data set are kept, whether there are any or not."""
    return cache_folder() / "embeddings" / dataset


def embedding_path(dataset: str, embedding: str) -> Path:
    return embedding_folder(dataset) / f"{embedding}.npz"


def embedding_name(encoder: Encoder, image_size: int, features: int) -> str:
    """Says how an embedding was made: `efficientnet-lite0-128px-256`."""
    parts = (encoder.name, f"{image_size}px" if image_size else "", str(features or ""))
    return "-".join(part for part in parts if part)


def make_embedding(dataset: str, name: str, notice: Notice) -> Path:
    """Make an embedding of a data set by its name, with an encoder whose weights are in a package.

    Others need `elephant data embed`.
    """
    from elephant_nn.data.loading import load

    parts = re.fullmatch(r"(efficientnet-lite0)-(\d+)px(?:-(\d+))?", name)
    if parts is None:
        raise DataError(
            f"there are no embeddings {name!r} of {dataset}; to make some, run: elephant data "
            f"embed {dataset} --encoder ENCODER, or FILE.npz with embeddings of your own"
        )
    encoder, side, features = load_encoder(parts[1]), int(parts[2]), int(parts[3] or 0)
    report = reporter(f"{dataset}, {name}", notice)
    path = embedding_path(dataset, name)
    return embed(load(dataset), encoder, path, image_size=side, features=features, report=report)


def reporter(label: str, notice: Notice, every_seconds: float = 10.0) -> Report:
    """Lines with the time left."""
    began, first, last = time.monotonic(), None, -every_seconds

    def report(done: int, total: int) -> None:
        nonlocal first, last
        elapsed = time.monotonic() - began
        if first is None:  # finished blocks took no time
            first = done
        if elapsed - last >= every_seconds or done == total:
            last = elapsed
            rest = elapsed / (done - first) * (total - done) if done > first else 0.0
            left = f", about {rest:.0f} s left" if rest else ""
            notice(f"{label}: {done:,} of {total:,} images, {elapsed:.0f} s{left}")

    return report


def embed(
    dataset: Dataset, encoder: Encoder, path: Path, *, image_size: int | None = None,
    features: int = 0, seed: int = 0, report: Report = lambda done, total: None,
) -> Path:  # fmt: skip
    """Write the embeddings of a data set to one `.npz` file, as a whole or not at all.

    Args:
        image_size: the side to which images are resized (bicubic); default: the encoder's.
        features: reduce to this many numbers by a Gaussian random projection, which knows nothing
            of the data; 0: all of the encoder's.
        seed: of the projection.
        report: called with the numbers of finished and of all images.

    If the file exists and was made in the same way from the same data, it stays; any other file is
    an error. Finished blocks are kept in a folder beside `path` until the file is written, so that
    a killed call continues where it stopped. The features do not depend on where that was.
    """
    side = encoder.image_size if image_size is None else image_size
    _check(dataset, side, features)
    about = _describe(dataset, encoder, side, features, seed)
    if path.exists():
        if path.is_file() and about_embedding(path) == about:
            return path
        raise DataError(f"{path} exists and holds something else; remove it, or choose another")
    make_folder(path.parent, "choose another folder")
    remove_leftovers(path.parent)
    remove_leftovers(path.parent, ".*.blocks", older_than_seconds=30 * 24 * 3600)
    identity = hashlib.sha256(json.dumps([about, BATCH, BLOCK]).encode()).hexdigest()
    scratch = make_folder(path.with_name(f".{path.name}.{identity[:12]}.blocks"))
    width = encoder.encode(_resized(dataset.x_test[:1], side)).shape[1]
    projection = make_projection(width, features, seed) if features else None
    total = len(dataset.x_train) + len(dataset.x_test)
    x = np.empty((total, features or width), np.float32)
    todo, first = [], 0
    for part, images in (("train", dataset.x_train), ("test", dataset.x_test)):
        for start in range(0, len(images), BLOCK):
            some, file = images[start : start + BLOCK], scratch / f"{part}-{start:08}.npy"
            rows = x[first : first + len(some)]
            first += len(some)
            if not _read_block(file, rows):
                todo.append((some, file, rows))
    done = total - sum(len(rows) for *_, rows in todo)
    report(done, total)
    for some, file, rows in todo:
        block = np.concatenate(list(_encoded(encoder, some, side)))
        rows[:] = block if projection is None else block @ projection
        if not np.isfinite(rows).all():
            raise DataError(f"{encoder.name} gave NaN or infinity for some images")
        write_whole(file, _npy(rows))
        done += len(rows)
        report(done, total)
    size = len(dataset.x_train)
    arrays = {**dataset.parts, "x_train": x[:size], "x_test": x[size:]}
    if projection is not None:
        arrays["projection"] = projection
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, about=np.array(json.dumps(about)), **arrays)
    write_whole(path, content.getbuffer())
    shutil.rmtree(scratch, ignore_errors=True)
    return path


def import_embedding(dataset: str, path: Path) -> Path:
    """Keep embeddings of the user's own, an `.npz` file, under the name of the file.

    The name has a digest of the content, so that results say what they were learned from. Where the
    images are in the cache, the labels must be theirs, up to the order of samples.
    """
    from elephant_nn.data.loading import from_npz

    mine = from_npz(path)
    if mine.x_train.ndim != 2:
        raise DataError(
            f"{path}: x_train has samples of shape {mine.x_train.shape[1:]}, expected one row of "
            "features per image"
        )
    images = cached(CATALOG[dataset]) if dataset in CATALOG else None
    for part in ("y_train", "y_test") if images else ():
        ours, theirs = (np.bincount(data.parts[part]) for data in (mine, images) if data)
        if ours.tolist() != theirs.tolist():
            raise DataError(
                f"{path}: {part} has {ours.sum()} samples in {len(ours)} classes; {dataset} has "
                f"{theirs.sum()} in {len(theirs)}, or other numbers per class"
            )
    content = path.read_bytes()
    name = f"{path.stem}-{hashlib.sha256(content).hexdigest()[:8]}"
    return write_whole(embedding_path(dataset, name), content)


def _describe(
    dataset: Dataset, encoder: Encoder, side: int, features: int, seed: int
) -> dict[str, Any]:
    digest = hashlib.sha256()
    for values in dataset.parts.values():
        digest.update(np.ascontiguousarray(values).data)
    return {
        "data": dataset.name, "samples": [len(dataset.x_train), len(dataset.x_test)],
        "data_sha256": digest.hexdigest(), "encoder": encoder.name,
        "weights_sha256": encoder.sha256, "image_size": side, "features": features,
        "projection_seed": seed if features else None,
    }  # fmt: skip


def about_embedding(path: Path) -> dict[str, Any]:
    """How an embedding was made; empty for a user's own file without that."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return json.loads(str(archive["about"])) if "about" in archive else {}
    except DAMAGED as error:
        raise DataError(f"{path} is not an .npz file of plain arrays: {error}") from error


def make_projection(width: int, features: int, seed: int) -> np.ndarray:
    """A Gaussian matrix that keeps lengths of features on average."""
    if features >= width:
        raise DataError(
            f"features: the encoder gives {width} numbers per image; choose fewer, or leave it out "
            f"to keep all, got {features}"
        )
    values = np.random.default_rng(seed).standard_normal((width, features))
    return (values / np.sqrt(features)).astype(np.float32)


def _encoded(encoder: Encoder, images: np.ndarray, side: int) -> Iterator[Features]:
    for start in range(0, len(images), BATCH):
        yield encoder.encode(_resized(images[start : start + BATCH], side))


def _resized(images: np.ndarray, side: int) -> Images:
    """RGB images of this side; grey ones get three equal channels."""
    colour = np.repeat(images, 3, axis=-1) if images.shape[-1] == 1 else np.array(images)
    if not side or images.shape[1:3] == (side, side):
        return colour
    pillow = optional("PIL.Image", "Pillow", "resizing images")
    resize = lambda image: pillow.fromarray(image).resize((side, side), pillow.Resampling.BICUBIC)
    return np.stack([np.asarray(resize(image)) for image in colour])


def _check(dataset: Dataset, side: int, features: int) -> None:
    x = dataset.x_train
    if x.dtype != np.uint8 or x.ndim != 4 or x.shape[-1] not in (1, 3):
        raise DataError(
            f"{dataset.name}: an encoder takes images of type uint8 with one or three channels, "
            f"got {x.dtype} of shape {x.shape[1:]}"
        )
    if side < 0 or 0 < side < 8 or side > 4096:
        raise DataError(f"image_size must be between 8 and 4096, or 0 as stored, got {side}")
    if features < 0:
        raise DataError(f"features must be 1 or more, or 0 for all, got {features}")


def _npy(block: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, block, allow_pickle=False)
    return content.getvalue()


def _read_block(file: Path, into: np.ndarray) -> bool:
    """Whether a finished block was there, and not damaged."""
    try:
        block = np.load(file, allow_pickle=False)
    except DAMAGED:
        return False
    if block.shape != into.shape:
        return False
    into[:] = block
    return True
