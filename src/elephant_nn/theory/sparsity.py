r"""Sparsity of a function: the fraction of inputs on which it is nearly zero.

For a function on the real line, the paper defines

$$S_{\epsilon,C}(\sigma) = \frac{|\{x \in [-C, C] : |\sigma(x)| \le \epsilon\}|}{2C}, \qquad
S(\sigma) = \lim_{\epsilon \to 0^+} \lim_{C \to \infty} S_{\epsilon,C}(\sigma).$$

This is a property of the function over a symmetric, unbounded range. For the inputs of a given
network, count the units that are nearly zero.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

ScalarFunction = Callable[[Array], Array]


def measured_sparsity(
    function: ScalarFunction, epsilon: float, reach: float, points: int = 100_000
) -> float:
    r"""$S_{\epsilon,C}$ with C = `reach`, measured at the midpoints of `points` equal intervals.

    `function` maps an array of inputs to an array of the same shape. The error is at most one
    interval per crossing of epsilon.
    """
    if not (epsilon > 0 and reach > 0):
        raise ValueError(
            "measured_sparsity: epsilon and reach must be above 0, "
            f"got epsilon={epsilon}, reach={reach}"
        )
    half = (jnp.arange(points // 2) + 0.5) / (points // 2) * reach
    x = jnp.concatenate([-half[::-1], half])
    return float(jnp.mean(jnp.abs(function(x)) <= epsilon))


def slope_of(function: ScalarFunction) -> ScalarFunction:
    """The derivative of an elementwise function, by automatic differentiation."""
    return lambda x: jax.vmap(jax.grad(function))(x.ravel()).reshape(x.shape)


def limit_sparsity(function: ScalarFunction, points: int = 20_000) -> float:
    r"""$S(\sigma)$, the limit: first the range grows at a fixed epsilon, then epsilon shrinks.

    The range grows to 1e16 and epsilon shrinks to 1e-4. By then the fraction must have converged. A
    function that still decreases there, like 1/log(x), is an error, not a guess. Bells wider than
    1e16 are not seen.
    """
    tolerance = 1e-3
    _check_converged(function, smallest=1e-4)
    fractions = []
    for epsilon in (1e-1, 1e-2, 1e-3, 1e-4):
        before, after = (measured_sparsity(function, epsilon, c, points) for c in (1e14, 1e16))
        if abs(after - before) > tolerance:
            raise ValueError(
                f"limit_sparsity: at epsilon={epsilon} the fraction still changes from "
                f"{before:.4f} to {after:.4f} between inputs of 1e14 and 1e16; "
                "use measured_sparsity(function, epsilon, reach) at the reach you care about"
            )
        fractions.append(after)
    if abs(fractions[-1] - fractions[-2]) > tolerance:
        raise ValueError(
            f"limit_sparsity: the fraction still changes with epsilon, {fractions}; "
            "use measured_sparsity(function, epsilon, reach) at the epsilon you care about"
        )
    return fractions[-1]


def _check_converged(function: ScalarFunction, smallest: float) -> None:
    """Refuse a function that is above the smallest epsilon and still decreases for large inputs."""
    for sign in (-1.0, 1.0):
        near, far = (
            float(jnp.max(jnp.abs(function(sign * jnp.linspace(c / 2, c, 1001)))))
            for c in (1e10, 1e16)
        )
        if smallest < far < 0.99 * near:
            raise ValueError(
                f"limit_sparsity: the function still falls, from {near:.3g} around {sign * 1e10:g} "
                f"to {far:.3g} around {sign * 1e16:g}, so it has not converged; "
                "use measured_sparsity(function, epsilon, reach) at the reach you care about"
            )
