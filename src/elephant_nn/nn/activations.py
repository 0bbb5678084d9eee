"""The elephant activation, the classical activations, and the paper's initialisers.

An `Activation` is a function together with its slope and two proven numbers: the fraction of the
real line on which the function, or its slope, is nearly zero (see `elephant_nn.theory.sparsity`).
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
Pair = tuple[Array, Array]


def elephant(x: ArrayLike, a: ArrayLike = 0.1, d: SupportsFloat = 4) -> Float[Array, "..."]:
    r"""Bell-shaped activation $1 / (1 + |x/a|^d)$.

    Sparse in value (width `a`) and in slope (sharpness `d`): far from zero both vanish, so a
    gradient step at one input does not change the outputs at distant inputs.

    Args:
        x: inputs of any shape. Floats keep their type; integers become floats.
        a: half width at half height, above 0. A number, or an array that broadcasts against `x`
            (one width per unit, say); it may be traced and differentiated.
        d: sharpness, a Python number above 1. An integer needs multiplications only;
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


def _in_full_precision(
    function: Callable[[Array, Array], Array], x: ArrayLike, a: ArrayLike
) -> Array:
    """`function(x, a)`, half-precision inputs in float32: u^8 leaves float16's range at u = 4."""
    x = _checked_input(x)
    result_type = jnp.result_type(x, a)
    compute_type = jnp.promote_types(result_type, jnp.float32)
    a = _checked_width(a, compute_type)
    if function is _rectangle:
        a = a.astype(result_type)  # compare |x| = a in the precision of x
    return function(x.astype(compute_type), a.astype(compute_type)).astype(result_type)


def _rectangle(x: Array, a: Array) -> Array:
    """The bell at d = inf. Its slope is 0 wherever it has one."""
    size = jnp.abs(x)
    shape = jnp.where(size < a, 1.0, jnp.where(size == a, 0.5, 0.0))
    return jnp.where(jnp.isnan(x), lax.stop_gradient(x), shape)


# Below, u = x/a and y is the value of the bell. The derivatives are written by hand; the order of
# their operations avoids overflow and inf * 0. For d < 2 there is no second derivative at x = 0.


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _bell(x: Array, a: Array, d: float) -> Array:
    return 1 / denominator(x / a, d)  # if the power overflows, 1/inf is exact


@_bell.defjvp
def _bell_jvp(d: float, primals: Pair, tangents: Pair) -> Pair:
    (x, a), (x_dot, a_dot) = primals, tangents
    y, slope = _bell(x, a, d), _slope(x, a, d)
    return y, slope * x_dot - (_inside(x, a, y) * slope) * a_dot


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _slope(x: Array, a: Array, d: float) -> Array:
    y = _bell(x, a, d)
    # u^(d-1) y is about 1/u for large u, so neither product overflows or underflows early.
    return (-d / a) * ((_signed_power(_inside(x, a, y), d - 1) * y) * y)


@_slope.defjvp
def _slope_jvp(d: float, primals: Pair, tangents: Pair) -> Pair:
    (x, a), (x_dot, a_dot) = primals, tangents
    y, slope = _bell(x, a, d), _slope(x, a, d)
    bend = d + 1 - 2 * d * y
    power = _magnitude_power(_inside(x, a, y), d - 2)
    curvature = (d / a) * ((power * y) * y) / a * bend
    return slope, curvature * x_dot + (slope / a) * (bend - 1) * a_dot


def _inside(x: Array, a: Array, y: Array) -> Array:
    """u = x/a where the bell is not 0, else 1, so that powers of it stay finite."""
    u = x / a
    return jnp.where(y == 0, jnp.ones_like(u), u)


def denominator(u: Array, d: float) -> Array:
    """1 + |u|^d, the denominator of the elephant function."""
    return 1 + _magnitude_power(u, d)


def _magnitude_power(u: Array, exponent: float) -> Array:
    """|u|^exponent, by multiplication if the exponent is an integer."""
    if float(exponent).is_integer():
        whole = int(exponent)
        return lax.integer_pow(u if whole % 2 == 0 else jnp.abs(u), whole)
    return jnp.abs(u) ** exponent


def _signed_power(u: Array, exponent: float) -> Array:
    """sign(u) |u|^exponent. Odd integer powers keep the sign."""
    if float(exponent).is_integer() and int(exponent) % 2 == 1:
        return lax.integer_pow(u, int(exponent))
    return jnp.sign(u) * _magnitude_power(u, exponent)


def _checked_input(x: ArrayLike) -> Array:
    if type(x).__module__.partition(".")[0] == "torch":
        raise TypeError(
            "elephant: x is a torch.Tensor, and the result would be a JAX array without gradients "
            "for torch; pass x.numpy() for the values, or write 1 / (1 + (x / a).abs() ** d)"
        )
    x = jnp.asarray(x)
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        raise TypeError("elephant: x must be real, got complex numbers; pass x.real or abs(x)")
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(float)


def _checked_width(a: ArrayLike, compute_type: Any) -> Array:
    if not isinstance(a, jax.core.Tracer):
        # Within these bounds 1/a and d/a are normal numbers.
        values, smallest = np.asarray(a, float), 1024 * float(jnp.finfo(compute_type).tiny)
        if not np.all((smallest <= values) & (values <= 1 / smallest)):
            raise ValueError(
                "elephant: a is the width of the bell and must be finite and above 0 "
                f"({smallest:.2g} to {1 / smallest:.2g} in {jnp.dtype(compute_type).name}), "
                f"got a={a}"
            )
    return jnp.asarray(a) if hasattr(a, "dtype") else jnp.asarray(a, compute_type)


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
class Activation:
    """A function with its slope and the proven sparsity of both (1 is sparse, 0 is dense)."""

    name: str
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    sparsity: float
    slope_sparsity: float

    def __call__(self, x: Array) -> Array:
        return self.value(x)


def elephant_activation(a: ArrayLike = 0.1, d: SupportsFloat = 4) -> Activation:
    """`elephant` at a fixed width and sharpness, for a network."""
    _checked_sharpness(d)
    _checked_width(a, jnp.float32)
    value, slope = partial(elephant, a=a, d=d), partial(elephant_slope, a=a, d=d)
    return Activation("elephant", value, slope, sparsity=1.0, slope_sparsity=1.0)


relu = Activation(
    "relu", jax.nn.relu, lambda x: (x > 0).astype(x.dtype), sparsity=0.5, slope_sparsity=0.5
)
sigmoid = Activation(
    "sigmoid", jax.nn.sigmoid, lambda x: jax.nn.sigmoid(x) * jax.nn.sigmoid(-x),
    sparsity=0.5, slope_sparsity=1.0,
)  # fmt: skip
tanh = Activation(
    "tanh", jnp.tanh, lambda x: 4 * jax.nn.sigmoid(2 * x) * jax.nn.sigmoid(-2 * x),
    sparsity=0.0, slope_sparsity=1.0,
)  # fmt: skip
elu = Activation(
    "elu", _elu, lambda x: jnp.where(x > 0, 1.0, jnp.exp(jnp.minimum(x, 0))).astype(x.dtype),
    sparsity=0.0, slope_sparsity=0.5,
)  # fmt: skip

CLASSICAL: dict[str, Activation] = {f.name: f for f in (relu, sigmoid, tanh, elu)}


def fan_in_uniform() -> Initializer:
    r"""Weights from $U(-1/\sqrt{in}, 1/\sqrt{in})$, the paper's initial weights of every layer."""
    return jax.nn.initializers.variance_scaling(1 / 3, "fan_in", "uniform")


def even_bias(sigma_bias: ArrayLike) -> Initializer:
    r"""Biases evenly spaced over $\pm\sqrt{3}\,\sigma_{bias}$, as in the paper's elephant layers.

    Spread biases centre the bells of a layer at different inputs, so some unit responds to any
    input. Call it as `even_bias(0.64)(key, (units,))`, or pass it as flax's `bias_init`. The key is
    ignored. For many units, sigma_bias is the standard deviation of the biases.
    """

    if not isinstance(sigma_bias, jax.core.Tracer) and not np.all(np.isfinite(sigma_bias)):
        raise ValueError(f"even_bias: sigma_bias must be finite, got {sigma_bias}")

    def init(key: Any, shape: Any, dtype: Any = jnp.float32, out_sharding: Any = None) -> Array:
        del key, out_sharding
        reach = jnp.sqrt(3.0) * jnp.asarray(sigma_bias)
        spread = jnp.linspace(-1.0, 1.0, shape[-1])
        return jnp.broadcast_to(reach * spread, shape).astype(dtype)

    return init
