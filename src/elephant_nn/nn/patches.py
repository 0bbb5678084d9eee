"""Image features whose filters are patches of the first mini-batch (Coates and Ng, 2011).

Nothing is trained: patches are normalised and whitened, some of them become filters, and the
responses to them are pooled over the four quadrants of the image.
"""

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Key

from elephant_nn.nn.activations import elephant
from elephant_nn.nn.convolution import Shape
from elephant_nn.nn.networks import Network, Params

CONTRAST = 10 / 255
"""Added to the standard deviation of a patch's pixels, which are in [0, 1]."""
WHITENING = 0.1
QUADRANTS = 4
NUMBERS_PER_FILTER = 2 * QUADRANTS


def soft_threshold(z: Array, threshold: ArrayLike = 0.25) -> Array:
    """max(z - t, 0): one side of the response to a filter."""
    return jnp.maximum(z - threshold, 0)


def shifted_elephant(z: Array, centre: ArrayLike = 1.5, a: ArrayLike = 1.0) -> Array:
    """1/(1 + |(z - c)/a|^4): responses of about `centre` count, smaller and larger ones do not."""
    return elephant(z - centre, a, 4)


def patch_features(
    shape: Shape, filters: int, activation: Callable[[Array], Array] = shifted_elephant,
    *, side: int = 6,
) -> Network:  # fmt: skip
    """Eight numbers per filter for images of `shape` (height, width, channels) in [0, 1].

    Every patch of `side` pixels loses its mean, is divided by its standard deviation and whitened
    (ZCA); mean and covariance come from the patches of the first batch. Filters are random whitened
    patches of that batch, of length 1. With z the response of a filter to a patch, `activation(z)`
    and `activation(-z)` are averaged over each quadrant of the image.

    The network has no output layer: use it under `ridge_head`. It learns from the inputs of the
    first batch only, so `init` alone gives filters of random numbers.
    """
    height, width, channels = shape
    if not 1 <= side <= min(height, width):
        raise ValueError(
            f"patch_features: side must be between 1 and {min(height, width)}, the smaller side "
            f"of the images, got {side}"
        )
    if filters < 1:
        raise ValueError(f"patch_features: filters must be 1 or more, got {filters}")
    size = side * side * channels
    pooling = _quadrants(height - side + 1, width - side + 1)

    def patches(image: Float[Array, "h w c"]) -> Float[Array, "p size"]:
        rows, columns = height - side + 1, width - side + 1
        shifted = [image[i : i + rows, j : j + columns] for i in range(side) for j in range(side)]
        found = jnp.concatenate(shifted, -1).reshape(rows * columns, size)
        found = found - found.mean(1, keepdims=True)
        return found / jnp.sqrt(jnp.mean(found**2, 1, keepdims=True) + CONTRAST**2)

    def init(key: Key[Array, ""]) -> Params:
        kernel = jax.random.normal(key, (size, filters))
        return {"w": kernel / jnp.linalg.norm(kernel, axis=0), "b": jnp.zeros(filters)}

    def init_from(key: Key[Array, ""], x: Float[Array, "n ..."]) -> Params:
        every = jax.lax.map(patches, x.reshape(len(x), *shape)).reshape(-1, size)
        mean = every.mean(0)
        covariance = (every - mean).T @ (every - mean) / len(every)
        values, vectors = jnp.linalg.eigh(covariance)
        whiten = (vectors / jnp.sqrt(jnp.maximum(values, 0) + WHITENING)) @ vectors.T
        # Nearly empty patches make poor filters: take twice as many, keep the longest.
        rows = jax.random.choice(key, len(every), (2 * filters,), replace=2 * filters > len(every))
        candidates = (every[rows] - mean) @ whiten
        lengths = jnp.linalg.norm(candidates, axis=1)
        chosen = jnp.argsort(-lengths)[:filters]
        unit = candidates[chosen] / jnp.maximum(lengths[chosen], 1e-6)[:, None]
        kernel = whiten @ unit.T
        return {"w": kernel, "b": -mean @ kernel}

    def features(params: Params, x: Float[Array, "n ..."]) -> Float[Array, "n features"]:
        def one(image: Array) -> Array:
            z = patches(image) @ params["w"] + params["b"]
            both = jnp.concatenate([activation(z), activation(-z)], 1)
            return jnp.matmul(pooling, both).reshape(-1)

        return jax.lax.map(one, x.reshape(len(x), *shape))

    return Network(init, features, lambda params, h: h, init_from=init_from)


@lru_cache
def _quadrants(rows: int, columns: int) -> Float[np.ndarray, "4 p"]:
    """The matrix that averages positions over quadrants."""
    place = np.arange(rows)[:, None] >= (rows + 1) // 2, np.arange(columns) >= (columns + 1) // 2
    which = (2 * place[0] + place[1]).reshape(-1)
    inside = (which == np.arange(QUADRANTS)[:, None]).astype(np.float32)
    return inside / np.maximum(inside.sum(1, keepdims=True), 1)
