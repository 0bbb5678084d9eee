"""Estimators for scikit-learn that learn from a stream in any order and keep what they learned.

With the ridge head, the default, the result depends neither on how samples are cut into calls nor,
after the first `warm_up` of them, on their order.
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from elephant_nn.arrays import Arrays
from elephant_nn.estimators.estimator import SETTINGS, Estimator
from elephant_nn.estimators.hidden import Floats


class ElephantClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
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
        if y.dtype.kind not in "buiUS":  # these are labels for certain, and the check takes time
            check_classification_targets(y)
        found = np.unique(y)
        known = getattr(self, "labels_", getattr(self, "declared_", found[:0]))
        texts = [array.dtype.kind not in "buif" for array in (found, known) if len(array)]
        if len(set(texts)) > 1:
            raise ValueError(
                f"y has labels such as {found.tolist()[0]!r}, earlier labels are such as "
                f"{known.tolist()[0]!r}; use numbers or texts, not both"
            )
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


class ElephantRegressor(RegressorMixin, Estimator):  # type: ignore[misc]
    __doc__ = f"""A regressor that learns from a stream in any order and forgets nothing.

    As `ElephantClassifier`, for one or several numbers per sample.

    Args:{SETTINGS.rstrip()}
    """

    _width = 3.0

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
