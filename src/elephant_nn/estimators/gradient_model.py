"""The paper's learner behind the interface of the estimators: gradient steps on batches, in JAX."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array
from numpy.typing import NDArray

from elephant_nn.calibration import calibrate
from elephant_nn.estimators.hidden import Floats, bell
from elephant_nn.estimators.stream_model import StreamModel, blocks
from elephant_nn.learners.gradient import gradient
from elephant_nn.learners.learner import Learner
from elephant_nn.nn.networks import emlp


class Fixed(NamedTuple):
    """What is part of the compiled programs."""

    inputs: int
    units: int
    outputs: int
    d: float
    optimizer: str
    updates: int
    regression: bool


class GradientModel(StreamModel):
    """An elephant MLP trained by some gradient steps on every batch, in the order of the samples.

    Where a, sigma_bias and the learning rate are None, the first samples decide. Batches are padded
    with samples of weight 0, and outputs to a power of two, so that few programs are compiled.
    Outputs without a label yet learn to be small: a softmax over the labels so far would learn
    nothing from a first class, and forget more of the others.
    """

    def __init__(
        self, inputs: int, outputs: int, *, units: int, a: float | None, sigma_bias: float | None,
        d: float, optimizer: str, learning_rate: float | None, updates: int, batch_size: int,
        regression: bool, warm_up: int, seed: int, dtype: Any,
    ):  # fmt: skip
        super().__init__(inputs, outputs, warm_up, dtype)
        if not callable(getattr(optax, optimizer, None)):
            raise ValueError(
                f'optimizer must be the name of an optimiser of optax, such as "adam", got '
                f"{optimizer!r}"
            )
        room = outputs if regression else _room(outputs)
        self.fixed = Fixed(inputs, units, room, float(d), optimizer, updates, regression)
        self.given = (a, sigma_bias, learning_rate)
        self.batch_size, self.seed = batch_size, seed
        self.seen = np.zeros(outputs)
        self.settings = np.zeros(3, np.float32)
        self.middle, self.spread = np.zeros(outputs), np.ones(outputs)
        self.state: list[Any] = []

    @property
    def a(self) -> float:
        self.ready()
        return float(self.settings[0])

    @property
    def sigma_bias(self) -> float:
        self.ready()
        return float(self.settings[1])

    @property
    def counts(self) -> Floats:
        """The sum of the targets of each output: samples per class."""
        self.ready()
        return self.seen

    def begin(self, x: Floats, y: Floats, weight: Floats) -> None:
        super().begin(x, y, weight)
        if self.fixed.regression:
            deviation = y.std(0)
            self.middle, self.spread = y.mean(0), np.where(deviation > 0, deviation, 1.0)
        chosen = self._calibrated(self.scaling(x))
        settings = [
            here if given is None else given for given, here in zip(self.given, chosen, strict=True)
        ]
        self.settings, self.seen = np.array(settings, np.float32), np.zeros(y.shape[1])
        self.state = jax.tree.leaves(_init(self.seed, self.settings, self.fixed))

    def _calibrated(self, x: Floats) -> tuple[float, float, float]:
        if len(x) < 2 or not np.ptp(x, axis=0).any():  # as of inputs with mean 0 and variance 1
            x = np.array([[-1.0], [1.0]]) * np.ones(x.shape[1])
        found = calibrate(x, self.fixed.units, d=self.fixed.d)
        assert found.lr is not None
        return found.a, found.sigma_bias, found.lr

    def learn(self, x: Floats, y: Floats, weight: Floats) -> None:
        self.seen = self.seen + weight @ y
        x, y = self.scaling(x).astype(np.float32), ((y - self.middle) / self.spread)
        y = np.pad(y, ((0, 0), (0, self.fixed.outputs - y.shape[1])))
        targets = np.column_stack([y, weight]).astype(np.float32)
        size = 1 if len(x) == 1 else self.batch_size
        for first in range(0, len(x), size):
            rows = slice(first, first + size)
            batch = _padded(x[rows], size), _padded(targets[rows], size)
            self.state = _update(self.state, self.settings, batch, fixed=self.fixed)

    def scores(self, x: Floats) -> NDArray[np.float64]:
        self.ready()
        out = [self.hidden(x[rows])[1] @ self._params()[-1]["w"] for rows in blocks(len(x))]
        used = np.concatenate(out)[:, : len(self.seen)].astype(float)
        return used * self.spread + self.middle if self.fixed.regression else used

    def logits(self, scores: Floats) -> Floats:
        return scores

    def std(self, x: Floats) -> NDArray[np.float64]:
        raise ValueError('return_std needs head="ridge": the gradient head has no variance')

    def hidden(self, x: Floats) -> tuple[Floats, Floats]:
        """Pre-activations and values of the units."""
        self.ready()
        layer = self._params()[0]
        # In float64, so that a prediction does not depend on the rows beside it.
        z = self.scaling(x).astype(np.float64) @ layer["w"].astype(np.float64) + layer["b"]
        return z, bell(z.copy(), float(self.settings[0]), self.fixed.d)

    def grow(self, outputs: int) -> None:
        super().grow(outputs)
        more = outputs - len(self.seen)
        self.seen = np.pad(self.seen, (0, more))
        self.middle, self.spread = np.pad(self.middle, (0, more)), np.ones(outputs)
        if outputs <= self.fixed.outputs:
            return
        old, self.fixed = self.fixed, self.fixed._replace(outputs=_room(outputs))
        if self.state:
            fresh = _init(self.seed, self.settings, self.fixed)
            widened = zip(jax.tree.leaves(fresh), self.state, strict=True)
            self.state = [_with_columns(new, leaf, old.outputs) for new, leaf in widened]

    def arrays(self) -> dict[str, NDArray[Any]]:
        found = super().arrays()
        if self.waiting is None:
            own = ("seen", "settings", "middle", "spread")
            found |= {name: getattr(self, name) for name in own}
            found |= {f"state.{i}": np.asarray(leaf) for i, leaf in enumerate(self.state)}
        return found

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().load(arrays)
        if self.waiting is None:
            for name in ("seen", "settings", "middle", "spread"):
                setattr(self, name, arrays[name])
            self.state = [
                arrays[f"state.{i}"] for i in range(len(arrays)) if f"state.{i}" in arrays
            ]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "state": [np.asarray(leaf) for leaf in self.state]}

    def _params(self) -> Any:
        shapes = jax.eval_shape(partial(_init, fixed=self.fixed), self.seed, self.settings)
        state = jax.tree.unflatten(jax.tree.structure(shapes), self.state)
        return jax.tree.map(np.asarray, state.params)


def _room(labels: int) -> int:
    return max(16, 1 << (labels - 1).bit_length())


def _padded(part: Floats, size: int) -> Floats:
    return np.pad(part, ((0, size - len(part)), *(((0, 0),) * (part.ndim - 1))))


def _with_columns(new: Array, old: Any, columns: int) -> Any:
    """The old array; with more columns than it has, the others as in the new one."""
    if np.shape(new) == np.shape(old):
        return old
    return jnp.asarray(new).at[:, :columns].set(old)


def _learner(settings: Array, fixed: Fixed) -> Learner:
    a, sigma_bias, rate = settings
    sizes = (fixed.inputs, fixed.units, fixed.outputs)
    network = emlp(sizes, a=a, sigma_bias=sigma_bias, d=fixed.d)
    known = {"decay": 0.999} if fixed.optimizer == "rmsprop" else {}
    optimiser = getattr(optax, fixed.optimizer)(rate, **known)

    def loss(out: Array, target: Array) -> Array:
        y, weight = target[:, :-1], target[:, -1]
        if fixed.regression:
            each = jnp.sum((out - y) ** 2, 1)
        else:
            each = optax.softmax_cross_entropy(out, y)
        return jnp.sum(weight * each) / jnp.maximum(jnp.sum(weight), 1e-30)

    return gradient(network, optimiser, loss, updates=fixed.updates)


@partial(jax.jit, static_argnames="fixed")
def _init(seed: int, settings: Array, fixed: Fixed) -> Any:
    learner = _learner(settings, fixed)
    return learner.init(jax.random.key(seed), jnp.zeros((1, fixed.inputs)))


@partial(jax.jit, static_argnames="fixed")
def _update(
    leaves: list[Any], settings: Array, batch: tuple[Array, Array], fixed: Fixed
) -> list[Array]:
    learner = _learner(settings, fixed)
    structure = jax.tree.structure(jax.eval_shape(lambda: _init(0, settings, fixed)))
    return jax.tree.leaves(learner.update(jax.tree.unflatten(structure, leaves), batch))
