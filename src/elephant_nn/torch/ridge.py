"""Ridge regression as the output layer of a frozen PyTorch model: it forgets nothing."""

import copy
import hashlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elephant_nn.arrays import Arrays
from elephant_nn.estimators.files import read_estimator, write_estimator
from elephant_nn.files import StorageError
from elephant_nn.online_ridge import OnlineRidge
from elephant_nn.torch.modes import evaluating


class RidgeHead(nn.Module):
    """A classifier from running sums over frozen features: any order of samples, in any pieces.

    One pass is enough, there is no learning rate, and the strength of the penalty follows from the
    same sums. Features run in evaluation mode without gradients, on whatever device they are; the
    sums are NumPy's, in float64, m^2 numbers for m features.

    Args:
        features: a module whose outputs, flattened, are the features: a model without its last
            layer. It must not be trained any more once `partial_fit` was called.
        classes: how many; labels are 0 to classes - 1. `grow` adds more.
        ridge: the penalty, relative to the mean square of the centred features times the number of
            samples; by default the evidence chooses it.
        forgetting: sums are multiplied by it before every sample; below 1, old samples fade.
        batch_size: how many inputs the features see at once.
    """

    def __init__(
        self, features: nn.Module, classes: int, *, ridge: float | None = None,
        forgetting: float = 1.0, batch_size: int = 1000,
    ):  # fmt: skip
        super().__init__()
        if not isinstance(features, nn.Module):
            raise TypeError(
                f"RidgeHead: features must be an nn.Module, got {type(features).__name__}; a model "
                "without its last layer, for example model[:-1]"
            )
        if classes < 1 or classes != int(classes):
            raise ValueError(f"RidgeHead: classes must be a whole number above 0, got {classes}")
        if batch_size < 1:
            raise ValueError(f"RidgeHead: batch_size must be 1 or more, got {batch_size}")
        OnlineRidge(1, 1, ridge=ridge, forgetting=forgetting)  # checks both
        self.features = features
        self.classes, self.batch_size = int(classes), batch_size
        self.ridge, self.forgetting = ridge, forgetting
        self.sums: OnlineRidge | None = None

    def partial_fit(self, x: Tensor, y: Tensor, sample_weight: Tensor | None = None) -> Self:
        """Learn from more samples: from all of them or, if there is an error, from none."""
        labels = torch.as_tensor(y).detach().cpu().numpy()
        if labels.shape != (len(x),) or labels.dtype.kind not in "iu":
            raise ValueError(
                f"RidgeHead: y must be one whole number for each of {len(x)} samples, got "
                f"{labels.dtype} in shape {labels.shape}"
            )
        if len(labels) and not (labels.min() >= 0 and labels.max() < self.classes):
            raise ValueError(
                f"RidgeHead: labels must be 0 to {self.classes - 1}, got {labels.min()} to "
                f"{labels.max()}; grow(classes) makes room for more"
            )
        weight = None
        if sample_weight is not None:
            weight = torch.as_tensor(sample_weight).detach().double().cpu().numpy()
        blocks = self._blocks(x)
        sums = self.sums if len(blocks) == 1 else copy.deepcopy(self.sums)
        for rows in blocks:
            h = self.measure(x[rows], rows.start)
            if sums is None:
                sums = OnlineRidge(
                    h.shape[1], self.classes, ridge=self.ridge, forgetting=self.forgetting
                )
            targets = np.eye(self.classes)[labels[rows]]
            sums.add(h, targets, None if weight is None else weight[rows])
        self.sums = sums
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Scores of the classes, -inf for those without a sample."""
        if self.sums is None:
            raise RuntimeError("RidgeHead: nothing was learned yet; call partial_fit first")
        solution = self.sums.solution()
        blocks = [solution.predict(self.measure(x[rows], rows.start)) for rows in self._blocks(x)]
        scores = np.concatenate(blocks)
        seen = self.sums.squares > 0  # targets of an edit are scores: their sum can be negative
        scores[:, ~seen] = -np.inf
        return torch.from_numpy(scores).to(x.device, torch.get_default_dtype())

    def predict(self, x: Tensor) -> Tensor:
        """The class with the largest score."""
        return self(x).argmax(1)

    def grow(self, classes: int) -> None:
        """Make room for more classes."""
        if classes < self.classes:
            raise ValueError(f"RidgeHead: {self.classes} classes cannot shrink to {classes}")
        if self.sums is not None:
            self.sums.grow(len(self.sums.sums), classes)
        self.classes = classes

    def measure(self, x: Tensor, first: int = 0) -> NDArray[np.float64]:
        """The features of some inputs, one row per input; errors count inputs from `first`."""
        if not isinstance(x, Tensor):
            raise TypeError(f"RidgeHead: x must be a torch.Tensor, got {type(x).__name__}")
        weights = next(self.features.parameters(), None)
        if weights is not None and weights.device != x.device:
            raise ValueError(
                f"RidgeHead: x is on {x.device} and the features are on {weights.device}; move x "
                "with x.to(device)"
            )
        with evaluating(self.features), torch.no_grad():
            found = self.features(x).flatten(1)
        if found.is_complex():
            raise TypeError("RidgeHead: features are complex; take their real part or magnitude")
        h = found.double().cpu().numpy()
        if self.sums is not None and h.shape[1] != len(self.sums.sums):
            raise ValueError(
                f"RidgeHead: learned from {len(self.sums.sums)} features per input, got "
                f"{h.shape[1]}; inputs or the features module have changed"
            )
        if not np.isfinite(h).all():
            wrong = first + int(np.argmin(np.isfinite(h).all(1)))
            raise ValueError(
                f"RidgeHead: the features of input {wrong} are NaN or infinite; leave such inputs "
                "out"
            )
        return h

    def save(self, path: str | PathLike[str]) -> Path:
        """Write sums and settings to one safetensors file, without the features module."""
        if self.sums is None:
            raise RuntimeError("RidgeHead: nothing was learned yet, so there is nothing to save")
        settings = {
            "classes": self.classes, "ridge": self.ridge, "forgetting": self.forgetting,
            "batch_size": self.batch_size,
        }  # fmt: skip
        state = {"features": _checksum(self.features)}
        arrays: Arrays = {**self.sums.arrays()}
        return write_estimator(Path(path), "RidgeHead", settings, state, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str], features: nn.Module) -> Self:
        """Continue from a file, with the features module that it was written with."""
        settings, state, arrays = read_estimator(Path(path), "RidgeHead")
        if state["features"] != _checksum(features):
            raise StorageError(
                f"{path} was written with another features module: its weights or activations are "
                "different; make it with the same a and d, and load its state_dict first"
            )
        head = cls(features, **settings)
        head._continue_from(arrays)
        return head

    def get_extra_state(self) -> dict[str, Tensor]:
        """The sums, as part of the `state_dict`."""
        arrays = {} if self.sums is None else self.sums.arrays()
        return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the sums of a `state_dict`."""
        self.sums = None
        if state:
            self._continue_from({name: array.numpy() for name, array in state.items()})

    def extra_repr(self) -> str:
        learned = 0 if self.sums is None else int(self.sums.samples)
        return f"classes={self.classes}, samples={learned}"

    def _continue_from(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        features, self.classes = arrays["cross"].shape
        self.sums = OnlineRidge(
            features, self.classes, ridge=self.ridge, forgetting=self.forgetting
        ).load(arrays)

    def _blocks(self, x: Tensor) -> list[slice]:
        size = self.batch_size
        return [slice(first, first + size) for first in range(0, max(len(x), 1), size)]


def _checksum(module: nn.Module) -> str:
    """Of weights, and of modules without any, such as activations; the same on every device."""
    digest = hashlib.sha256()
    for name, part in module.named_modules():
        if not list(part.children()) and not part.state_dict():
            digest.update(f"{name} {part!r}".encode())
    for name, tensor in module.state_dict().items():
        if isinstance(tensor, Tensor):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            flat = tensor.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()
