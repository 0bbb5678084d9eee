"""Replace the last hidden activation of a model by the elephant, with the paper's initial layer."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from elephant_nn.calibration import QUANTILES, Head, responses, settings
from elephant_nn.torch.activation import Elephant
from elephant_nn.torch.finding import Attention, Inputs, Place, last_hidden, named, traced
from elephant_nn.torch.graphs import graph_module
from elephant_nn.torch.initialisers import even_bias_, fan_in_uniform_
from elephant_nn.torch.modes import evaluating, measuring

_PAIRS, _ROWS = 1000, 300


@dataclass(frozen=True)
class Change:
    """One activation that `elephantize` replaced.

    Attributes:
        activation: its name in the model returned.
        replaced: what it was.
        layer: the name of the layer before it, or "" if there is none.
        biases: where the biases were spread: a name, or "" if there was no place.
        new_weights: whether the weights of the layer were drawn anew.
        units: the number of units.
        a: half width of the bells.
        sigma_bias: spread of the biases.
        d: sharpness.
        active: mean share of the units that respond to an example, with values above 1/2.
        overlap: mean cosine similarity between the features of two examples.
        reasons: why, one sentence each.
    """

    activation: str
    replaced: str
    layer: str
    biases: str
    new_weights: bool
    units: int
    a: float
    sigma_bias: float
    d: float
    active: float
    overlap: float
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        numbers = (
            f"{self.activation}: {self.replaced} -> Elephant(a={self.a:.3g}, d={self.d:g}), "
            f"sigma_bias={self.sigma_bias:.3g}, {self.units:,} units\n"
            f"  {self.active:.1%} of the units respond to an example; features of two examples "
            f"have a cosine similarity of {self.overlap:.2f}"
        )
        return "\n  ".join([numbers, *self.reasons])


@dataclass(frozen=True)
class ElephantizeReport:
    """What `elephantize` changed and why; `print` shows it."""

    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*map(str, self.changes), *self.notes])


def elephantize(
    model: nn.Module, example_inputs: Any, layers: Sequence[str] | None = None, *,
    a: float | None = None, sigma_bias: float | None = None, d: float = 4,
    keep_weights: bool = False, learnable: bool = False, head: Head = "gradient",
) -> tuple[nn.Module, ElephantizeReport]:  # fmt: skip
    """Replace the last hidden activation of a model by the elephant.

    The layer before it gets the paper's initial weights and evenly spread biases. Where a
    normalisation lies between them, the spread biases are the normalisation's. Parameters keep
    their names and shapes, so any `state_dict` of the model still loads, and they stay the same
    objects, so an optimiser still finds them.

    Args:
        model: it is changed in place. If its activation is a function call, as in
            `torch.relu(self.fc(x))`, the model returned is a `torch.fx.GraphModule` with the same
            parameters.
        example_inputs: two or more, as the model sees them, better a few hundred: a tensor, a tuple
            of arguments or a dictionary of keyword arguments.
        layers: names of activation modules to replace, as in `model.named_modules()`, or of a
            transformer layer. Default: the last activation before a layer with weights, which
            `torch.fx` finds.
        a: half width of the bells. Default: by the rule of `elephant_nn.calibration`, on the
            pre-activations of the examples.
        sigma_bias: spread of the biases. Default: by the same rule.
        d: sharpness of the bells.
        keep_weights: keep the weights of the layer. Its biases are spread, too, around the mean
            pre-activation of each unit. Weights that need no gradient are always kept.
        learnable: learn the width. This adds a parameter, so make the optimiser afterwards.
        head: "gradient" if the model is trained by gradient steps, "ridge" for a `RidgeHead`.

    Returns:
        The model and a report of what changed.
    """
    if head not in QUANTILES:
        raise ValueError(f"elephantize: head must be one of {tuple(QUANTILES)}, got {head!r}")
    inputs = _checked(model, example_inputs)
    Elephant(1.0 if a is None else a, d)  # checks both
    notes: list[str] = []
    if layers is not None:
        with evaluating(model):
            places = named(model, layers, inputs)
    else:
        places = [last_hidden(model, traced(model))]
        if places[0].owner is None:
            model, places = graph_module(model, inputs, notes)
    changes = []
    with _as_it_was_on_errors(places):
        for place in places:
            activation = Elephant(1.0 if a is None else a, d, learnable=learnable)
            _check_layer(place, keep_weights)
            _put(model, place, activation)
            change = _settle(model, place, activation, inputs, a, sigma_bias, keep_weights, head)
            changes.append(change)
    if isinstance(model, fx.GraphModule):
        model.recompile()
    return model, ElephantizeReport(tuple(changes), tuple(notes))


def _checked(model: Any, example_inputs: Any) -> Inputs:
    """The example inputs, if model and inputs are what can be worked with."""
    if isinstance(model, torch.jit.ScriptModule) or hasattr(model, "_orig_mod"):
        raise TypeError(
            "elephantize: the model is compiled already; call elephantize first and compile "
            "afterwards"
        )
    if not isinstance(model, nn.Module):
        raise TypeError(f"elephantize: model must be an nn.Module, got {type(model).__name__}")
    for name, module in model.named_modules():
        if "quantized" in type(module).__module__ and "Dynamically" not in type(module).__name__:
            raise TypeError(
                f"elephantize: {name!r} is quantised ({type(module).__name__}); elephantize the "
                "model before it is quantised"
            )
    parameters = [*model.named_parameters(), *model.named_buffers()]
    for name, parameter in parameters:
        if is_lazy(parameter):
            raise ValueError(
                f"elephantize: {name!r} has no shape yet; run the model once on example inputs"
            )
        if parameter.is_complex():
            raise TypeError(f"elephantize: {name!r} is complex; the elephant is for real numbers")
    if isinstance(example_inputs, Mapping):
        inputs = Inputs((), dict(example_inputs))
    elif isinstance(example_inputs, tuple | list):
        inputs = Inputs(tuple(example_inputs), {})
    else:
        inputs = Inputs((example_inputs,), {})
    if not inputs.tensors:
        raise TypeError(
            "elephantize: example_inputs must be a tensor, or a tuple or dictionary with tensors, "
            f"got {type(example_inputs).__name__}"
        )
    devices = {parameter.device for _, parameter in parameters}
    for tensor in inputs.tensors:
        if tensor.is_complex():
            raise TypeError(
                "elephantize: example_inputs are complex; the elephant is for real ones"
            )
        if len(devices) == 1 and tensor.device not in devices:
            raise ValueError(
                f"elephantize: example_inputs are on {tensor.device} and the model on "
                f"{devices.pop()}; move them to the same device"
            )
        if tensor.dim() and len(tensor) < 2:
            raise ValueError(
                "elephantize: example_inputs must be two or more inputs in one batch, got the "
                f"shape {tuple(tensor.shape)}"
            )
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise ValueError(
                "elephantize: example_inputs have NaN or infinity; leave such rows out"
            )
    return inputs


@contextmanager
def _as_it_was_on_errors(places: Sequence[Place]) -> Iterator[None]:
    modules = [module for place in places for module in (place.layer, place.norm) if module]
    tensors = [t for module in modules for t in (*module.parameters(), *module.buffers())]
    values = [t.detach().clone() for t in tensors]
    old = [(p.owner, p.attribute, getattr(p.owner, p.attribute)) for p in places if p.owner]
    try:
        yield
    except BaseException:
        with torch.no_grad():
            for tensor, value in zip(tensors, values, strict=True):
                tensor.copy_(value)
        for owner, attribute, activation in old:
            if not isinstance(activation, nn.Module):
                delattr(owner, attribute)  # a function of a transformer layer
            setattr(owner, attribute, activation)
        raise


def _check_layer(place: Place, keep_weights: bool) -> None:
    if place.layer is not None and parametrize.is_parametrized(place.layer) and not keep_weights:
        raise ValueError(
            f"elephantize: weights of {place.layer_name!r} are parametrised and cannot be drawn "
            "anew; pass keep_weights=True"
        )


def _put(model: nn.Module, place: Place, activation: Elephant) -> None:
    if place.owner is not None:
        activation.train(place.owner.training)
        activation.to(next((p.device for p in model.parameters()), torch.device("cpu")))
        setattr(place.owner, place.attribute, activation)
        if isinstance(place.owner, Attention):
            place.owner.activation_relu_or_gelu = 0  # the fused path knows no other activations
        return
    if not isinstance(model, fx.GraphModule) or place.node is None:
        raise TypeError(f"elephantize: {place.name!r} is not part of a graph")
    name = f"{place.name}_elephant"
    model.add_submodule(name, activation)
    source = place.node.args[0] if place.node.args else place.node.kwargs["input"]
    with model.graph.inserting_after(place.node):
        made = model.graph.call_module(name, (source,))
    place.node.replace_all_uses_with(made)
    model.graph.erase_node(place.node)
    model.recompile()
    place.name = name


def _settle(
    model: nn.Module, place: Place, activation: Elephant, inputs: Inputs, a: float | None,
    sigma_bias: float | None, keep_weights: bool, head: Head,
) -> Change:  # fmt: skip
    """Initial weights, then settings from pre-activations without biases, then biases."""
    reasons: list[str] = []
    layer: Any = place.layer
    norm: Any = place.norm
    frozen = layer is not None and not layer.weight.requires_grad
    anew = layer is not None and not (keep_weights or frozen)
    spread = norm if norm is not None else layer
    bias: Any = None if spread is None else spread.bias
    with torch.no_grad():
        if anew:
            fan_in_uniform_(layer.weight)
            reasons.append(f"{place.layer_name}: weights from U(+-1/sqrt(inputs)), as in the paper")
            if layer.bias is not None:
                layer.bias.zero_()
            if norm is not None:
                norm.weight.fill_(1)
                if hasattr(norm, "reset_running_stats"):
                    norm.reset_running_stats()
                reasons.append(f"{place.norm_name}: scale 1, statistics of the examples")
        elif layer is not None:
            why = "they need no gradient" if frozen else "as requested"
            reasons.append(f"{place.layer_name}: weights kept, {why}")
        if bias is not None:
            bias.zero_()
    z = _seen(model, activation, inputs)[0]
    axis = _units_axis(z, place, bias)
    z = _rows(z, axis)
    suggested = settings(_differences(z, place), z.shape[1], head)
    width = suggested[0] if a is None else a
    reach = suggested[1] if sigma_bias is None else sigma_bias
    if a is None:
        reasons.append(
            f"a: {QUANTILES[head]:.0%} of the differences of pre-activations between two examples "
            "are smaller"
        )
    if bias is None:
        reach = 0.0
        reasons.append("no biases to spread before it: some inputs may get no response")
    else:
        even_bias_(bias, reach)
        where = place.norm_name if norm is not None else place.layer_name
        around = ""
        if not anew:
            with torch.no_grad():
                bias -= z.mean(0).to(bias.dtype)
            around = " around the mean pre-activation of each unit"
        reasons.append(f"{where}: biases even over +-{math.sqrt(3) * reach:.3g}{around}")
    activation.set_width(width)
    outputs = _rows(_seen(model, activation, inputs)[1], axis)
    some = outputs[torch.linspace(0, len(outputs) - 1, min(_ROWS, len(outputs))).long()]
    active, overlap = responses(some.double().cpu().numpy())
    return Change(
        place.name, place.old, place.layer_name,
        "" if bias is None else (place.norm_name or place.layer_name), anew, z.shape[1], width,
        reach, activation.d, active, overlap, tuple(reasons),
    )  # fmt: skip


def _seen(model: nn.Module, activation: Elephant, inputs: Inputs) -> tuple[Tensor, Tensor]:
    """What comes into and out of an activation for the examples."""
    seen: list[tuple[Tensor, Tensor]] = []
    hook = activation.register_forward_hook(lambda _, args, out: seen.append((args[0], out)))
    try:
        with measuring(model):
            inputs.run(model)
    finally:
        hook.remove()
    return seen[-1]


def _units_axis(z: Tensor, place: Place, bias: Tensor | None) -> int:
    """The axis of pre-activations that has one entry per bias."""
    spread = place.layer if place.norm is None else place.norm
    last_first = z.dim() < 3 or isinstance(spread, nn.Linear | nn.LayerNorm)
    axes = (-1, 1) if last_first else (1, -1)
    if bias is None or bias.dim() != 1:
        return axes[0]
    for axis in axes[: z.dim()]:
        if z.shape[axis] == len(bias):
            return axis
    raise ValueError(
        f"elephantize: {place.name!r} sees the shape {tuple(z.shape)}, without an axis for the "
        f"{len(bias)} units of {place.norm_name or place.layer_name!r}; put the activation right "
        "after that layer, before a Flatten or reshape"
    )


def _rows(z: Tensor, axis: int) -> Tensor:
    """One column per unit."""
    return z.movedim(axis, -1).reshape(-1, z.shape[axis])


def _differences(z: Tensor, place: Place) -> Any:
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randint(len(z), (2, _PAIRS), generator=generator).to(z.device)
    apart = (z[first] - z[second]).double().cpu().numpy()
    apart = apart[apart.any(1)]
    if not len(apart) or np.abs(apart).max() < 1e-5 * float(z.abs().max()):  # rounding errors
        raise ValueError(
            f"elephantize: all examples look the same to {place.name!r}; give different inputs"
        )
    return apart
