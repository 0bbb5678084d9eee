"""The paper's initial weights and biases, in place as in `torch.nn.init`."""

import math

import torch
from torch import Tensor


def even_bias_(tensor: Tensor, sigma_bias: float) -> Tensor:
    r"""Fill biases evenly over $\pm\sqrt{3}\,\sigma_{bias}$ along the last dimension.

    Spread biases centre the bells of a layer at different inputs, so some unit responds to any
    input. For many units, sigma_bias is the standard deviation of the biases.
    """
    if not math.isfinite(sigma_bias):
        raise ValueError(f"even_bias_: sigma_bias must be finite, got {sigma_bias}")
    reach = math.sqrt(3) * sigma_bias
    with torch.no_grad():
        spread = torch.linspace(-1, 1, tensor.shape[-1], dtype=torch.float64)
        return tensor.copy_((reach * spread).to(tensor.dtype).expand(tensor.shape))


def fan_in_uniform_(tensor: Tensor, generator: torch.Generator | None = None) -> Tensor:
    r"""Fill weights from $U(-1/\sqrt{in}, 1/\sqrt{in})$, the paper's initial weights of a layer.

    The first dimension is the outputs, as in the weights of `nn.Linear` and `nn.Conv2d`.
    """
    if tensor.dim() < 2:
        raise ValueError(
            "fan_in_uniform_: weights need two or more dimensions, outputs first, got the shape "
            f"{tuple(tensor.shape)}"
        )
    bound = 1 / math.sqrt(tensor[0].numel())
    with torch.no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)
