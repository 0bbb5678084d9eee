"""Matrix products in which one side is a few numbers wide.

The inputs of a control task and its actions are a handful. As matrix products, such layers spend
their time packing operands; as sums of scaled rows, and with the gradient's long side never
transposed, a step of DQN takes half as long (`elephant bench rl`).
"""

import jax
from jaxtyping import Array, Float

FEW = 8
"""Widths up to this one are written out as sums."""


def thin_product(x: Float[Array, "n k"], w: Float[Array, "k m"]) -> Float[Array, "n m"]:
    """`x @ w`, faster where k or m is at most 8 (on CPU, and more so under `jax.vmap`).

    Its gradients are by reverse mode only: `jax.grad` and `jax.vjp`, not `jax.jvp` (or `ntk`).
    """
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[0]:
        raise ValueError(f"thin_product: shapes {x.shape} and {w.shape} do not multiply")
    if w.shape[0] <= FEW:
        return _few_inputs(x, w)
    return _few_outputs(x, w) if w.shape[1] <= FEW else x @ w


def _scaled_rows(x: Array, w: Array) -> Array:
    return sum((x[:, k, None] * w[k] for k in range(1, len(w))), x[:, 0, None] * w[0])


def _turned(x: Array) -> Array:
    """The transpose of a narrow array, kept from XLA, which would read the original in strides."""
    return jax.lax.optimization_barrier(x.T)


@jax.custom_vjp
def _few_inputs(x: Array, w: Array) -> Array:
    return _scaled_rows(x, w)


def _few_inputs_back(kept: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    x, w = kept
    return g @ w.T, _turned(x) @ g


_few_inputs.defvjp(lambda x, w: (_scaled_rows(x, w), (x, w)), _few_inputs_back)


@jax.custom_vjp
def _few_outputs(x: Array, w: Array) -> Array:
    return x @ w


def _few_outputs_back(kept: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    x, w = kept
    return _scaled_rows(g, _turned(w)), jax.lax.optimization_barrier(_turned(g) @ x).T


_few_outputs.defvjp(lambda x, w: (x @ w, (x, w)), _few_outputs_back)
