r"""How sparse a function is: the share of inputs on which it is nearly zero.

The paper defines, for a function on the line,

$$S_{\epsilon,C}(\sigma) = \frac{|\{x \in [-C, C] : |\sigma(x)| \le \epsilon\}|}{2C}, \qquad
S(\sigma) = \lim_{\epsilon \to 0^+} \lim_{C \to \infty} S_{\epsilon,C}(\sigma).$$

It speaks of a symmetric, unbounded range of inputs, not of the inputs a network happens to see:
for those, count the units that are nearly zero.
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
    interval for each place where the function crosses epsilon.
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

    Both limits are taken along powers of ten, up to inputs of 1e16 and down to 1e-4, by when the
    share must have stopped moving: a function that still moves there (with the logarithm of x,
    say) is an error, not a guess.
    """
    tolerance = 1e-3
    shares = []
    for epsilon in (1e-1, 1e-2, 1e-3, 1e-4):
        reaches = [measured_sparsity(function, epsilon, 10.0**k, points) for k in range(2, 17, 2)]
        if abs(reaches[-1] - reaches[-2]) > tolerance:
            raise ValueError(
                f"limit_sparsity: at epsilon={epsilon} the share still moves from "
                f"{reaches[-2]:.4f} to {reaches[-1]:.4f} between inputs of 1e14 and 1e16; "
                "use measured_sparsity(function, epsilon, reach) at the reach you care about"
            )
        shares.append(reaches[-1])
    if abs(shares[-1] - shares[-2]) > tolerance:
        raise ValueError(
            f"limit_sparsity: the share still moves with epsilon, {shares}; "
            "use measured_sparsity(function, epsilon, reach) at the epsilon you care about"
        )
    return shares[-1]
