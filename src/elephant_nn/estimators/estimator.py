"""What the estimators for scikit-learn share: settings, validation, files."""

import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from elephant_nn.arrays import Arrays
from elephant_nn.estimators.checks import check_inputs, check_settings
from elephant_nn.estimators.files import read_estimator, write_estimator
from elephant_nn.estimators.hidden import Floats
from elephant_nn.estimators.ridge_model import RidgeModel

FAR = 10.0
"""Inputs that are as many deviations away from the first samples are far from them."""
SETTINGS = """
        n_units: number of elephant units.
        head: "ridge" for ridge regression on random units, solved from running sums; "gradient"
            for the paper's network, all of whose weights learn by gradient steps.
        ridge: the penalty relative to the mean diagonal of the sums of products; default: chosen
            by the evidence, which is computed from the same sums.
        forgetting: below 1, older samples fade by this factor with every new one: for streams that
            drift. 1 forgets nothing.
        raw_inputs: whether the scaled inputs stand beside the units; "auto": if there are at most
            twice as many of them as units. The gradient head does not use them.
        a: width of the units; default: 2 with the ridge head, 3 for numbers, else by
            `elephant_nn.calibrate`.
        sigma_bias: spread of their biases; default as for a.
        d: their sharpness.
        warm_up: inputs are scaled by this many first samples, which are kept until then.
        optimizer: with the gradient head, the name of an optimiser of optax.
        learning_rate: its rate.
        updates: its steps per batch.
        batch_size: samples per batch.
        n_epochs: passes of `fit` with the gradient head, each in another order. `partial_fit`
            makes one, in the order of the samples.
        random_state: seed of the random weights; give one for repeatable results.
"""


class Estimator(BaseEstimator):  # type: ignore[misc]
    """What the classifier and the regressor share."""

    _width = 2.0  # default of a and sigma_bias with the ridge head

    def __init__(
        self, n_units: int = 1000, *, head: str = "ridge", ridge: float | None = None,
        forgetting: float = 1.0, raw_inputs: bool | str = "auto", a: float | None = None,
        sigma_bias: float | None = None, d: float = 4.0, warm_up: int = 100,
        optimizer: str = "rmsprop", learning_rate: float | None = None, updates: int = 2,
        batch_size: int = 10, n_epochs: int = 10, random_state: Any = None,
    ):  # fmt: skip
        self.n_units = n_units
        self.head = head
        self.ridge = ridge
        self.forgetting = forgetting
        self.raw_inputs = raw_inputs
        self.a = a
        self.sigma_bias = sigma_bias
        self.d = d
        self.warm_up = warm_up
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.updates = updates
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything and learn from these samples.

        With the ridge head the result is that of `partial_fit` with the same samples, in any
        pieces.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        X, targets, weight = self._learn(X, y, sample_weight)
        if self.head == "gradient":
            rng = np.random.default_rng(self.seed_)
            for _ in range(self.n_epochs - 1):
                order = rng.permutation(len(X))
                self.model_.add(X[order], targets[order], weight[order])
        return self

    def respread(self, X: ArrayLike, n_units: int | None = None) -> Self:
        """Add units that resolve inputs far away from all samples so far, and keep what is known.

        Call it when a stream has left the range of its first samples, before learning there: units
        that respond to inputs in `X` hardly respond to earlier ones, so they count as 0 there. With
        the ridge head only.

        Args:
            X: a sample of the new inputs.
            n_units: how many units to add; default: a quarter of `n_units`.
        """
        X = self._validated(X)
        if self.head != "ridge":
            raise ValueError(f'{type(self).__name__}: respread needs head="ridge"')
        units = max(self.n_units // 4, 1) if n_units is None else n_units
        self.model_.respread(X, units, self.seed_ + len(self.model_.head.sums))
        return self

    @property
    def a_(self) -> float:
        """The width of the units."""
        return float(self.model_.a)

    @property
    def sigma_bias_(self) -> float:
        """The spread of their biases."""
        return float(self.model_.sigma_bias)

    def save(self, path: str | Path) -> Path:
        """Write settings and state into one safetensors file, complete or not at all."""
        check_is_fitted(self)
        settings = self.get_params()
        if isinstance(settings["random_state"], np.random.RandomState):
            settings["random_state"] = None  # the seed that was drawn from it is in the state
        return write_estimator(
            Path(path), type(self).__name__, settings, self._state(), self.model_.arrays()
        )

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The estimator that `save` wrote; it continues to learn where it stopped."""
        settings, state, arrays = read_estimator(Path(path), cls.__name__)
        return cls(**settings)._restore(state, arrays)

    def _state(self) -> dict[str, Any]:
        names = getattr(self, "feature_names_in_", None)
        return {
            "seed_": self.seed_, "dtype_": self.dtype_, "n_features_in_": self.n_features_in_,
            "feature_names_in_": None if names is None else names.tolist(),
        }  # fmt: skip

    def _restore(self, state: dict[str, Any], arrays: Arrays) -> Self:
        self.seed_, self.n_features_in_ = state["seed_"], state["n_features_in_"]
        self.dtype_ = state["dtype_"]
        if state["feature_names_in_"] is not None:
            self.feature_names_in_ = np.array(state["feature_names_in_"], object)
        self.model_ = self._new_model(self._outputs())
        self.model_.load(arrays)
        return self

    def _targets(self, y: Any) -> Floats:
        """A column per output."""
        raise NotImplementedError

    def _outputs(self) -> int:
        """The number of outputs so far."""
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
        first = not hasattr(self, "model_")
        check_settings(self)
        X, y = validate_data(
            self, X, y, reset=first, ensure_all_finite=False, multi_output=True,
            dtype=[np.float64, np.float32] if first else self.dtype_,
        )  # fmt: skip
        check_inputs(self, X)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight is 0 for all samples; give some a weight above 0")
        targets = self._targets(y)
        if first:
            self.dtype_ = X.dtype.str
            self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
            self.model_ = self._new_model(targets.shape[1])
        else:
            self._warn_if_far(X)
            self.model_.grow(targets.shape[1])
        self.model_.add(X, targets, weight)
        return X, targets, weight

    def _new_model(self, outputs: int) -> Any:
        shared: dict[str, Any] = {
            "units": self.n_units, "d": self.d, "warm_up": self.warm_up, "seed": self.seed_,
            "dtype": self.dtype_,
        }  # fmt: skip
        inputs = self.n_features_in_
        if self.head == "gradient":
            from elephant_nn.estimators.gradient_model import (
                GradientModel,  # JAX, only where it is used
            )

            return GradientModel(
                inputs, outputs, a=self.a, sigma_bias=self.sigma_bias, optimizer=self.optimizer,
                learning_rate=self.learning_rate, updates=self.updates,
                batch_size=self.batch_size, regression=is_regressor(self), **shared,
            )  # fmt: skip
        return RidgeModel(
            inputs, outputs, a=self._width if self.a is None else self.a,
            sigma_bias=self._width if self.sigma_bias is None else self.sigma_bias,
            raw=inputs <= 2 * self.n_units if self.raw_inputs == "auto" else bool(self.raw_inputs),
            ridge=self.ridge, forgetting=self.forgetting, **shared,
        )  # fmt: skip

    def _validated(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, ensure_all_finite=False, dtype=self.dtype_)
        check_inputs(self, X)
        return X

    def _hidden(self, X: Any) -> tuple[Floats, Floats]:
        """Pre-activations and values of the hidden layer."""
        X = self._validated(X)
        return self.model_.hidden(X)

    def _warn_if_far(self, X: Floats) -> None:
        model = self.model_
        if hasattr(self, "warned_") or model.waiting is not None or model.added is not None:
            return
        scaling = model.scaling
        far = np.mean(np.median(np.abs((X - scaling.offset) / scaling.scale), 0) > FAR)
        if far > 0.5:
            self.warned_ = True
            warnings.warn(
                f"{type(self).__name__}: {far:.0%} of the columns are now more than {FAR:.0f} "
                "deviations away from the first samples, where the layer resolves little; add "
                "units there with respread(X), or fit anew",
                stacklevel=4,
            )
