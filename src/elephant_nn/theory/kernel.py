r"""The neural tangent kernel, and measures of local elasticity.

A small gradient step on one sample $(x_t, y_t)$ moves the output at x by
$-\alpha\, L'(f(x_t))\, \langle \nabla f(x), \nabla f(x_t) \rangle$. The inner product is the
kernel: where it is zero, the output stays.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from elephant_nn.nn.activations import Activation
from elephant_nn.nn.networks import Network, Params


def ntk(
    network: Network, params: Params, x: Float[Array, "n ..."], x_t: Float[Array, "..."]
) -> Float[Array, "n ..."]:
    """Exact kernel between every row of `x` and `x_t`, by forward- and reverse-mode autodiff.

    `x_t` is one input (the shape of `x[0]`) or a batch of m inputs. For a network with one output
    the result has shape (n,) or (n, m); with k outputs, (n, k, k) or (n, m, k, k), outputs at x
    first. Takes one backward pass per row and output of x_t, and for each of them one forward pass
    over x. Gradients at the rows of x are not stored and rows are processed in blocks, so x may
    have thousands of rows.
    """
    if x_t.ndim == x.ndim - 1:
        return _ntk(network, params, x, x_t[None])[:, 0]
    if x_t.ndim != x.ndim:
        raise ValueError(
            f"ntk: x_t must be one input of shape {x.shape[1:]} or a batch of them, "
            f"got shape {x_t.shape}"
        )
    return _ntk(network, params, x, x_t)


@partial(jax.jit, static_argnums=0)
def _ntk(network: Network, params: Params, x: Array, x_t: Array) -> Array:
    def column(point: Array) -> Array:
        out, pull_back = jax.vjp(lambda p: network.apply(p, point[None])[0], params)
        gradients = jax.vmap(lambda e: pull_back(e)[0])(jnp.eye(out.shape[0], dtype=out.dtype))
        outputs = lambda p: jax.lax.map(
            lambda row: network.apply(p, row[None])[0], x, batch_size=32
        )
        products = lambda g: jax.jvp(outputs, (params,), (g,))[1]
        return jax.vmap(products, out_axes=-1)(gradients)

    kernel = jnp.moveaxis(jax.lax.map(column, x_t), 0, 1)
    return kernel[..., 0, 0] if kernel.shape[-1] == 1 else kernel


def ntk_closed_form(
    params: Params, activation: Activation, x: Float[Array, "n d"], x_t: Float[Array, " d"]
) -> Float[Array, " n"]:
    r"""Closed form for a network with one hidden layer, one output and no output bias.

    $$\sigma(z)\cdot\sigma(z_t) + (x \cdot x_t + 1) \sum_j u_j^2\, \sigma'(z_j)\, \sigma'(z_{t,j})$$

    with $z = Vx + b$ and output weights u. The paper prints $u^\top u$ in front of the sum instead
    of $u_j^2$ inside it; see `ntk_as_printed`.
    """
    values, slopes, inputs, u = _one_layer_terms(params, activation, x, x_t)
    return values + inputs * (slopes @ u**2)


def ntk_as_printed(
    params: Params, activation: Activation, x: Float[Array, "n d"], x_t: Float[Array, " d"]
) -> Float[Array, " n"]:
    r"""The kernel as the paper's Lemma 3.1 prints it, kept to show where it fails.

    $$\sigma(z)\cdot\sigma(z_t) + u^\top u\,(x \cdot x_t + 1)\, \sigma'(z)\cdot\sigma'(z_t)$$

    Correct only for one hidden unit, or where no unit has a slope at both inputs; for m units the
    second term is about m times too large.
    """
    values, slopes, inputs, u = _one_layer_terms(params, activation, x, x_t)
    return values + inputs * (u @ u) * slopes.sum(-1)


def _one_layer_terms(
    params: Params, activation: Activation, x: Array, x_t: Array
) -> tuple[Array, Array, Array, Array]:
    if len(params) != 2 or params[1]["w"].shape[1] != 1 or "b" in params[1]:
        raise ValueError(
            "the closed form holds for one hidden layer, one output and no output bias; "
            "use ntk(network, params, x, x_t), which is exact for every network"
        )
    z, z_t = (v @ params[0]["w"] + params[0]["b"] for v in (x, x_t))
    values = activation.value(z) @ activation.value(z_t)
    slopes = activation.slope(z) * activation.slope(z_t)
    return values, slopes, x @ x_t + 1, params[1]["w"][:, 0]


def normalised_kernel(kernel: Float[Array, " n"]) -> Float[Array, " n"]:
    """The kernel divided by its largest magnitude, so that values lie in [-1, 1]."""
    peak = jnp.max(jnp.abs(kernel))
    return kernel / jnp.where(peak > 0, peak, 1)


def kernel_radius(x: ArrayLike, x_t: ArrayLike, kernel: ArrayLike, level: float = 0.1) -> float:
    """The reach of an update: the distance beyond which |kernel| is below `level` of its peak.

    It is the largest distance between `x_t` and a row of `x` at which the normalised kernel is at
    least `level`. A small radius means local elasticity.
    """
    if not 0 < level <= 1:
        raise ValueError(
            f"kernel_radius: level is a fraction of the peak, above 0, up to 1, got {level}"
        )
    x, x_t, kernel = (np.asarray(v) for v in (x, x_t, kernel))
    if not np.isfinite(kernel).all():
        return float("nan")
    distance = np.sqrt(((x - x_t) ** 2).reshape(len(x), -1).sum(1))
    reached = np.abs(kernel) >= level * np.abs(kernel).max()
    return float(distance[reached].max()) if np.abs(kernel).max() > 0 else 0.0


def update_effect(
    network: Network, params: Params, x: Float[Array, "n ..."], sample: tuple[Array, Array],
    learning_rate: float = 1e-3,
    loss: Callable[[Array, Array], Array] = lambda out, y: jnp.sum((out - y) ** 2),
) -> Float[Array, "n out"]:  # fmt: skip
    """Change of the output at every row of `x` caused by one SGD step on one sample (x_t, y_t).

    The kernel predicts it to first order.
    """
    x_t, y_t = sample
    gradient = jax.grad(lambda p: loss(network.apply(p, x_t[None])[0], y_t))(params)
    after = jax.tree.map(lambda p, g: p - learning_rate * g, params, gradient)
    return network.apply(after, x) - network.apply(params, x)
