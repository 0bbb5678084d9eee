"""Fast evaluation of a network with one input and one output at many points.

Evaluation at 1000 points after every sample dominates the time of a streaming run. The
points-by-units matrix of 4 MB does not fit into the cache when a few networks run side by side.
Here a few units at a time are added to a sum that stays in registers. The result is that of
`network.apply`, up to rounding, for `mlp((1, units, 1))` without output bias; for evaluation only.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float

from elephant_nn.nn.activations import denominator
from elephant_nn.nn.networks import Params

_STEP = 8


def curve(
    params: Params, x: Float[Array, "n 1"], activation: Callable[[Array], Array]
) -> Float[Array, "n 1"]:
    """Outputs at the rows of x for any activation."""
    terms = lambda u, z: sum(u[j] * activation(z[j]) for j in range(_STEP))
    return _sum_units(params, x, 1.0, terms)


def elephant_curve(
    params: Params, x: Float[Array, "n 1"], a: ArrayLike, d: float
) -> Float[Array, "n 1"]:
    """Outputs at the rows of x for `elephant(., a, d)`, with one division per four units."""

    def terms(u: Array, z: list[Array]) -> Array:
        fractions = [(u[j], denominator(z[j], d)) for j in range(_STEP)]
        return _sum_of_four(fractions[:4]) + _sum_of_four(fractions[4:])

    return _sum_units(params, x, 1 / jnp.asarray(a), terms)


def _sum_units(
    params: Params, x: Array, scale: ArrayLike, terms: Callable[[Array, list[Array]], Array]
) -> Array:
    weights, bias, out = params[0]["w"][0] * scale, params[0]["b"] * scale, params[1]["w"][:, 0]
    units = jnp.pad(jnp.stack([weights, bias, out]), ((0, 0), (0, -len(out) % _STEP)))
    points = x[:, 0].astype(units.dtype)

    def add(i: Array, total: Array) -> Array:
        v, b, u = jax.lax.dynamic_slice_in_dim(units, i * _STEP, _STEP, axis=1)
        return total + terms(u, [points * v[j] + b[j] for j in range(_STEP)])

    total = jax.lax.fori_loop(0, units.shape[1] // _STEP, add, jnp.zeros_like(points))
    return total[:, None]


def _sum_of_four(fractions: list[tuple[Array, Array]]) -> Array:
    """The sum of four fractions u/q with one division, by far the slowest instruction."""
    # The bound keeps the product finite: values below 1e-9 become 1e-9. NaN stays NaN.
    fractions = [(u, jnp.where(q > 1e9, 1e9, q)) for u, q in fractions]
    while len(fractions) > 1:
        pairs = zip(fractions[::2], fractions[1::2], strict=True)
        fractions = [(u * q_next + u_next * q, q * q_next) for (u, q), (u_next, q_next) in pairs]
    return fractions[0][0] / fractions[0][1]
