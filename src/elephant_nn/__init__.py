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
    from elephant_nn.checking import check_learner
    from elephant_nn.data.dataset import Dataset
    from elephant_nn.data.loading import from_arrays, load
    from elephant_nn.editing import EditReport, edit, edit_report
    from elephant_nn.images import cnn, convmixer
    from elephant_nn.kernel import (
        kernel_radius,
        normalised_kernel,
        ntk,
        ntk_as_printed,
        ntk_closed_form,
        update_effect,
    )
    from elephant_nn.learners.ewc import online_ewc, streaming_ewc
    from elephant_nn.learners.flymodel import flymodel
    from elephant_nn.learners.gradient import cross_entropy, gradient, squared_error
    from elephant_nn.learners.learner import Contract, Learner
    from elephant_nn.learners.sdmlp import sdmlp
    from elephant_nn.learners.srnn import set_kl, sr_nn
    from elephant_nn.learners.statistics import (
        RAW_INPUTS,
        naive_bayes,
        nearest_class_mean,
        streaming_lda,
    )
    from elephant_nn.networks import Network, emlp, mlp
    from elephant_nn.rivals import fuzzy_tiling, maxout, normalised_emlp, winner_take_all
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
    from elephant_nn.streams.stream import Stream, accuracy, accuracy_by_class, learn, shuffled
    from elephant_nn.thin import thin_product

_HOMES = {
    "checking": ("check_learner",),
    "images": (
        "cnn",
        "convmixer",
    ),
    "learners.ewc": ("online_ewc", "streaming_ewc"),
    "learners.flymodel": ("flymodel",),
    "learners.sdmlp": ("sdmlp",),
    "learners.statistics": (
        "RAW_INPUTS",
        "naive_bayes",
        "nearest_class_mean",
        "streaming_lda",
    ),
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
    "data.loading": ("from_arrays", "load"),
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
    "rivals": ("fuzzy_tiling", "maxout", "normalised_emlp", "winner_take_all"),
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
    "streams.stream": ("Stream", "accuracy", "accuracy_by_class", "learn", "shuffled"),
    "thin": ("thin_product",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CLASSICAL",
    "RAW_INPUTS",
    "Activation",
    "Contract",
    "Dataset",
    "EditReport",
    "Learner",
    "Network",
    "Stream",
    "Tasks",
    "accuracy",
    "accuracy_by_class",
    "array_stream",
    "backward_transfer",
    "check_learner",
    "class_incremental",
    "cnn",
    "convmixer",
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
    "flymodel",
    "forgetting",
    "from_arrays",
    "function_stream",
    "fuzzy_tiling",
    "gradient",
    "kernel_radius",
    "learn",
    "learning_accuracy",
    "limit_sparsity",
    "load",
    "maxout",
    "measured_sparsity",
    "mlp",
    "naive_bayes",
    "nearest_class_mean",
    "normalised_emlp",
    "normalised_kernel",
    "ntk",
    "ntk_as_printed",
    "ntk_closed_form",
    "online_ewc",
    "overall_accuracy",
    "relu",
    "sdmlp",
    "set_kl",
    "shuffled",
    "sigmoid",
    "sine_stream",
    "slope_of",
    "squared_error",
    "sr_nn",
    "streaming_ewc",
    "streaming_lda",
    "tanh",
    "task_matrix",
    "thin_product",
    "update_effect",
    "winner_take_all",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'elephant_nn' has no attribute {name!r}")
    return getattr(import_module(f"elephant_nn.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
