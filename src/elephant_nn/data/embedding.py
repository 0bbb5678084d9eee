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

from elephant_nn.data.cache import cache_folder
from elephant_nn.data.dataset import PARTS, Dataset
from elephant_nn.data.encoders import BATCH, Encoder, Features, Images, load_encoder
from elephant_nn.data.formats import optional
from elephant_nn.data.sources import DAMAGED, Notice
from elephant_nn.files import DataError, make_folder, write_whole

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

    Finished blocks are kept in a folder beside `path` until the file is written, so that a killed
    call continues where it stopped. The features do not depend on where that was.
    """
    side = encoder.image_size if image_size is None else image_size
    _check(dataset, side, features)
    samples = [len(dataset.x_train), len(dataset.x_test)]
    about = {
        "data": dataset.name, "samples": samples,
        "encoder": encoder.name, "weights_sha256": encoder.sha256, "image_size": side,
        "features": features, "projection_seed": seed if features else None,
    }  # fmt: skip
    identity = hashlib.sha256(json.dumps([about, _sample(dataset), BATCH, BLOCK]).encode())
    scratch = path.with_name(f".{path.name}.{identity.hexdigest()[:12]}.blocks")
    make_folder(scratch, "set $ELEPHANT_NN_CACHE to a folder that can be written to")
    plan = [
        (images[start : start + BLOCK], scratch / f"{part}-{start:08}.npy")
        for part, images in (("train", dataset.x_train), ("test", dataset.x_test))
        for start in range(0, len(images), BLOCK)
    ]
    blocks = {file: _read_block(file, len(images)) for images, file in plan}
    done = sum(len(block) for block in blocks.values() if block is not None)
    report(done, sum(samples))
    width = encoder.encode(_resized(dataset.x_test[:1], side)).shape[1]
    projection = make_projection(width, features, seed) if features else None
    for images, file in plan:
        if blocks[file] is None:
            block = np.concatenate(list(_encoded(encoder, images, side)))
            block = block if projection is None else block @ projection
            _check_block(encoder, block)
            write_whole(file, _npy(block))
            blocks[file] = block
            done += len(images)
            report(done, sum(samples))
    x = np.concatenate([block for block in blocks.values() if block is not None])
    arrays = {**dataset.parts, "x_train": x[: samples[0]], "x_test": x[samples[0] :]}
    if dataset.names:
        arrays["names"] = np.array([str(name) for name in dataset.names])
    if projection is not None:
        arrays["projection"] = projection
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, about=np.array(json.dumps(about)), **arrays)
    write_whole(path, content.getvalue())
    shutil.rmtree(scratch, ignore_errors=True)
    return path


def import_embedding(dataset: str, path: Path) -> Path:
    """Keep embeddings of the user's own, an `.npz` file, under the name of the file.

    The name has a digest of the content, so that results say what they were learned from.
    """
    from elephant_nn.data.loading import from_npz, load

    mine, images = from_npz(path), load(dataset)
    if mine.classes != images.classes:
        raise DataError(f"{path} has {mine.classes} classes, but {dataset} has {images.classes}")
    if mine.x_train.ndim != 2:
        raise DataError(
            f"{path}: x_train has samples of shape {mine.x_train.shape[1:]}, expected one row of "
            "features per image"
        )
    content = path.read_bytes()
    name = f"{path.stem}-{hashlib.sha256(content).hexdigest()[:8]}"
    return write_whole(embedding_path(dataset, name), content)


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


def _check_block(encoder: Encoder, block: np.ndarray) -> None:
    if not np.isfinite(block).all():
        raise DataError(f"{encoder.name} gave NaN or infinity for some images")


def _sample(dataset: Dataset) -> str:
    """A digest of the labels and of some pixels: blocks of other data must not be continued."""
    digest = hashlib.sha256()
    for name in PARTS:
        values = dataset.parts[name]
        some = values if name[0] == "y" else values[:: max(1, len(values) // 100)]
        digest.update(np.ascontiguousarray(some).tobytes())
    return digest.hexdigest()


def _npy(block: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, block, allow_pickle=False)
    return content.getvalue()


def _read_block(file: Path, rows: int) -> np.ndarray | None:
    """A finished block; None if it is not there or damaged."""
    try:
        block = np.load(file, allow_pickle=False)
    except DAMAGED:
        return None
    return block if block.ndim == 2 and len(block) == rows else None
