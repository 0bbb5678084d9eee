"""Estimators for scikit-learn that learn from a stream in any order and keep what they learned.

With the ridge head, the default, the result depends neither on how samples are cut into calls nor,
after the first `warm_up` of them, on their order.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_regressor
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from elephant_nn.arrays import Arrays
from elephant_nn.estimator_files import read_estimator, write_estimator
from elephant_nn.hidden import Floats, RidgeModel

WIDTH = 2.0
"""Default of `a` and `sigma_bias` with the ridge head."""
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
        a: width of the units; default: 2 with the ridge head, for scaled inputs, else by
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


class _Elephant(BaseEstimator):  # type: ignore[misc]
    """What the classifier and the regressor share."""

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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> tuple[Floats, Floats, Floats]:
        first = not hasattr(self, "model_")
        self._check_settings()
        X, y = validate_data(
            self, X, y, reset=first, ensure_all_finite=False, multi_output=True,
            dtype=[np.float64, np.float32] if first else self.dtype_,
        )  # fmt: skip
        self._check_inputs(X)
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
            from elephant_nn.gradient_model import GradientModel  # JAX, only where it is used

            return GradientModel(
                inputs, outputs, a=self.a, sigma_bias=self.sigma_bias, optimizer=self.optimizer,
                learning_rate=self.learning_rate, updates=self.updates,
                batch_size=self.batch_size, regression=is_regressor(self), **shared,
            )  # fmt: skip
        return RidgeModel(
            inputs, outputs, a=WIDTH if self.a is None else self.a,
            sigma_bias=WIDTH if self.sigma_bias is None else self.sigma_bias,
            raw=inputs <= 2 * self.n_units if self.raw_inputs == "auto" else bool(self.raw_inputs),
            ridge=self.ridge, forgetting=self.forgetting, **shared,
        )  # fmt: skip

    def _validated(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, ensure_all_finite=False, dtype=self.dtype_)
        self._check_inputs(X)
        return X

    def _hidden(self, X: Any) -> tuple[Floats, Floats]:
        """Pre-activations and values of the hidden layer."""
        X = self._validated(X)
        return self.model_.hidden(X)

    def _check_settings(self) -> None:
        name = type(self).__name__
        for setting in ("n_units", "warm_up", "updates", "batch_size", "n_epochs"):
            value = getattr(self, setting)
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name}: {setting} must be a whole number above 0, got {value!r}")
        for setting in ("a", "sigma_bias", "ridge", "learning_rate"):
            value = getattr(self, setting)
            if value is not None and not 0 < value < np.inf:
                raise ValueError(f"{name}: {setting} must be None or above 0, got {value!r}")
        if not self.d > 1:
            raise ValueError(f"{name}: d must be above 1, got {self.d!r}")
        for setting, choices in (
            ("head", ("ridge", "gradient")),
            ("raw_inputs", (True, False, "auto")),
        ):
            if getattr(self, setting) not in choices:
                raise ValueError(
                    f"{name}: {setting} must be one of {choices}, got {getattr(self, setting)!r}"
                )
        if self.head == "gradient" and self.forgetting != 1:
            raise ValueError(f'{name}: forgetting is for head="ridge"; the gradient head has none')

    def _check_inputs(self, X: Floats) -> None:
        finite = np.isfinite(X).all(0)
        if not finite.all():
            column = int(np.argmin(finite))
            names = getattr(self, "feature_names_in_", None)
            which = f"{column}" if names is None else f"{column} ({names[column]})"
            kind = "NaN" if np.isnan(X[:, column]).any() else "inf"
            raise ValueError(
                f"{type(self).__name__}: X contains {kind} in column {which}; fill or drop such "
                "values first, for example with SimpleImputer"
            )

    def _warn_if_far(self, X: Floats) -> None:
        if hasattr(self, "warned_") or self.model_.waiting is not None:
            return
        scaling = self.model_.scaling
        far = np.mean(np.median(np.abs((X - scaling.offset) / scaling.scale), 0) > FAR)
        if far > 0.5:
            self.warned_ = True
            warnings.warn(
                f"{type(self).__name__}: {far:.0%} of the columns are now more than {FAR:.0f} "
                "deviations away from the first samples, where the layer resolves little; fit "
                "anew, or set warm_up so that the first samples cover such inputs",
                stacklevel=4,
            )


class ElephantClassifier(ClassifierMixin, _Elephant):  # type: ignore[misc]
    __doc__ = f"""A classifier that learns from a stream in any order and forgets nothing.

    Inputs are scaled by the first samples. Random elephant units, 1/(1 + |z/a|^d), respond to them,
    and ridge regression on the units is solved from running sums, which have no order in them. One
    pass is enough, there is no learning rate, and no sample is kept after the first `warm_up`.

    Args:{SETTINGS.rstrip()}
        class_weight: factors of the scores, by class; "balanced": the inverse of the frequency of
            the class so far.

    Attributes:
        classes_: the labels seen or declared so far, sorted.
    """

    def __init__(
        self, n_units: int = 1000, *, head: str = "ridge", ridge: float | None = None,
        forgetting: float = 1.0, raw_inputs: bool | str = "auto", a: float | None = None,
        sigma_bias: float | None = None, d: float = 4.0, warm_up: int = 100,
        class_weight: Mapping[Any, float] | str | None = None, optimizer: str = "rmsprop",
        learning_rate: float | None = None, updates: int = 2, batch_size: int = 10,
        n_epochs: int = 10, random_state: Any = None,
    ):  # fmt: skip
        super().__init__(
            n_units, head=head, ridge=ridge, forgetting=forgetting, raw_inputs=raw_inputs, a=a,
            sigma_bias=sigma_bias, d=d, warm_up=warm_up, optimizer=optimizer,
            learning_rate=learning_rate, updates=updates, batch_size=batch_size,
            n_epochs=n_epochs, random_state=random_state,
        )  # fmt: skip
        self.class_weight = class_weight

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, *, classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:  # fmt: skip
        """Learn from more samples.

        Args:
            classes: every class of the stream, if labels are to be checked against them; by
                default a new class may appear at any call.
        """
        if classes is not None:
            declared = np.unique(np.asarray(classes))
            before: NDArray[Any] = getattr(self, "declared_", declared)
            if before.tolist() != declared.tolist():
                raise ValueError(f"classes changed from {before.tolist()} to {declared.tolist()}")
            self.declared_ = declared
        self._learn(X, y, sample_weight)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class with the largest score."""
        best = np.argmax(self._scores(X), 1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probabilities of `classes_`.

        The scores of the ridge head are taken as the target of the true class with Gaussian noise,
        whose variance is the squared error that generalised cross-validation expects.
        """
        scores = self._scores(X)
        logits = self.model_.logits(scores)
        weights = np.exp(logits - logits.max(1, keepdims=True))
        return np.asarray(weights / weights.sum(1, keepdims=True), self.dtype_)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Scores in the order of `classes_`."""
        X = self._validated(X)
        scores, counts = self.model_.scores(X), self.model_.counts
        seen = counts > 0
        if self.class_weight == "balanced":
            scores = scores * counts.sum() / (seen.sum() * np.where(seen, counts, 1))
        elif isinstance(self.class_weight, Mapping):
            weights: dict[Any, float] = dict(self.class_weight)
            scores = scores * np.array([weights.get(label, 1.0) for label in self.labels_.tolist()])
        scores[:, ~seen] = -np.inf
        return scores[:, np.argsort(self.labels_)]

    def _targets(self, y: NDArray[Any]) -> Floats:
        """A column per label, in the order in which labels appeared."""
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        found = np.unique(y)
        known = getattr(self, "labels_", getattr(self, "declared_", found[:0]))
        new = np.setdiff1d(found, known)
        if hasattr(self, "declared_") and len(new):
            raise ValueError(
                f"y has the label {new.tolist()[0]!r}, which is not one of the declared classes "
                f"{self.declared_.tolist()}"
            )
        if not (self.class_weight in (None, "balanced") or isinstance(self.class_weight, Mapping)):
            raise ValueError(
                'class_weight must be None, "balanced" or a dictionary of weights, got '
                f"{self.class_weight!r}"
            )
        self.labels_ = np.concatenate([known, new]) if len(known) else new
        self.classes_ = np.sort(self.labels_)
        columns = np.argsort(self.labels_)[np.searchsorted(self.classes_, y)]
        return np.asarray(np.eye(len(self.labels_))[columns])

    def _outputs(self) -> int:
        return len(self.labels_)

    def _state(self) -> dict[str, Any]:
        labels = {"labels_": self.labels_.tolist(), "labels_dtype": self.labels_.dtype.str}
        return {**super()._state(), **labels, "declared": hasattr(self, "declared_")}

    def _restore(self, state: dict[str, Any], arrays: Arrays) -> Self:
        self.labels_ = np.array(state["labels_"], np.dtype(state["labels_dtype"]))
        self.classes_ = np.sort(self.labels_)
        if state["declared"]:
            self.declared_ = self.classes_
        return super()._restore(state, arrays)


class ElephantRegressor(RegressorMixin, _Elephant):  # type: ignore[misc]
    __doc__ = f"""A regressor that learns from a stream in any order and forgets nothing.

    As `ElephantClassifier`, for one or several numbers per sample.

    Args:{SETTINGS.rstrip()}
    """

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more samples."""
        self._learn(X, y, sample_weight)
        return self

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Predicted targets, and with `return_std` the standard deviation of new targets."""
        X = self._validated(X)
        mean = self._shaped(self.model_.scores(X))
        return (mean, self._shaped(self.model_.std(X))) if return_std else mean

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _shaped(self, values: NDArray[np.float64]) -> Floats:
        values = values if self.multi_output_ else values[:, 0]
        return np.asarray(values, self.dtype_)

    def _targets(self, y: NDArray[Any]) -> Floats:
        columns = np.asarray(y, np.float64)
        if not np.isfinite(columns).all():
            raise ValueError("y contains NaN or inf; drop such samples first")
        shape = (y.ndim == 2, 1 if y.ndim == 1 else y.shape[1])
        before = getattr(self, "multi_output_", shape[0]), getattr(self, "n_outputs_", shape[1])
        if shape != before:
            raise ValueError(f"y must have {before[1]} targets per sample, got the shape {y.shape}")
        self.multi_output_, self.n_outputs_ = shape
        return columns.reshape(len(y), -1)

    def _outputs(self) -> int:
        return self.n_outputs_

    def _state(self) -> dict[str, Any]:
        own = {"multi_output_": self.multi_output_, "n_outputs_": self.n_outputs_}
        return {**super()._state(), **own}

    def _restore(self, state: dict[str, Any], arrays: Arrays) -> Self:
        self.multi_output_, self.n_outputs_ = state["multi_output_"], state["n_outputs_"]
        return super()._restore(state, arrays)
