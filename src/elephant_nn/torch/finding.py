"""Find an activation in a user's model, and the layer before it."""

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional

from elephant_nn.torch.activation import Elephant

Attention = nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMS = (
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm, nn.LayerNorm, nn.GroupNorm,
)  # fmt: skip
ACTIVATIONS = (
    Elephant, nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.RReLU, nn.PReLU, nn.ELU, nn.SELU, nn.CELU,
    nn.GELU, nn.SiLU, nn.Mish, nn.Tanh, nn.Sigmoid, nn.LogSigmoid, nn.Softplus, nn.Softsign,
    nn.Hardtanh, nn.Hardswish, nn.Hardsigmoid, nn.Threshold, nn.Tanhshrink,
)  # fmt: skip
_NAMES = [
    "relu",
    "relu_",
    "relu6",
    "leaky_relu",
    "leaky_relu_",
    "rrelu",
    "prelu",
    "logsigmoid",
    "elu",
    "elu_",
    "selu",
    "celu",
    "gelu",
    "silu",
    "mish",
    "tanh",
    "sigmoid",
    "softplus",
    "softsign",
    "hardtanh",
    "hardswish",
    "hardsigmoid",
    "tanhshrink",
]
FUNCTIONS = {
    getattr(module, name): name
    for name in _NAMES
    for module in (torch, functional)
    if hasattr(module, name)
}
METHODS = {"relu", "relu_", "tanh", "tanh_", "sigmoid", "sigmoid_"}
PRODUCTS = {
    functional.linear, functional.conv1d, functional.conv2d, functional.conv3d, torch.matmul,
    torch.bmm, torch.einsum, operator.matmul, functional.bilinear,
}  # fmt: skip


@dataclass
class Place:
    """An activation: an attribute of a module, or a node of a traced graph."""

    name: str
    old: str
    owner: nn.Module | None = None
    attribute: str = ""
    node: fx.Node | None = None
    layer_name: str = ""
    layer: nn.Module | None = None
    norm_name: str = ""
    norm: nn.Module | None = None


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, Elephant) or super().is_leaf_module(m, module_qualified_name)


def traced(model: nn.Module) -> fx.Graph:
    """The graph of a model's forward pass."""
    try:
        return _Tracer().trace(model)
    except Exception as error:  # the forward pass may raise anything when it meets proxies
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"elephantize: torch.fx cannot trace {type(model).__name__} ({reason}); name the "
            f"activation to replace, layers=[...]; {_choices(model)}"
        ) from error


def last_hidden(model: nn.Module, graph: fx.Graph) -> Place:
    """The last activation of a graph after which comes a layer with weights."""
    modules = dict(model.named_modules())
    weighted: set[fx.Node] = set()  # nodes after which there are weights
    outputs: list[str] = []
    for node in reversed(graph.nodes):
        found = _activation(node, modules)
        inside = found is not None and found.layer is not None  # a transformer layer
        if found and (inside or node in weighted):
            if not inside:
                _add_layers(found, node, modules)
            return found
        if found:
            outputs.append(found.name)
        if node in weighted or _has_weights(node, modules):
            weighted.update(node.all_input_nodes)
    if outputs:
        raise ValueError(
            f"elephantize: the only activation, {outputs[-1]}, is at the output of the model, with "
            "no layer after it; if a head follows elsewhere, name it: "
            f"layers=[{outputs[-1]!r}]"
        )
    raise ValueError(
        f"elephantize: {type(model).__name__} has no activation that is known, such as nn.ReLU or "
        "torch.relu, between two layers; put elephant_nn.torch.Elephant where one should be"
    )


def named(model: nn.Module, names: Sequence[str], inputs: "Inputs") -> list[Place]:
    """The activations of these names, with the layers that run before them."""
    if isinstance(names, str):
        names = [names]
    modules = dict(model.named_modules())
    places = {}
    for name in names:
        module = modules.get(name)
        if module is None:
            raise ValueError(f"elephantize: there is no module {name!r}; {_choices(model)}")
        place = _module_place(name, module, modules)
        if place is None and not list(module.parameters()) and name:
            place = _attribute_place(name, module, modules)
        if place is None:
            raise ValueError(
                f"elephantize: {name!r} is {type(module).__name__}, not an activation; "
                f"{_choices(model)}"
            )
        places[place.name] = place
    return _in_order(model, places, modules, inputs)


@dataclass
class Inputs:
    """Example inputs of a model, however many arguments it takes."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def run(self, model: nn.Module) -> Any:
        with torch.no_grad():
            return model(*self.args, **self.kwargs)

    @property
    def tensors(self) -> list[Tensor]:
        return [v for v in (*self.args, *self.kwargs.values()) if isinstance(v, Tensor)]


def _in_order(
    model: nn.Module, places: dict[str, Place], modules: dict[str, nn.Module], inputs: Inputs
) -> list[Place]:
    """Run the model: the layer before an activation is the last one that ran."""
    last: dict[str, tuple[str, nn.Module]] = {}
    order: list[Place] = []

    def layer_ran(name: str, kind: str) -> Any:
        def hook(module: nn.Module, *_: Any) -> None:
            last[kind] = (name, module)
            if kind == "layer":
                last.pop("norm", None)

        return hook

    def activation_ran(place: Place) -> Any:
        def hook(*_: Any) -> None:
            if place in order:
                raise ValueError(
                    f"elephantize: the activation {place.name!r} is used more than once; give each "
                    "layer a module of its own, or leave layers out to replace the last use only"
                )
            if place.layer is None and "layer" in last:
                place.layer_name, place.layer = last["layer"]
            if place.norm is None and "norm" in last:
                place.norm_name, place.norm = last["norm"]
            order.append(place)

        return hook

    hooks = []
    for name, module in modules.items():
        if isinstance(module, LAYERS):
            hooks.append(module.register_forward_hook(layer_ran(name, "layer")))
        elif isinstance(module, NORMS) and getattr(module, "bias", None) is not None:
            hooks.append(module.register_forward_hook(layer_ran(name, "norm")))
    for place in places.values():
        if place.layer is None:
            hooks.append(modules[place.name].register_forward_pre_hook(activation_ran(place)))
        else:
            order.append(place)  # inside a transformer layer, where the layer is known
    try:
        inputs.run(model)
    finally:
        for hook in hooks:
            hook.remove()
    for place in places.values():
        if place not in order:
            raise ValueError(
                f"elephantize: {place.name!r} does not run for the example inputs; name an "
                "activation that does"
            )
    return order


def _activation(node: fx.Node, modules: dict[str, nn.Module]) -> Place | None:
    if node.op == "call_module":
        name = str(node.target)
        place = _module_place(name, modules[name], modules)
        uses = sum(other.target == node.target for other in node.graph.nodes)
        if place is not None and uses > 1:
            if place.layer is not None:
                raise ValueError(
                    f"elephantize: {name!r} runs {uses} times, and only its last run could be "
                    "meant; use one module for each run"
                )
            place.owner, place.node = None, node
        elif place is not None and place.layer is None:
            place.node = node
        return place
    if node.op == "call_function" and node.target in FUNCTIONS:
        return Place(node.name, FUNCTIONS[node.target], node=node)
    if node.op == "call_method" and node.target in METHODS:
        return Place(node.name, str(node.target).rstrip("_"), node=node)
    return None


def _module_place(name: str, module: nn.Module, modules: dict[str, nn.Module]) -> Place | None:
    if isinstance(module, ACTIVATIONS):
        return _attribute_place(name, module, modules)
    if not type(module).__module__.startswith("torch.nn"):
        return None
    for inner, layer in reversed(list(module.named_modules(prefix=name))):
        if isinstance(layer, Attention):
            return Place(
                f"{inner}.activation".lstrip("."), _name(layer.activation), layer, "activation",
                layer_name=f"{inner}.linear1".lstrip("."), layer=layer.linear1,
            )  # fmt: skip
    return None


def _attribute_place(name: str, module: nn.Module, modules: dict[str, nn.Module]) -> Place:
    if not name:
        raise ValueError(
            "elephantize: the model is an activation itself; use Elephant in its place"
        )
    parent, _, attribute = name.rpartition(".")
    return Place(name, type(module).__name__, modules[parent], attribute)


def _add_layers(place: Place, node: fx.Node, modules: dict[str, nn.Module]) -> None:
    for name, module in _before(node, modules, set()):
        if isinstance(module, NORMS) and place.norm is None:
            place.norm_name, place.norm = name, module
        elif isinstance(module, LAYERS):
            place.layer_name, place.layer = name, module
            return


def _before(
    node: fx.Node, modules: dict[str, nn.Module], seen: set[fx.Node]
) -> Iterator[tuple[str, nn.Module]]:
    """Layers and norms before a node, nearest first, up to other activations."""
    for previous in node.all_input_nodes:
        if previous in seen or _activation(previous, modules) is not None:
            continue
        seen.add(previous)
        if previous.op == "call_module":
            name = str(previous.target)
            module = modules[name]
            if isinstance(module, LAYERS):
                yield name, module
                continue
            if isinstance(module, NORMS):
                if getattr(module, "bias", None) is not None:
                    yield name, module
            elif list(module.parameters()):
                continue
        yield from _before(previous, modules, seen)


def _has_weights(node: fx.Node, modules: dict[str, nn.Module]) -> bool:
    if node.op == "call_module":
        return any(p.dim() > 1 for p in modules[str(node.target)].parameters())
    return node.op == "call_function" and node.target in PRODUCTS


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _choices(model: nn.Module) -> str:
    names = [
        name
        for name, module in model.named_modules()
        if name and isinstance(module, (*ACTIVATIONS, nn.TransformerEncoderLayer))
    ]
    if not names:
        return "the model has no activation modules, so put Elephant into its code"
    return "its activations are " + ", ".join(map(repr, names))
