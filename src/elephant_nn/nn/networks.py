"""Networks as plain functions on pytrees.

A `Network` is three pure functions: `init(key) -> params`, `features(params, x)` (the last hidden
layer) and `head(params, features)` (the output layer); `apply` is their composition. They need no
framework, and any framework can call them. Convolutional networks are in `convolution.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, SupportsFloat

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Key

from elephant_nn.nn.activations import elephant_activation, even_bias, fan_in_uniform, relu

Params = Any
Product = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Network:
    """Pure functions over one pytree of parameters. Inputs are batches along the first axis.

    `observing`, if given, replaces `features` during training: it normalises by the statistics of
    the batch, and returns the features and the parameters with updated running statistics. Running
    statistics are part of the parameters, under the key "running"; the loss does not depend on
    them, and optimisers do not change them.

    `init_from(key, x)`, if given, makes the initial parameters from the inputs of the first batch.
    """

    init: Callable[[Key[Array, ""]], Params]
    features: Callable[[Params, Array], Array]
    head: Callable[[Params, Array], Array]
    observing: Callable[[Params, Array], tuple[Array, Params]] | None = None
    init_from: Callable[[Key[Array, ""], Array], Params] | None = None

    def start(self, key: Key[Array, ""], x: Array) -> Params:
        """The initial parameters, from the inputs of the first batch if the network uses them."""
        return self.init_from(key, x) if self.init_from else self.init(key)

    def observe(self, params: Params, x: Array) -> tuple[Array, Params]:
        """The features of a training batch, and the parameters with updated running statistics."""
        return self.observing(params, x) if self.observing else (self.features(params, x), params)

    def apply(self, params: Params, x: Float[Array, "n ..."]) -> Float[Array, "n out"]:
        return self.head(params, self.features(params, x))


def without_running_statistics(change: Params) -> Params:
    """An optimiser's updates, with those of running statistics set to zero.

    An optimiser with weight decay would otherwise change them.
    """
    running = jax.tree_util.DictKey("running")
    keep = lambda path, leaf: jnp.zeros_like(leaf) if running in path else leaf
    return jax.tree_util.tree_map_with_path(keep, change)


def check_sizes(sizes: Sequence[int], name: str) -> None:
    if len(sizes) < 3 or min(sizes) < 1:
        raise ValueError(
            f"{name}: sizes must list inputs, at least one hidden width and outputs, all above 0, "
            f"like (784, 1000, 10); got {tuple(sizes)}"
        )


def flatten_inputs(x: Float[Array, "n ..."], inputs: int, name: str) -> Float[Array, "n inputs"]:
    """The batch with one row of `inputs` numbers per sample."""
    rows = x.reshape(len(x), -1)
    if rows.shape[1] != inputs:
        one = "; x[None] is a batch of one sample" if x.shape == (inputs,) else ""
        raise ValueError(
            f"{name}: made for {inputs} inputs per sample, got {rows.shape[1]} "
            f"(shape {x.shape[1:]}){one}"
        )
    return rows


def mlp(
    sizes: Sequence[int], activation: Callable[[Array], Array] = relu,
    *, hidden: Callable[[Array], Array] = relu, sigma_bias: ArrayLike = 0.0,
    output_bias: bool = False, product: Product = jnp.matmul,
) -> Network:  # fmt: skip
    """A multi-layer perceptron of any depth, for batches of shape (n, sizes[0]).

    Args:
        sizes: inputs, hidden widths, outputs: `(784, 1000, 10)`.
        activation: used in the last hidden layer only, like the elephant in the paper. It may
            change the number of units, as maxout does; the output layer adapts.
        hidden: used in all earlier hidden layers.
        sigma_bias: spread of the initial biases of the last hidden layer; all other biases start
            at 0.
        output_bias: the paper's networks have none.
        product: multiplies inputs by weights; `thin_product` is faster for a few inputs or outputs.

    Parameters are a tuple of layers, each `{"w": (in, out), "b": (out,)}`.
    """
    check_sizes(sizes, "mlp")
    weight, last_hidden = fan_in_uniform(), len(sizes) - 3
    features_out = jax.eval_shape(activation, jnp.zeros((1, sizes[-2]))).shape[-1]

    def init(key: Key[Array, ""]) -> Params:
        layers = []
        for i, (n_in, n_out) in enumerate(pairwise(sizes)):
            n_in = features_out if i > last_hidden else n_in
            layer = {"w": weight(jax.random.fold_in(key, i), (n_in, n_out), jnp.float32)}
            if i == last_hidden:
                layer["b"] = even_bias(sigma_bias)(key, (n_out,))
            elif i < last_hidden or output_bias:
                layer["b"] = jnp.zeros(n_out)
            layers.append(layer)
        return tuple(layers)

    def features(params: Params, x: Array) -> Array:
        x = flatten_inputs(x, sizes[0], "mlp")
        for i, layer in enumerate(params[:-1]):
            x = (activation if i == last_hidden else hidden)(product(x, layer["w"]) + layer["b"])
        return x

    def head(params: Params, h: Array) -> Array:
        out = product(h, params[-1]["w"])
        return out + params[-1]["b"] if output_bias else out

    return Network(init, features, head)


def emlp(
    sizes: Sequence[int], *, a: ArrayLike, sigma_bias: ArrayLike, d: SupportsFloat = 4,
    hidden: Callable[[Array], Array] = relu, output_bias: bool = False,
    product: Product = jnp.matmul,
) -> Network:  # fmt: skip
    """An elephant MLP: `mlp` with the elephant and its spread biases in the last hidden layer."""
    return mlp(
        sizes, elephant_activation(a, d), hidden=hidden, sigma_bias=sigma_bias,
        output_bias=output_bias, product=product,
    )  # fmt: skip
