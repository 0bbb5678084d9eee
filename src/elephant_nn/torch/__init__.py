"""The elephant for PyTorch: `from elephant_nn.torch import Elephant, elephantize`. Without JAX."""

from elephant_nn.collateral import EditReport
from elephant_nn.torch.activation import Elephant, elephant
from elephant_nn.torch.editing import edit, edit_report
from elephant_nn.torch.elephantize import Change, ElephantizeReport, elephantize
from elephant_nn.torch.forgetting import (
    ForgettingReport,
    Watch,
    accuracy,
    by_label,
    forgetting_report,
)
from elephant_nn.torch.initialisers import even_bias_, fan_in_uniform_
from elephant_nn.torch.ridge import RidgeHead

__all__ = [
    "Change", "EditReport", "Elephant", "ElephantizeReport", "ForgettingReport", "RidgeHead",
    "Watch", "accuracy", "by_label", "edit", "edit_report", "elephant", "elephantize",
    "even_bias_", "fan_in_uniform_", "forgetting_report",
]  # fmt: skip
