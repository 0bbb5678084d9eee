"""Turn a model whose activation is a function call into a graph, where it can be replaced."""

from torch import fx, nn
from torch.testing import assert_close

from elephant_nn.torch.finding import Inputs, Place, last_hidden
from elephant_nn.torch.modes import evaluating, trace_for_both_modes


def graph_module(
    model: nn.Module, inputs: Inputs, notes: list[str]
) -> tuple[nn.Module, list[Place]]:
    """A model whose activation is a function call as a graph over the same state, and its last
    hidden activation. What a reader should know is added to `notes`."""
    graph, new = trace_for_both_modes(model)
    shell = nn.Module()
    shell.__dict__.update(model.__dict__)
    shell._modules = dict(model._modules)
    for name, module in new.items():
        shell.add_module(name, module.train(model.training))
    made = fx.GraphModule(shell, graph, type(model).__name__)
    made.training = model.training
    # A GraphModule has only what its graph uses: give it the whole state, in the model's order.
    made._modules = {**model._modules, **new}
    made._parameters, made._buffers = dict(model._parameters), dict(model._buffers)
    made._non_persistent_buffers_set = set(model._non_persistent_buffers_set)
    _check(model, made, inputs)
    notes.append(
        "The activation is a function call, so the model returned is a torch.fx.GraphModule with "
        f"the same parameters; other methods of {type(model).__name__} are not on it."
    )
    if new:
        notes.append(f"Functional dropout became modules: {', '.join(new)}.")
    return made, [last_hidden(made, made.graph)]


def _check(model: nn.Module, made: nn.Module, inputs: Inputs) -> None:
    """Raise unless a traced graph computes what the model does, in evaluation mode."""
    try:
        with evaluating(model), evaluating(made):
            assert_close(inputs.run(made), inputs.run(model), equal_nan=True)
    except (AssertionError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"elephantize: the graph that torch.fx traces of {type(model).__name__} does not give "
            "the outputs of the model, whose forward pass may depend on arguments that are left "
            "out; make the activation a module and name it, layers=[...]"
        ) from error
