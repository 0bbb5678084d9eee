"""Ridge regression on a random elephant layer, behind the estimators, in NumPy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elephant_nn.estimators.hidden import ElephantLayer, Floats, bell, layer_at, random_layer
from elephant_nn.estimators.stream_model import StreamModel, blocks
from elephant_nn.online_ridge import OnlineRidge


class RidgeModel(StreamModel):
    """Ridge regression on a random layer, and with `raw` on the scaled inputs beside it."""

    def __init__(
        self, inputs: int, outputs: int, *, units: int, a: float, sigma_bias: float, d: float,
        raw: bool, warm_up: int, ridge: float | None, forgetting: float, seed: int, dtype: Any,
    ):  # fmt: skip
        super().__init__(inputs, outputs, warm_up, dtype)
        self.a, self.sigma_bias = a, sigma_bias
        self.layer = random_layer(seed, inputs, units, a, sigma_bias, d, dtype)
        self.raw = raw
        self.head = OnlineRidge(units + raw * inputs, outputs, ridge=ridge, forgetting=forgetting)

    @property
    def counts(self) -> Floats:
        """The sum of the targets of each output: samples per class."""
        self.ready()
        return self.head.targets

    def begin(self, x: Floats, y: Floats, weight: Floats) -> None:
        super().begin(x, y, weight)
        self.head.clear()

    def learn(self, x: Floats, y: Floats, weight: Floats) -> None:
        for rows in blocks(len(x)):
            self.head.add(self.features(x[rows]), y[rows], weight[rows])

    def scores(self, x: Floats) -> NDArray[np.float64]:
        self.ready()
        solution = self.head.solution()
        found = [solution.predict(self.features(x[rows])) for rows in blocks(len(x))]
        return np.concatenate(found)

    def logits(self, scores: Floats) -> Floats:
        """Scores of classes are the target of the true class with Gaussian noise, whose variance is
        the squared error that is expected on new samples."""
        return scores / max(self.head.solution().error, 1e-6)

    def std(self, x: Floats) -> NDArray[np.float64]:
        self.ready()
        return np.concatenate([self.head.std(self.features(x[rows])) for rows in blocks(len(x))])

    def features(self, x: Floats) -> Floats:
        scaled, units = self.scaling(x), len(self.layer.biases)
        first = units + self.raw * x.shape[1]
        h = np.empty((len(x), len(self.head.sums)), x.dtype)
        np.matmul(scaled, self.layer.weights, out=h[:, :units])
        h[:, :units] += self.layer.biases
        bell(h[:, :units], self.layer.a, self.layer.d)
        if self.raw:
            h[:, units:first] = scaled
        if self.added is not None:
            h[:, first:] = self.added(scaled)
        return h

    def respread(self, x: Floats, units: int, seed: int) -> None:
        """Add units that respond to these inputs, and so hardly to those learned so far."""
        if self.waiting is not None:
            raise ValueError("respread is for a model that has learned its first samples")
        new, old = layer_at(self.scaling(x), units, self.a, self.layer.d, seed), self.added
        if old is not None:
            new = ElephantLayer(np.hstack([old.weights, new.weights]),
                                np.concatenate([old.biases, new.biases]), new.a, new.d)  # fmt: skip
        self.added = new
        self.head.grow(len(self.head.sums) + units, len(self.head.targets))

    def hidden(self, x: Floats) -> tuple[Floats, Floats]:
        """Pre-activations and values of the units."""
        self.ready()
        scaled = self.scaling(x)
        layers = [self.layer] if self.added is None else [self.layer, self.added]
        z, h = zip(
            *[(layer.pre_activations(scaled), layer(scaled)) for layer in layers], strict=True
        )
        return np.hstack(z), np.hstack(h)

    def grow(self, outputs: int) -> None:
        super().grow(outputs)
        self.head.grow(len(self.head.sums), outputs)

    def arrays(self) -> dict[str, NDArray[Any]]:
        found = super().arrays()
        if self.waiting is None:
            found |= {"weights": self.layer.weights, "biases": self.layer.biases}
            found |= {f"sums.{name}": array for name, array in self.head.arrays().items()}
            if self.added is not None:
                found |= {"added.weights": self.added.weights, "added.biases": self.added.biases}
        return found

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().load(arrays)
        if self.waiting is None:
            a, d = self.layer.a, self.layer.d
            self.layer = ElephantLayer(arrays["weights"], arrays["biases"], a, d)
            if "added.weights" in arrays:
                added = arrays["added.weights"], arrays["added.biases"]
                self.added = ElephantLayer(*added, a, d)
            self.head.load({name.removeprefix("sums."): array for name, array in arrays.items()})
