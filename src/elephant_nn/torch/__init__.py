"""The elephant for PyTorch: `from elephant_nn.torch import Elephant, elephantize`. Without JAX."""

from elephant_nn.torch.activation import Elephant, elephant
from elephant_nn.torch.elephantize import Change, ElephantizeReport, elephantize
from elephant_nn.torch.initialisers import even_bias_, fan_in_uniform_

__all__ = [
    "Change", "Elephant", "ElephantizeReport", "elephant", "elephantize", "even_bias_",
    "fan_in_uniform_",
]  # fmt: skip
