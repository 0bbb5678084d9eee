"""A data set: inputs and labels, for training and for testing."""

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

PARTS = ("x_train", "y_train", "x_test", "y_test")


@dataclass(frozen=True)
class Dataset:
    """Inputs and labels, for training and for testing.

    Images have shape (n, height, width, channels), features (n, d); both are uint8 or float32.
    Labels are int32 from 0 to classes - 1; `names` has the original labels, if they differ.
    `from_arrays` makes a data set from any arrays and checks them. Arrays may be memory-mapped
    files: read-only, and read from disk when used.
    """

    name: str
    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    names: tuple[Hashable, ...] = ()

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.y_train.max()) + 1

    @property
    def parts(self) -> dict[str, np.ndarray]:
        """The four arrays by name."""
        return {name: getattr(self, name) for name in PARTS}

    def held_out_rows(self, every: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows of `x_train` to train on, and every n-th of each class held out; ascending."""
        if every < 2:
            raise ValueError(f"held_out: every must be 2 or more, got {every}")
        held_out = np.zeros(len(self.y_train), bool)
        for label in range(self.classes):
            held_out[np.flatnonzero(self.y_train == label)[every - 1 :: every]] = True
        kept, held = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        return kept.astype(np.int32), held.astype(np.int32)

    def held_out(self, every: int) -> "Dataset":
        """Training data only: every n-th training sample of each class becomes the test set."""
        kept, held = self.held_out_rows(every)
        x, y = self.x_train, self.y_train
        return replace(self, x_train=x[kept], y_train=y[kept], x_test=x[held], y_test=y[held])
