"""A network from one number to one number, evaluated at many points, fast.

Evaluating a curve at 1000 points after every sample is most of a streaming run's work. The
points-by-units matrix of 4 MB leaves the cache as soon as a few networks run side by side; here a
few units at a time are added to a running sum that stays in registers. The same numbers as
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
    return _add_up(params, x, 1.0, terms)


def elephant_curve(
    params: Params, x: Float[Array, "n 1"], a: ArrayLike, d: float
) -> Float[Array, "n 1"]:
    """Outputs at the rows of x for `elephant(., a, d)`, with one division for four units."""

    def terms(u: Array, z: list[Array]) -> Array:
        fractions = [(u[j], denominator(z[j], d)) for j in range(_STEP)]
        return _sum_of_four(fractions[:4]) + _sum_of_four(fractions[4:])

    return _add_up(params, x, 1 / jnp.asarray(a), terms)


def _add_up(
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
    """u/q summed over four fractions with one division, the slowest instruction by far."""
    # The bound keeps the product finite; it moves a value below 1e-9 to 1e-9. NaN passes.
    fractions = [(u, jnp.where(q > 1e9, 1e9, q)) for u, q in fractions]
    while len(fractions) > 1:
        pairs = zip(fractions[::2], fractions[1::2], strict=True)
        fractions = [(u * q_next + u_next * q, q * q_next) for (u, q), (u_next, q_next) in pairs]
    return fractions[0][0] / fractions[0][1]
