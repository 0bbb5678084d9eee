"""Networks for images: one convolution, and ConvMixer. Batches have shape (n, height, width, c).

Convolutions are matrix products and sums of shifted images: XLA's own convolutions are two to
three times slower on CPUs inside a compiled loop, where this package runs its networks.
"""

from collections.abc import Callable, Iterator
from functools import partial, reduce
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Key

from elephant_nn.nn.activations import fan_in_uniform, relu
from elephant_nn.nn.networks import Network, Params, mlp

Shape = tuple[int, int, int]


def cnn(
    shape: Shape, neurons: int, classes: int, activation: Callable[[Array], Array] = relu,
    *, sigma_bias: ArrayLike = 0.0, filters: int = 64,
) -> Network:  # fmt: skip
    """Convolution 3x3 with ReLU, 2x2 max pooling, a dense layer of `neurons`, an output layer.

    `activation` and `sigma_bias` apply to the dense layer: with `elephant_activation(a, 4)` this is
    the paper's ECNN. The output layer has no bias.

    Args:
        shape: (height, width, channels) of an image; the pooling drops an odd last row or
            column.
        filters: their number; the paper does not state it, later code uses 64.
    """
    if len(shape) != 3 or min(shape) < 1 or min(shape[:2]) < 2:
        raise ValueError(f"cnn: shape must be (height, width, channels), 2x2 or more, got {shape}")
    height, width, channels = shape
    dense = mlp(((height // 2) * (width // 2) * filters, neurons, classes), activation,
                sigma_bias=sigma_bias)  # fmt: skip
    weight = fan_in_uniform()

    def init(key: Key[Array, ""]) -> Params:
        conv_key, dense_key = jax.random.split(key)
        kernel = weight(conv_key, (9 * channels, filters), jnp.float32)
        return {"conv": {"w": kernel, "b": jnp.zeros(filters)}, "dense": dense.init(dense_key)}

    def features(params: Params, x: Array) -> Array:
        _check_images(x, shape, "cnn")
        conv = params["conv"]
        # Bias and ReLU are monotone, so they come after the pooling, on a quarter of the values.
        pooled = relu(_pooled_convolution(x, conv["w"]) + conv["b"])
        return dense.features(params["dense"], pooled)

    return Network(init, features, lambda params, h: dense.head(params["dense"], h))


def _check_images(x: Array, shape: Shape, name: str) -> None:
    if x.shape[1:] != tuple(shape):
        raise ValueError(
            f"{name}: made for images of shape {tuple(shape)} (height, width, channels), got "
            f"{x.shape[1:]}"
        )


def _pooled_convolution(
    x: Float[Array, "n h w c"], kernel: Float[Array, "p f"]
) -> Float[Array, "n h2 w2 f"]:
    """2x2 max pooling of the 3x3 convolution of x, borders padded with zeros."""
    n, height, width, channels = x.shape
    rows, columns = height // 2, width // 2
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    every_second = lambda i, j: padded[:, i : i + 2 * rows - 1 : 2, j : j + 2 * columns - 1 : 2]
    window = {(i, j): every_second(i, j) for i, j in product(range(4), range(4))}

    def corner(di: int, dj: int) -> Array:
        patches = [window[di + i, dj + j] for i, j in product(range(3), range(3))]
        stacked = jnp.concatenate(patches, axis=-1).reshape(-1, 9 * channels)
        return stacked @ kernel

    upper = jnp.maximum(corner(0, 0), corner(0, 1))
    lower = jnp.maximum(corner(1, 0), corner(1, 1))
    return jnp.maximum(upper, lower).reshape(n, rows, columns, -1)


def convmixer(
    shape: Shape, neurons: int, classes: int, activation: Callable[[Array], Array] = relu,
    *, sigma_bias: ArrayLike = 0.0, width: int = 256, depth: int = 8, patch: int = 2,
    kernel: int = 5, momentum: float = 0.9,
) -> Network:  # fmt: skip
    """ConvMixer (Trockman and Kolter, 2022), then a dense layer of `neurons` and the output layer.

    Patches of the image are embedded in `width` channels. Each of `depth` blocks mixes positions (a
    depthwise `kernel` x `kernel` convolution, added to its input), then channels, each with GELU
    and batch normalisation. The average over positions goes to the dense layer. The paper does not
    say where its 1K or 10K neurons are; we put them into the dense layer, with `activation`.

    Training normalises a batch by its own mean and variance. Prediction uses running averages,
    which are part of the parameters; every training batch updates them with weight 1 - `momentum`.

    Only reverse-mode gradients exist (`jax.grad`, `jax.vjp`), so `ntk` raises an error.
    """
    if len(shape) != 3 or min(shape) < 1:
        raise ValueError(f"convmixer: shape must be (height, width, channels), got {shape}")
    height, columns, channels = shape
    if patch < 1 or height % patch or columns % patch:
        raise ValueError(f"convmixer: patches of {patch} do not tile images of shape {shape}")
    dense = mlp((width, neurons, classes), activation, sigma_bias=sigma_bias)
    weight = fan_in_uniform()
    sizes = [("embed", patch * patch * channels, width)]
    for i in range(depth):
        sizes += [(f"depthwise{i}", kernel * kernel, width), (f"pointwise{i}", width, width)]

    def init(key: Key[Array, ""]) -> Params:
        layers = {}
        for i, (name, n_in, n_out) in enumerate(sizes):
            layers[name] = {
                "w": weight(jax.random.fold_in(key, i), (n_in, n_out), jnp.float32),
                "b": jnp.zeros(n_out), "scale": jnp.ones(n_out), "shift": jnp.zeros(n_out),
                "running": {"mean": jnp.zeros(n_out), "variance": jnp.ones(n_out)},
            }  # fmt: skip
        return {"layers": layers, "dense": dense.init(jax.random.fold_in(key, len(sizes)))}

    def forward(params: Params, x: Array, observing: bool) -> tuple[Array, Params]:
        _check_images(x, shape, "convmixer")
        updated: dict[str, Any] = {}

        def normalise(name: str, z: Array) -> Array:
            layer = params["layers"][name]
            out, running = _batch_norm(layer, _gelu(z + layer["b"]), observing, momentum)
            updated[name] = {**layer, "running": running}
            return out

        pieces = x.reshape(len(x), height // patch, patch, columns // patch, patch, channels)
        pieces = pieces.swapaxes(2, 3).reshape(*pieces.shape[:2], columns // patch, -1)
        x = normalise("embed", pieces @ params["layers"]["embed"]["w"])
        for i in range(depth):
            mixed = _depthwise(x, params["layers"][f"depthwise{i}"]["w"], kernel)
            x = x + normalise(f"depthwise{i}", mixed)
            x = normalise(f"pointwise{i}", x @ params["layers"][f"pointwise{i}"]["w"])
        features = dense.features(params["dense"], x.mean((1, 2)))
        return features, {"layers": updated, "dense": params["dense"]}

    return Network(
        init,
        lambda params, x: forward(params, x, observing=False)[0],
        lambda params, h: dense.head(params["dense"], h),
        lambda params, x: forward(params, x, observing=True),
    )


def _gelu(z: Array) -> Array:
    # jax.nn.gelu uses erfc: more accurate for large negative z, where GELU is nearly 0, but a
    # training step of the whole network takes 1.2 times as long.
    return z * (0.5 + 0.5 * jax.lax.erf(z * 0.5**0.5))


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _depthwise(
    x: Float[Array, "n h w c"], kernel: Float[Array, "taps c"], size: int
) -> Float[Array, "n h w c"]:
    """Every channel convolved with its own square kernel, borders padded with zeros."""
    return _shifted_sum(x, kernel, size, (size - 1) // 2)


def _shifted_sum(x: Array, kernel: Array, size: int, before: int) -> Array:
    padded = _pad(x, size, before)
    shifted = (padded[:, i : i + x.shape[1], j : j + x.shape[2]] for i, j in _offsets(size))
    return reduce(jnp.add, (part * tap for part, tap in zip(shifted, kernel, strict=True)))


def _pad(x: Array, size: int, before: int) -> Array:
    padding = (before, size - 1 - before)
    return jnp.pad(x, ((0, 0), padding, padding, (0, 0)))


def _offsets(size: int) -> Iterator[tuple[int, int]]:
    return product(range(size), range(size))


def _depthwise_backward(size: int, saved: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    # Autodiff would write one large array per tap (25 for a 5x5 kernel). Sums over rows stay in the
    # cache and are several times faster.
    x, kernel = saved
    before = (size - 1) // 2
    width, channels = x.shape[2:]

    def add_image(totals: list[Array], image: tuple[Array, Array]) -> tuple[list[Array], None]:
        padded, slopes = image

        def add_row(row: Array, totals: list[Array]) -> list[Array]:
            window = jax.lax.dynamic_slice_in_dim(padded, row, size)
            shifted = (window[i, j : j + width] for i, j in _offsets(size))
            return [total + part * slopes[row] for total, part in zip(totals, shifted, strict=True)]

        return jax.lax.fori_loop(0, len(slopes), add_row, totals), None

    zeros = [jnp.zeros((width, channels), x.dtype)] * len(kernel)
    totals, _ = jax.lax.scan(add_image, zeros, (_pad(x, size, before), slope))
    kernel_slope = jnp.stack(totals).sum(1)
    return _shifted_sum(slope, kernel[::-1], size, size - 1 - before), kernel_slope


_depthwise.defvjp(lambda x, w, size: (_depthwise(x, w, size), (x, w)), _depthwise_backward)


def _batch_norm(
    layer: Params, z: Float[Array, "n h w c"], observing: bool, momentum: float
) -> tuple[Array, dict[str, Array]]:
    running = layer["running"]
    if observing:
        mean, variance = z.mean((0, 1, 2)), z.var((0, 1, 2))
        count = z.size // z.shape[-1]
        unbiased = variance * (count / max(count - 1, 1))
        new = {"mean": mean, "variance": unbiased}
        kept = {k: momentum * running[k] + (1 - momentum) * new[k] for k in running}
    else:
        kept = jax.lax.stop_gradient(running)
        mean, variance = kept["mean"], kept["variance"]
    factor = layer["scale"] * jax.lax.rsqrt(variance + 1e-5)
    return (z - mean) * factor + layer["shift"], jax.lax.stop_gradient(kept)
