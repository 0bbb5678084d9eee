"""Networks as plain functions on pytrees.

A `Network` is three pure functions: `init(key) -> params`, `features(params, x)` (the last hidden
layer) and `head(params, features)` (the output layer); `apply` is their composition. Two layers
need no framework, and any framework can call them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, SupportsFloat

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Key

from elephant_nn.activations import (
    Activation,
    elephant_activation,
    even_bias,
    fan_in_uniform,
    relu,
)

Params = Any


@dataclass(frozen=True)
class Network:
    """Pure functions over one pytree of parameters. Inputs are batches: the first axis counts."""

    init: Callable[[Key[Array, ""]], Params]
    features: Callable[[Params, Array], Array]
    head: Callable[[Params, Array], Array]
    fast_predict: Callable[[Params, Array], Array] | None = None

    def apply(self, params: Params, x: Float[Array, "n ..."]) -> Float[Array, "n out"]:
        return self.head(params, self.features(params, x))

    def predict(self, params: Params, x: Float[Array, "n ..."]) -> Float[Array, "n out"]:
        """`apply` for when no gradient is wanted: the same numbers up to rounding, maybe faster."""
        return (self.fast_predict or self.apply)(params, x)


def mlp(
    sizes: Sequence[int],
    activation: Callable[[Array], Array] = relu,
    *,
    hidden: Callable[[Array], Array] = relu,
    sigma_bias: ArrayLike = 0.0,
    output_bias: bool = False,
) -> Network:
    """A multi-layer perceptron of any depth, for batches of shape (n, sizes[0]).

    Args:
        sizes: inputs, hidden widths, outputs: `(784, 1000, 10)`.
        activation: used in the last hidden layer only, as the paper uses the elephant.
        hidden: used in all earlier hidden layers.
        sigma_bias: spread of the initial biases of the last hidden layer; 0 starts them at 0, like
            all others.
        output_bias: the paper's networks have none.

    Parameters are a tuple of layers, each `{"w": (in, out), "b": (out,)}`.
    """
    if len(sizes) < 3 or min(sizes) < 1:
        raise ValueError(
            "mlp: sizes lists inputs, at least one hidden width, and outputs, all above 0, "
            f"like (784, 1000, 10); got {tuple(sizes)}"
        )
    weight, last_hidden = fan_in_uniform(), len(sizes) - 3

    def init(key: Key[Array, ""]) -> Params:
        layers = []
        for i, (n_in, n_out) in enumerate(pairwise(sizes)):
            layer = {"w": weight(jax.random.fold_in(key, i), (n_in, n_out), jnp.float32)}
            if i == last_hidden:
                layer["b"] = even_bias(sigma_bias)(key, (n_out,))
            elif i < last_hidden or output_bias:
                layer["b"] = jnp.zeros(n_out)
            layers.append(layer)
        return tuple(layers)

    def features(params: Params, x: Array) -> Array:
        x = x.reshape(len(x), -1)
        for i, layer in enumerate(params[:-1]):
            x = (activation if i == last_hidden else hidden)(x @ layer["w"] + layer["b"])
        return x

    def head(params: Params, h: Array) -> Array:
        out = h @ params[-1]["w"]
        return out + params[-1]["b"] if output_bias else out

    one_to_one = len(sizes) == 3 and sizes[0] == sizes[2] == 1 and not output_bias
    return Network(init, features, head, partial(_by_units, activation) if one_to_one else None)


def _by_units(activation: Callable[[Array], Array], params: Params, x: Array) -> Array:
    """A curve through many points: add up eight units at a time instead of storing all of them.

    The points-by-units matrix of 1000 points and 1000 units leaves the cache as soon as a few
    networks run side by side; a running sum stays in registers.
    """
    step = 8
    bell = activation.reciprocal if isinstance(activation, Activation) else None
    scale = 1.0 if bell is None else bell.scale
    v, b, u = params[0]["w"][0] * scale, params[0]["b"] * scale, params[1]["w"][:, 0]
    units = jnp.pad(jnp.stack([v, b, u]), ((0, 0), (0, -len(u) % step)))

    def add(i: Array, total: Array) -> Array:
        v, b, u = jax.lax.dynamic_slice_in_dim(units, i * step, step, axis=1)
        z = [x[:, 0] * v[j] + b[j] for j in range(step)]
        if bell is None:
            return total + sum(u[j] * activation(z[j]) for j in range(step))
        fractions = [(u[j], bell.denominator(z[j])) for j in range(step)]
        return total + _sum_of_four(fractions[:4]) + _sum_of_four(fractions[4:])

    total = jax.lax.fori_loop(0, units.shape[1] // step, add, jnp.zeros_like(x[:, 0]))
    return total[:, None]


def _sum_of_four(fractions: list[tuple[Array, Array]]) -> Array:
    """u/q summed over four fractions with one division, the slowest instruction by far."""
    # The bound keeps the product finite; it moves a value below 1e-9 to 1e-9. NaN passes.
    fractions = [(u, jnp.where(q > 1e9, 1e9, q)) for u, q in fractions]
    while len(fractions) > 1:
        pairs = zip(fractions[::2], fractions[1::2], strict=True)
        fractions = [(u * q_next + u_next * q, q * q_next) for (u, q), (u_next, q_next) in pairs]
    return fractions[0][0] / fractions[0][1]


def emlp(
    sizes: Sequence[int],
    *,
    a: ArrayLike,
    sigma_bias: ArrayLike,
    d: SupportsFloat = 4,
    hidden: Activation = relu,
    output_bias: bool = False,
) -> Network:
    """An elephant MLP: `mlp` with the elephant and its spread biases in the last hidden layer."""
    return mlp(
        sizes,
        elephant_activation(a, d),
        hidden=hidden,
        sigma_bias=sigma_bias,
        output_bias=output_bias,
    )
