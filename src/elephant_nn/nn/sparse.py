"""Other sparse activations, and the elephant network of the authors' later work.

`fuzzy_tiling`, `winner_take_all` and `maxout` act on the last axis of a batch, so `mlp` takes them
as its `activation`: `mlp((2, 1000, 3), partial(winner_take_all, group=4))`. They may change
the number of units; the output layer adapts.

`normalised_emlp` is the elephant network of the authors' later work on reinforcement learning
(arXiv 2509.19159): layer normalisation before the bell, and one learned width and height per unit.
It is not the paper's network, and has its own name in tables.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import SupportsFloat

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Key

from elephant_nn.nn.activations import elephant, even_bias, fan_in_uniform
from elephant_nn.nn.networks import Network, Params, Product, check_sizes


def fuzzy_tiling(
    x: Float[Array, "... units"], bound: ArrayLike = 1.0, tiles: int = 20
) -> Float[Array, "... features"]:
    """Fuzzy tiling activation (Pan et al. 2021): every input becomes a soft one-hot code.

    The interval from -bound to bound is divided into tiles of width w. The output of a tile is 1
    for an input inside it, 1 - distance for an input closer than w (the paper's eta = w), else 0.
    The first tiles of all units come first, then the second ones, and so on. All tiles are 0 for an
    input more than w beyond the bound, so choose a bound that covers the inputs.
    """
    if tiles < 1:
        raise ValueError(f"fuzzy_tiling: tiles must be 1 or more, got {tiles}")
    if not isinstance(bound, jax.core.Tracer) and not np.all(np.asarray(bound) > 0):
        raise ValueError(f"fuzzy_tiling: bound must be above 0, got {bound}")
    width = 2 * bound / tiles
    middle = (width * (jnp.arange(tiles) + 0.5) - bound)[:, None]
    outside = jax.nn.relu(jnp.abs(x[..., None, :] - middle) - width / 2)
    fuzzy = jnp.where(outside >= width, 1.0, outside)
    return (1 - fuzzy).reshape(*x.shape[:-1], x.shape[-1] * tiles)


def winner_take_all(x: Float[Array, "... units"], group: int = 4) -> Float[Array, "... units"]:
    """Local winner-take-all (Srivastava et al. 2013): each group keeps only its largest value.

    Of n units in groups of g, unit i competes with i + n/g, i + 2n/g and so on. Of equal maxima
    only the first is kept.
    """
    members = _in_groups(x, group, "winner_take_all")
    best = reduce(jnp.maximum, members)
    passed, free = [], jnp.ones(best.shape, bool)
    for member in members:
        wins = free & ~(member < best)  # NaN if one member is NaN
        passed.append(jnp.where(wins, jnp.where(jnp.isnan(best), best, member), 0))
        free = free & ~wins
    return jnp.concatenate(passed, -1)


def maxout(x: Float[Array, "... units"], group: int = 4) -> Float[Array, "... groups"]:
    """Maxout (Goodfellow et al. 2013): the output is the largest value of each group.

    Groups are those of `winner_take_all`.
    """
    return reduce(jnp.maximum, _in_groups(x, group, "maxout"))


def _in_groups(x: Array, group: int, name: str) -> list[Array]:
    units = x.shape[-1]
    if group < 1 or units % group:
        raise ValueError(
            f"{name}: {units} units cannot be divided into groups of {group}; choose a group that "
            f"divides {units}"
        )
    return jnp.split(x, group, axis=-1)


def normalised_emlp(
    sizes: Sequence[int], *, a: ArrayLike = 0.2, sigma_bias: ArrayLike = 0.4, d: SupportsFloat = 4,
    output_bias: bool = True, product: Product = jnp.matmul,
) -> Network:  # fmt: skip
    """The authors' later elephant network: normalised layers, learned widths and heights.

    Every hidden layer is affine, normalised over its units (with a learned scale and shift), then
    a bell whose width starts at `a` and whose height starts at 1; both are learned as logarithms,
    so they stay above 0. The defaults are those of the authors' later code for all four tasks.
    """
    check_sizes(sizes, "normalised_emlp")
    elephant(0.0, a, d)  # checks a and d
    weight = fan_in_uniform()

    def init(key: Key[Array, ""]) -> Params:
        layers = []
        for i, (n_in, n_out) in enumerate(pairwise(sizes)):
            layer = {"w": weight(jax.random.fold_in(key, i), (n_in, n_out), jnp.float32)}
            if i < len(sizes) - 2:
                layer |= {
                    "b": even_bias(sigma_bias)(key, (n_out,)),
                    "scale": jnp.ones(n_out), "shift": jnp.zeros(n_out),
                    "log_a": jnp.full(n_out, jnp.log(a)), "log_height": jnp.zeros(n_out),
                }  # fmt: skip
            elif output_bias:
                layer["b"] = jnp.zeros(n_out)
            layers.append(layer)
        return tuple(layers)

    def features(params: Params, x: Array) -> Array:
        x = x.reshape(len(x), -1)
        for layer in params[:-1]:
            z = jax.nn.standardize(product(x, layer["w"]) + layer["b"], epsilon=1e-6)
            bell = elephant(z * layer["scale"] + layer["shift"], jnp.exp(layer["log_a"]), d)
            x = jnp.exp(layer["log_height"]) * bell
        return x

    def head(params: Params, h: Array) -> Array:
        out = product(h, params[-1]["w"])
        return out + params[-1]["b"] if output_bias else out

    return Network(init, features, head)
