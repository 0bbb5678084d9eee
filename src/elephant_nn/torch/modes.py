"""Run a model without leaving traces: training modes, and the statistics of batch normalisation."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import fx, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _NormBase

from elephant_nn.torch.finding import traced

DROPOUTS: dict[Any, type[nn.Module]] = {
    functional.dropout: nn.Dropout,
    functional.dropout1d: nn.Dropout1d,
    functional.dropout2d: nn.Dropout2d,
    functional.dropout3d: nn.Dropout3d,
    functional.alpha_dropout: nn.AlphaDropout,
}


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, and afterwards the modes as they were."""
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        yield
    finally:
        for module, training in modes.items():
            module.training = training


@contextmanager
def measuring(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, but batch normalisation that has no statistics yet uses the batch's.

    They become its running statistics.
    """
    with evaluating(model):
        fresh = [
            m
            for m in model.modules()
            if isinstance(m, _NormBase) and m.num_batches_tracked is not None
            and not m.num_batches_tracked
        ]  # fmt: skip
        momenta = [m.momentum for m in fresh]
        for norm in fresh:
            norm.training, norm.momentum = True, 1.0
        try:
            yield
        finally:
            for norm, momentum in zip(fresh, momenta, strict=True):
                norm.momentum = momentum
                if norm.num_batches_tracked is not None:
                    norm.num_batches_tracked.zero_()  # training starts its own average


def trace_for_both_modes(model: nn.Module) -> tuple[fx.Graph, dict[str, nn.Module]]:
    """A graph that is right for training and evaluation, and new modules that it needs.

    A traced call has `training` written into it as a constant, so functional dropout that follows
    `self.training` becomes a module.
    """
    graphs = []
    for mode in (True, False):
        with evaluating(model):
            model.train(mode)
            graphs.append(traced(model))
    training, evaluation = graphs
    new: dict[str, nn.Module] = {}
    for node, other in zip(list(training.nodes), list(evaluation.nodes), strict=False):
        if node.target not in DROPOUTS or other.target != node.target or _same(node, other):
            continue
        p = node.kwargs.get("p", node.args[1] if len(node.args) > 1 else 0.5)
        name = f"_{node.name}"
        new[name] = DROPOUTS[node.target](p)
        for graph, old in ((training, node), (evaluation, other)):
            with graph.inserting_before(old):
                made = graph.call_module(name, (old.args[0] if old.args else old.kwargs["input"],))
            old.replace_all_uses_with(made)
            graph.erase_node(old)
    if str(training) != str(evaluation):
        raise ValueError(
            f"elephantize: {type(model).__name__} computes differently in training, which a traced "
            "graph cannot; make the activation a module, such as nn.ReLU, and name it in layers"
        )
    return training, new


def _same(node: fx.Node, other: fx.Node) -> bool:
    return str(node.args) == str(other.args) and str(node.kwargs) == str(other.kwargs)
