"""Matrix products with a narrow operand.

A control task has few inputs and few actions. A general matrix product spends its time packing such
operands. As sums of scaled rows, and with no transpose of the gradient's long side, a step of DQN
takes half the time (`elephant bench rl`).
"""

import jax
from jaxtyping import Array, Float

FEW = 8
"""Products of at most this width are written as sums."""


def thin_product(x: Float[Array, "n k"], w: Float[Array, "k m"]) -> Float[Array, "n m"]:
    """`x @ w`, faster if k or m is at most 8 (on CPU, and more so under `jax.vmap`).

    It has reverse-mode gradients only: `jax.grad` and `jax.vjp`, not `jax.jvp` (or `ntk`).
    """
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[0]:
        raise ValueError(f"thin_product: shapes {x.shape} and {w.shape} do not multiply")
    if w.shape[0] <= FEW:
        return _few_inputs(x, w)
    return _few_outputs(x, w) if w.shape[1] <= FEW else x @ w


def _scaled_rows(x: Array, w: Array) -> Array:
    return sum((x[:, k, None] * w[k] for k in range(1, len(w))), x[:, 0, None] * w[0])


def _transposed(x: Array) -> Array:
    """The transpose of a narrow array, stored: XLA would otherwise read the original in strides."""
    return jax.lax.optimization_barrier(x.T)


@jax.custom_vjp
def _few_inputs(x: Array, w: Array) -> Array:
    return _scaled_rows(x, w)


def _few_inputs_backward(saved: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    x, w = saved
    return g @ w.T, _transposed(x) @ g


_few_inputs.defvjp(lambda x, w: (_scaled_rows(x, w), (x, w)), _few_inputs_backward)


@jax.custom_vjp
def _few_outputs(x: Array, w: Array) -> Array:
    return x @ w


def _few_outputs_backward(saved: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    x, w = saved
    return _scaled_rows(g, _transposed(w)), jax.lax.optimization_barrier(_transposed(g) @ x).T


_few_outputs.defvjp(lambda x, w: (x @ w, (x, w)), _few_outputs_backward)
