"""Neural networks that keep what they learned while data streams by.

Every public name lives here. Names load when first used, so `import elephant_nn` is instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elephant_nn.activations import (
        CLASSICAL,
        Activation,
        elephant,
        elephant_activation,
        elephant_slope,
        elu,
        even_bias,
        fan_in_uniform,
        relu,
        sigmoid,
        tanh,
    )
    from elephant_nn.data.dataset import Dataset
    from elephant_nn.data.loading import load
    from elephant_nn.editing import EditReport, edit, edit_report
    from elephant_nn.kernel import (
        kernel_radius,
        normalised_kernel,
        ntk,
        ntk_as_printed,
        ntk_closed_form,
        update_effect,
    )
    from elephant_nn.learners.gradient import cross_entropy, gradient, squared_error
    from elephant_nn.learners.learner import Contract, Learner
    from elephant_nn.learners.srnn import set_kl, sr_nn
    from elephant_nn.networks import Network, emlp, mlp
    from elephant_nn.sparsity import limit_sparsity, measured_sparsity, slope_of
    from elephant_nn.streams.class_incremental import Tasks, class_incremental
    from elephant_nn.streams.measures import (
        backward_transfer,
        forgetting,
        learning_accuracy,
        overall_accuracy,
        task_matrix,
    )
    from elephant_nn.streams.regression import array_stream, function_stream, sine_stream
    from elephant_nn.streams.stream import Stream, accuracy, learn, shuffled

_HOMES = {
    "activations": (
        "CLASSICAL",
        "Activation",
        "elephant",
        "elephant_activation",
        "elephant_slope",
        "elu",
        "even_bias",
        "fan_in_uniform",
        "relu",
        "sigmoid",
        "tanh",
    ),
    "data.dataset": ("Dataset",),
    "data.loading": ("load",),
    "editing": ("EditReport", "edit", "edit_report"),
    "kernel": (
        "kernel_radius",
        "normalised_kernel",
        "ntk",
        "ntk_as_printed",
        "ntk_closed_form",
        "update_effect",
    ),
    "learners.gradient": ("cross_entropy", "gradient", "squared_error"),
    "learners.learner": ("Contract", "Learner"),
    "learners.srnn": ("set_kl", "sr_nn"),
    "networks": ("Network", "emlp", "mlp"),
    "sparsity": ("limit_sparsity", "measured_sparsity", "slope_of"),
    "streams.class_incremental": ("Tasks", "class_incremental"),
    "streams.measures": (
        "backward_transfer",
        "forgetting",
        "learning_accuracy",
        "overall_accuracy",
        "task_matrix",
    ),
    "streams.regression": ("array_stream", "function_stream", "sine_stream"),
    "streams.stream": ("Stream", "accuracy", "learn", "shuffled"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CLASSICAL",
    "Activation",
    "Contract",
    "Dataset",
    "EditReport",
    "Learner",
    "Network",
    "Stream",
    "Tasks",
    "accuracy",
    "array_stream",
    "backward_transfer",
    "class_incremental",
    "cross_entropy",
    "edit",
    "edit_report",
    "elephant",
    "elephant_activation",
    "elephant_slope",
    "elu",
    "emlp",
    "even_bias",
    "fan_in_uniform",
    "forgetting",
    "function_stream",
    "gradient",
    "kernel_radius",
    "learn",
    "learning_accuracy",
    "limit_sparsity",
    "load",
    "measured_sparsity",
    "mlp",
    "normalised_kernel",
    "ntk",
    "ntk_as_printed",
    "ntk_closed_form",
    "overall_accuracy",
    "relu",
    "set_kl",
    "shuffled",
    "sigmoid",
    "sine_stream",
    "slope_of",
    "squared_error",
    "sr_nn",
    "tanh",
    "task_matrix",
    "update_effect",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'elephant_nn' has no attribute {name!r}")
    return getattr(import_module(f"elephant_nn.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
