"""The elephant activation, the classical ones beside it, and the paper's initialisers.

An `Activation` is a function together with its slope and two proven numbers: the share of the real
line on which the function, and its slope, is nearly zero (see `elephant_nn.sparsity`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, SupportsFloat

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, ArrayLike, Float

Initializer = jax.nn.initializers.Initializer


def elephant(x: ArrayLike, a: ArrayLike = 0.1, d: SupportsFloat = 4) -> Float[Array, "..."]:
    r"""Bell-shaped activation $1 / (1 + |x/a|^d)$.

    Sparse in value (width `a`) and in slope (sharpness `d`): far from zero both vanish, so a
    gradient step at one input leaves distant inputs alone.

    Args:
        x: inputs of any shape. Floats keep their type; integers become floats.
        a: half width at half height, above 0. A number, or an array that broadcasts against `x`
            (one width a unit, say); it may be traced and differentiated.
        d: sharpness, a Python number above 1. A whole number costs multiplications only;
            `math.inf` gives the rectangle that is 1 inside, 1/2 at `|x| = a`, 0 outside.

    The slope is $-(d/a)\,(x/a)^{d-1} / (1 + |x/a|^d)^2$ with the sign of x, finite everywhere and
    0 at infinity. At d = inf it is 0 everywhere.
    """
    d = _checked_sharpness(d)
    return _in_full_precision(_rectangle if math.isinf(d) else partial(_bell, d=d), x, a)


def elephant_slope(x: ArrayLike, a: ArrayLike = 0.1, d: SupportsFloat = 4) -> Float[Array, "..."]:
    """Derivative of `elephant` with respect to x, exact and finite for every x."""
    d = _checked_sharpness(d)
    flat = lambda x, a: 0 * _rectangle(x, a)
    return _in_full_precision(flat if math.isinf(d) else partial(_slope, d=d), x, a)


def _in_full_precision(function: Callable, x: ArrayLike, a: ArrayLike) -> Array:
    """`function(x, a)`, half-precision inputs in float32: u^8 leaves float16's range at u = 4."""
    x, a = _checked_input(x), _checked_width(a)
    result_type = jnp.result_type(x, a)
    if jnp.finfo(result_type).bits < 32:
        x, a = x.astype(jnp.float32), jnp.asarray(a, jnp.float32)
    return function(x, a).astype(result_type)


def _rectangle(x: Array, a: ArrayLike) -> Array:
    """The bell at d = inf. Its slope is 0 wherever it has one."""
    size = jnp.abs(x)
    shape = jnp.where(size < a, 1.0, jnp.where(size == a, 0.5, 0.0))
    return jnp.where(jnp.isnan(x), x, shape)


def _bell(x: Array, a: ArrayLike, d: float) -> Array:
    return _scaled_bell(x, 1 / jnp.asarray(a), d)


def _slope(x: Array, a: ArrayLike, d: float) -> Array:
    return _scaled_slope(x, 1 / jnp.asarray(a), d)


# Below, s = 1/a, u = x s, and y is the bell's value. Each function has its derivative by hand,
# in an order in which nothing overflows on the way and no inf * 0 arises.


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _scaled_bell(x: Array, s: Array, d: float) -> Array:
    return 1 / _denominator(x * s, d)  # where the power overflows, 1/inf is the right value


@_scaled_bell.defjvp
def _scaled_bell_jvp(d: float, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (x, s), (x_dot, s_dot) = primals, tangents
    y, slope = _scaled_bell(x, s, d), _scaled_slope(x, s, d)
    return y, slope * x_dot + (_inside(x, s, y) * slope / (s * s)) * s_dot


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _scaled_slope(x: Array, s: Array, d: float) -> Array:
    y = _scaled_bell(x, s, d)
    # u^(d-1) y is about 1/u far out, so neither product under- or overflows early.
    return (-d * s) * ((_signed_power(_inside(x, s, y), d - 1) * y) * y)


@_scaled_slope.defjvp
def _scaled_slope_jvp(d: float, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    (x, s), (x_dot, s_dot) = primals, tangents
    slope = _scaled_slope(x, s, d)
    y = _scaled_bell(x, s, d)
    u = _inside(x, s, y)
    curvature = (d * s * s) * ((_magnitude_power(u, d - 2) * y) * y) * (d + 1 - 2 * d * y)
    return slope, curvature * x_dot + (slope / s + u * curvature / (s * s)) * s_dot


def _inside(x: Array, s: Array, y: Array) -> Array:
    """u where the bell is not 0, else 1: powers of it stay finite."""
    u = x * s
    return jnp.where(y == 0, jnp.ones_like(u), u)


def _denominator(u: Array, d: float) -> Array:
    return 1 + _magnitude_power(u, d)


def _magnitude_power(u: Array, exponent: float) -> Array:
    """|u|^exponent, by multiplication where the exponent is whole."""
    if float(exponent).is_integer():
        whole = int(exponent)
        return lax.integer_pow(u if whole % 2 == 0 else jnp.abs(u), whole)
    return jnp.abs(u) ** exponent


def _signed_power(u: Array, exponent: float) -> Array:
    """sign(u) |u|^exponent. Odd whole exponents carry the sign themselves."""
    if float(exponent).is_integer() and int(exponent) % 2 == 1:
        return lax.integer_pow(u, int(exponent))
    return jnp.sign(u) * _magnitude_power(u, exponent)


def _checked_input(x: ArrayLike) -> Array:
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(float)


def _checked_width(a: ArrayLike) -> ArrayLike:
    if isinstance(a, jax.core.Tracer):
        return a
    if not np.all(np.isfinite(np.asarray(a, float)) & (np.asarray(a, float) > 0)):
        raise ValueError(
            f"elephant: a is the width of the bell and must be finite and above 0, got a={a}"
        )
    return a


def _checked_sharpness(d: SupportsFloat) -> float:
    if isinstance(d, jax.core.Tracer):
        raise TypeError(
            "elephant: d decides how the power is computed, so it must be a Python number, "
            "not a traced value; pass it as a static argument"
        )
    d = float(d)
    if not d > 1:
        raise ValueError(
            f"elephant: d is the sharpness of the bell and must be above 1 "
            f"(at d <= 1 the slope jumps at 0), got d={d}"
        )
    return d


def _elu(x: Array) -> Array:
    # e^x - 1 = 2t / (1 - t) with t = tanh(x/2): as accurate as expm1, twice as fast on CPU.
    t = jnp.tanh(jnp.minimum(x, 0) / 2)
    return jnp.where(x > 0, x, 2 * t / (1 - t))


@dataclass(frozen=True)
class Reciprocal:
    """A function of the form 1 / denominator(scale * x), of which sums can share divisions."""

    scale: ArrayLike
    denominator: Callable[[Array], Array]


@dataclass(frozen=True)
class Activation:
    """A function with its slope and the proven sparsity of both (1 is sparse, 0 is dense)."""

    name: str
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    sparsity: float
    slope_sparsity: float
    reciprocal: Reciprocal | None = None

    def __call__(self, x: Array) -> Array:
        return self.value(x)


def elephant_activation(a: ArrayLike = 0.1, d: SupportsFloat = 4) -> Activation:
    """`elephant` at a fixed width and sharpness, for a network."""
    return Activation(
        "elephant",
        partial(elephant, a=a, d=d),
        partial(elephant_slope, a=a, d=d),
        sparsity=1.0,
        slope_sparsity=1.0,
        reciprocal=None
        if math.isinf(float(d))
        else Reciprocal(1 / a, partial(_denominator, d=float(d))),
    )


relu = Activation(
    "relu",
    jax.nn.relu,
    lambda x: (x > 0).astype(x.dtype),
    sparsity=0.5,
    slope_sparsity=0.5,
)
sigmoid = Activation(
    "sigmoid",
    jax.nn.sigmoid,
    lambda x: jax.nn.sigmoid(x) * jax.nn.sigmoid(-x),
    sparsity=0.5,
    slope_sparsity=1.0,
)
tanh = Activation(
    "tanh",
    jnp.tanh,
    lambda x: 4 * jax.nn.sigmoid(2 * x) * jax.nn.sigmoid(-2 * x),
    sparsity=0.0,
    slope_sparsity=1.0,
)
elu = Activation(
    "elu",
    _elu,
    lambda x: jnp.where(x > 0, 1.0, jnp.exp(jnp.minimum(x, 0))).astype(x.dtype),
    sparsity=0.0,
    slope_sparsity=0.5,
)

CLASSICAL: dict[str, Activation] = {f.name: f for f in (relu, sigmoid, tanh, elu)}


def fan_in_uniform() -> Initializer:
    r"""Weights from $U(-1/\sqrt{in}, 1/\sqrt{in})$, as the paper starts every layer."""
    return jax.nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")


def even_bias(sigma_bias: ArrayLike) -> Initializer:
    r"""Biases evenly spaced over $\pm\sqrt{3}\,\sigma_{bias}$, as the paper starts elephant layers.

    Spread biases put the bells of a layer at different places, so some unit answers any input.
    Call it as `even_bias(0.64)(key, (units,))`, or pass it as flax's `bias_init`. The key is not
    used; sigma_bias is (for many units) the standard deviation of the biases.
    """

    def init(key: Any, shape: Any, dtype: Any = jnp.float32, out_sharding: Any = None) -> Array:
        del key, out_sharding
        reach = jnp.sqrt(3.0) * jnp.asarray(sigma_bias)
        spread = jnp.linspace(-1.0, 1.0, shape[-1])
        return jnp.broadcast_to(reach * spread, shape).astype(dtype)

    return init
