"""The elephant activation for PyTorch, with its own derivatives."""

import math
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd import Function

Width = float | Tensor


def elephant(x: Tensor, a: Width = 0.1, d: float = 4) -> Tensor:
    r"""Bell-shaped activation $1 / (1 + |x/a|^d)$.

    Sparse in value (width `a`) and in slope (sharpness `d`): far from zero both vanish, so a
    gradient step at one input does not change the outputs at distant inputs.

    Args:
        x: inputs of any shape. Floats keep their type; integers become floats. Half precision is
            computed in float32.
        a: half width at half height, above 0: a number, or a tensor that broadcasts against `x`
            and may require a gradient. Values of a tensor are not checked.
        d: sharpness, above 1. An integer needs multiplications only; `math.inf` gives the rectangle
            that is 1 inside, 1/2 at `|x| = a`, 0 outside.

    Value, gradient and second derivative are finite for every x and 0 at infinity, where automatic
    differentiation of the formula gives NaN.
    """
    d = _checked_sharpness(d)
    x = _checked_input(x)
    if isinstance(a, Tensor):
        _check_devices(x, a)
        shape = torch.broadcast_shapes(x.shape, a.shape)
        x, a = x.expand(shape), a.expand(shape)  # whose backward passes sum over what is broadcast
    else:
        a = _checked_width(a, x.dtype)
    if math.isinf(d):
        return _rectangle(x, a)
    function = _TracedBell if torch.compiler.is_compiling() else _Bell
    return cast(Tensor, function.apply(x, a, d))


class Elephant(nn.Module):
    """`elephant` as a module: put it after a layer whose biases are spread by `even_bias_`.

    Args:
        a: half width of the bells, where learning starts if it is learned.
        d: sharpness, a number above 1.
        learnable: train the widths. The parameter is `log_a`, so widths stay above 0.
        units: the number of units if each is to have a width of its own.
        dim: the dimension of the units in the inputs: -1 for linear layers, 1 for images.

    A width that is not learnable is no part of the `state_dict`, which stays that of a network with
    ReLU.
    """

    def __init__(
        self, a: float = 0.1, d: float = 4, *, learnable: bool = False, units: int | None = None,
        dim: int = -1,
    ):  # fmt: skip
        super().__init__()
        self.d, self.dim, self.units = _checked_sharpness(d), dim, units
        self._a = _checked_width(a, torch.float32)
        if units is not None and not learnable:
            raise ValueError("Elephant: units is for learnable=True; otherwise all share the width")
        if units is not None and units < 1:
            raise ValueError(f"Elephant: units must be 1 or more, got {units}")
        if learnable and math.isinf(self.d):
            raise ValueError("Elephant: at d = inf the width has no gradient; choose a finite d")
        self.log_a: nn.Parameter | None = None
        if learnable:
            shape = () if units is None else (units,)
            self.log_a = nn.Parameter(torch.full(shape, math.log(self._a)))

    @property
    def a(self) -> Width:
        """The width, or the widths if they are learned."""
        return self._a if self.log_a is None else self.log_a.exp()

    def set_width(self, a: float) -> None:
        """Set the width, of all units if there are several."""
        self._a = _checked_width(a, torch.float32)
        if self.log_a is not None:
            with torch.no_grad():
                self.log_a.fill_(math.log(a))

    def forward(self, x: Tensor) -> Tensor:
        a = self.a
        if isinstance(a, Tensor) and self.units is not None:
            if x.shape[self.dim] != self.units:
                raise ValueError(
                    f"Elephant: made for {self.units} units in dimension {self.dim}, got inputs of "
                    f"shape {tuple(x.shape)}"
                )
            a = a.reshape(-1, *(1,) * (x.dim() - 1 - self.dim % x.dim()))
        return elephant(x, a, self.d)

    def extra_repr(self) -> str:
        parts = [f"a={self._a:g}", f"d={self.d:g}"]
        if self.log_a is not None:
            parts.append("learnable=True")
        if self.units is not None:
            parts.append(f"units={self.units}")
        return ", ".join(parts)


# Below, u = x/a and y is the value of the bell. u is clamped where y is 0, so that its powers stay
# finite and the products with y are 0, not NaN.


class _TracedBell(Function):
    """For `torch.compile` and `torch.export`, which trace no Function with a jvp."""

    @staticmethod
    def forward(x: Tensor, a: Width, d: float) -> Tensor:
        return _power_(_ratio(x, a), d).add_(1).reciprocal_().to(x.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Width, float], output: Tensor) -> None:
        x, a, ctx.d = inputs
        ctx.a = None if isinstance(a, Tensor) else a
        ctx.save_for_backward(x, output, *((a,) if isinstance(a, Tensor) else ()))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, y, *rest = ctx.saved_tensors
        a, d, grad = rest[0] if rest else ctx.a, ctx.d, grads[0]
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            slope = cast(Tensor, _Slope.apply(x, a, d))  # differentiable in turn
        else:
            u, y = _inside(x, a, d, y)
            slope = _slope(u, y, a, d)
        to_a = None
        if isinstance(a, Tensor) and ctx.needs_input_grad[1]:
            to_a = (-grad * _times_u(slope, x, a)).to(a.dtype)
        return (grad * slope).to(x.dtype), to_a, None


class _Bell(_TracedBell):
    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Width, float], output: Tensor) -> None:
        _TracedBell.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*_tensors(*inputs))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        x_dot, a_dot, _ = tangents
        x, a = _saved(ctx)
        slope = cast(Tensor, _Slope.apply(x, a, ctx.d))
        total = torch.zeros_like(slope) if x_dot is None else slope * x_dot
        if a_dot is not None:
            total = total - _times_u(slope, x, a) * a_dot
        return total.to(x.dtype)


class _Slope(Function):
    """The derivative of the bell in x, in float32 or more."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, a: Width, d: float) -> Tensor:
        u, y = _inside(x, a, d)
        return _slope(u, y, a, d)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Width, float], output: Tensor) -> None:
        ctx.a, ctx.d = inputs[1:]
        ctx.a = None if isinstance(ctx.a, Tensor) else ctx.a
        ctx.save_for_backward(*_tensors(*inputs))
        ctx.save_for_forward(*_tensors(*inputs))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (grad,) = grads
        x, a = _saved(ctx)
        curvature, mixed = _second(x, a, ctx.d)
        to_a = None
        if isinstance(a, Tensor) and ctx.needs_input_grad[1]:
            to_a = (grad * mixed).to(a.dtype)
        return (grad * curvature).to(x.dtype), to_a, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        x_dot, a_dot, _ = tangents
        curvature, mixed = _second(*_saved(ctx), ctx.d)
        total = torch.zeros_like(curvature) if x_dot is None else curvature * x_dot
        return total if a_dot is None else total + mixed * a_dot


def _slope(u: Tensor, y: Tensor, a: Width, d: float) -> Tensor:
    # u^(d-1) y is about 1/u for large u, so neither product overflows or underflows early.
    return _signed_power(u, d - 1).mul_(y).mul_(y).mul_(-d / a)


def _second(x: Tensor, a: Width, d: float) -> tuple[Tensor, Tensor]:
    """Derivatives of the slope in x and in a. For d < 2 the first is infinite at x = 0."""
    u, y = _inside(x, a, d)
    slope = _slope(u, y, a, d)
    bend = d + 1 - 2 * d * y
    curvature = _power(u, d - 2) * y * y * (d / a) / a * bend
    return curvature, slope / a * (bend - 1)


def _tensors(x: Tensor, a: Width, d: float) -> tuple[Tensor, ...]:
    return (x, a) if isinstance(a, Tensor) else (x,)


def _saved(ctx: Any) -> tuple[Tensor, Width]:
    tensors = ctx.saved_tensors
    return tensors[0], tensors[-1] if ctx.a is None else ctx.a


def _ratio(x: Tensor, a: Width) -> Tensor:
    """x/a in float32 or more, in new memory."""
    full = torch.promote_types(x.dtype, torch.float32)
    return x.to(full) / (a.to(full) if isinstance(a, Tensor) else a)


def _inside(x: Tensor, a: Width, d: float, y: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """u where the bell is not 0, else a number whose powers below d are finite; and the bell."""
    u = _ratio(x, a)
    largest = _largest(u.dtype, d)
    u = u.clamp(-largest, largest)
    if y is None or y.dtype != u.dtype:
        y = _power(u, d).add_(1).reciprocal_()
    return u, y


def _largest(dtype: torch.dtype, d: float) -> float:
    """A number whose power d - 1 is finite while its power d is not."""
    logarithm = math.log(torch.finfo(dtype).max)
    return math.exp(logarithm * (1 / d + min(1 / (d - 1), 1)) / 2)


def _times_u(slope: Tensor, x: Tensor, a: Width) -> Tensor:
    """slope * x/a, which is 0 at infinity."""
    u = _ratio(x, a)
    return slope * torch.where(slope == 0, torch.ones_like(u), u)


def _power(u: Tensor, exponent: float) -> Tensor:
    """|u|^exponent in new memory."""
    if exponent >= 2 and exponent % 2 == 0:
        return _power_(u * u, exponent / 2)
    return _power_(u.clone(), exponent)


def _power_(u: Tensor, exponent: float) -> Tensor:
    """|u|^exponent in place, by multiplication if the exponent is a whole number."""
    if exponent < 0 or not float(exponent).is_integer():
        return u.abs_().pow_(exponent)
    whole = int(exponent)
    if whole % 2:
        u.abs_()
    result = None
    while whole:
        if whole % 2:
            result = (u if whole == 1 else u.clone()) if result is None else result.mul_(u)
        whole //= 2
        if whole:
            u.mul_(u)
    return u.fill_(1) if result is None else result


def _signed_power(u: Tensor, exponent: float) -> Tensor:
    """sign(u) |u|^exponent in new memory."""
    if float(exponent).is_integer() and exponent % 2 == 1:
        return _power(u, exponent - 1).mul_(u)
    return _power(u, exponent).mul_(u.sign())


def _rectangle(x: Tensor, a: Width) -> Tensor:
    """The bell at d = inf. Its gradient is 0."""
    size = x.detach().abs()
    width = a.detach().to(x.dtype) if isinstance(a, Tensor) else torch.tensor(a, dtype=x.dtype)
    shape = (size < width).to(x.dtype) + 0.5 * (size == width)
    return torch.where(x.isnan(), x, shape.to(x.dtype))


def _checked_input(x: Tensor) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"elephant: x must be a torch.Tensor, got {type(x).__module__}.{type(x).__name__}; "
            "elephant_nn.elephant is for JAX and NumPy arrays"
        )
    if x.is_complex():
        raise TypeError("elephant: x must be real, got complex numbers; pass x.real or x.abs()")
    if x.is_quantized:
        raise TypeError("elephant: x is quantised; pass x.dequantize()")
    return x if x.is_floating_point() else x.to(torch.get_default_dtype())


def _check_devices(x: Tensor, a: Tensor) -> None:
    if a.dim() and a.device != x.device:
        raise ValueError(
            f"elephant: x is on {x.device} and a on {a.device}; move a with a.to(x.device)"
        )


def _checked_width(a: float, dtype: torch.dtype) -> float:
    a = float(a)
    # Within these bounds 1/a and d/a are normal numbers.
    smallest = 1024 * torch.finfo(torch.promote_types(dtype, torch.float32)).tiny
    if not smallest <= a <= 1 / smallest:
        raise ValueError(
            "elephant: a is the width of the bell and must be finite and above 0 "
            f"({smallest:.2g} to {1 / smallest:.2g}), got a={a}"
        )
    return a


def _checked_sharpness(d: float) -> float:
    d = float(d)
    if not d > 1:
        raise ValueError(
            "elephant: d is the sharpness of the bell and must be above 1 (at d <= 1 the slope "
            f"jumps at 0), got d={d}"
        )
    return d
