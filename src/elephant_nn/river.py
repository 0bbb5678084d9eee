"""Estimators for River: one sample at a time, with features and labels that come and go."""

import math
import numbers
import zlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from river import base

from elephant_nn.estimators.hidden import bell, scaling_of
from elephant_nn.online_ridge import RecursiveRidge

Sample = Mapping[Any, Any]
Numbers = NDArray[np.float64]
Name = str | tuple[str, str]
Values = dict[Name, float]


class _Elephant:
    """Random elephant units on scaled features, under ridge regression that is always up to date.

    The weights of a feature follow from its name, and a missing feature counts as its mean. The
    first samples decide the scaling of the features in them; until there are enough, the model is
    made anew from time to time. A later feature is scaled by its first value.
    """

    def __init__(
        self, n_units: int = 300, ridge: float | None = None, forgetting: float = 1.0,
        a: float = 2.0, sigma_bias: float = 2.0, d: float = 4.0, warm_up: int = 100, seed: int = 0,
    ):  # fmt: skip
        self.n_units = n_units
        self.ridge = ridge
        self.forgetting = forgetting
        self.a = a
        self.sigma_bias = sigma_bias
        self.d = d
        self.warm_up = warm_up
        self.seed = seed
        self._columns: dict[Name, int] = {}
        self._offset: Numbers = np.zeros(0)
        self._scale: Numbers = np.ones(0)
        self._weights = np.zeros((0, n_units))
        self._raw = 0  # the first features are also inputs of the ridge regression
        self._waiting: list[tuple[Values, Any]] | None = []
        self._head: RecursiveRidge | None = None

    def _learn(self, x: Sample, target: Any, outputs: int) -> None:
        values = _as_numbers(x)
        if self._head is not None:
            self._head.grow(outputs)
        if self._waiting is None:
            self._meet(values)
            self._add([values], [target], outputs)
            return
        self._waiting.append((values, target))
        seen = len(self._waiting)
        if seen == self.warm_up or seen in _MOMENTS:
            samples, targets = zip(*self._waiting, strict=True)
            self._begin(samples, outputs)
            self._add(samples, targets, outputs)
        if seen >= self.warm_up:
            self._waiting = None

    def _begin(self, samples: Sequence[Values], outputs: int) -> None:
        names = sorted({name for sample in samples for name in sample}, key=str)
        self._columns = {name: i for i, name in enumerate(names)}
        table = self._table(samples)
        means = np.nansum(table, 0) / np.maximum(np.sum(~np.isnan(table), 0), 1)
        scaling = scaling_of(np.where(np.isnan(table), means, table), np.ones(len(table)))
        self._offset = np.asarray(scaling.offset, float)
        self._scale = np.asarray(scaling.scale, float)
        self._weights = np.array([self._weights_of(name) for name in names])
        self._weights = self._weights.reshape(len(names), self.n_units)
        self._raw = len(names)
        features = self.n_units + self._raw
        self._head = RecursiveRidge(
            features, outputs, ridge=self.ridge, forgetting=self.forgetting
        )  # fmt: skip

    def _meet(self, values: Values) -> None:
        """Make room for features that were not there before."""
        for name in sorted(values.keys() - self._columns.keys(), key=str):
            self._columns[name] = len(self._columns)
            self._offset = np.append(self._offset, 0.0)
            self._scale = np.append(self._scale, abs(values[name]) or 1.0)
            self._weights = np.vstack([self._weights, self._weights_of(name)])

    def _weights_of(self, name: Name) -> Numbers:
        rng = np.random.default_rng([self.seed, zlib.crc32(str(name).encode())])
        return rng.uniform(-1, 1, self.n_units)

    def _add(self, samples: Sequence[Values], targets: Sequence[Any], outputs: int) -> None:
        assert self._head is not None
        y = np.array(targets, float)[:, None]
        if isinstance(self, base.Classifier):
            y = np.eye(outputs)[np.array(targets, int)]
        self._head.add(self._features(samples), y)

    def _features(self, samples: Sequence[Values]) -> Numbers:
        scaled = np.arcsinh((self._table(samples) - self._offset) / self._scale)
        scaled = np.where(np.isnan(scaled), 0.0, scaled)
        biases = np.sqrt(3) * self.sigma_bias * np.linspace(-1, 1, self.n_units)
        z = scaled @ self._weights / math.sqrt(max(self._raw, 1)) + biases
        return np.hstack([bell(z, self.a, self.d), scaled[:, : self._raw]])

    def _table(self, samples: Sequence[Values]) -> Numbers:
        # Another string than those seen is no reason to guess one of them.
        absent = [0.0 if isinstance(name, tuple) else np.nan for name in self._columns]
        table = np.tile(np.array(absent), (len(samples), 1))
        for row, sample in zip(table, samples, strict=True):
            for name, value in sample.items():
                if name in self._columns:
                    row[self._columns[name]] = value
        return table

    def _scores(self, samples: Sequence[Sample]) -> Numbers | None:
        if self._head is None:
            return None
        return self._head.predict(self._features([_as_numbers(x) for x in samples]))


_MOMENTS = {math.ceil(1.2**i) for i in range(200)}
"""The numbers of samples after which the model is made anew during the warm-up."""


def _as_numbers(x: Sample) -> Values:
    """Features as numbers: a string is 1 in a feature of its own, None and NaN are missing."""
    found: Values = {}
    for name, value in x.items():
        if isinstance(value, str):
            found[str(name), value] = 1.0
        elif isinstance(value, numbers.Real | np.bool_):
            if math.isinf(value):
                raise ValueError(f"feature {name!r} is {value}; drop or clip it first")
            if not math.isnan(value):
                found[str(name)] = float(value)
        elif value is not None:
            raise TypeError(
                f"feature {name!r} is a {type(value).__name__}; elephant_nn takes numbers and "
                "strings: turn it into some first"
            )
    return found


class ElephantClassifier(_Elephant, base.MiniBatchClassifier):
    """A classifier that learns one sample at a time and forgets nothing.

    Random elephant units, 1/(1 + |z/a|^d), respond to the scaled features; ridge regression on
    these units and the features is updated for every sample and solved anew from running sums from
    time to time. There is no learning rate.

    Parameters
    ----------
    n_units
        Number of random units.
    ridge
        The penalty relative to the mean diagonal of the sums of products; by default chosen by the
        evidence, which is computed from the same sums.
    forgetting
        Below 1, older samples fade by this factor with every new one: for streams that drift.
    a
        Width of the units.
    sigma_bias
        Spread of their biases.
    d
        Their sharpness.
    warm_up
        Features are scaled by this many first samples, which are kept until then.
    seed
        Seed of the random weights.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from elephant_nn.river import ElephantClassifier

    >>> evaluate.progressive_val_score(
    ...     datasets.Phishing(), ElephantClassifier(), metrics.Accuracy()
    ... )
    Accuracy: 0.00%

    """

    def __init__(
        self, n_units: int = 300, ridge: float | None = None, forgetting: float = 1.0,
        a: float = 2.0, sigma_bias: float = 2.0, d: float = 4.0, warm_up: int = 100, seed: int = 0,
    ):  # fmt: skip
        super().__init__(n_units, ridge, forgetting, a, sigma_bias, d, warm_up, seed)
        self._labels: dict[Any, int] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Sample, y: Hashable) -> None:
        target = self._labels.setdefault(y, len(self._labels))
        self._learn(x, target, len(self._labels))

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        for x, target in zip(X.to_dict(orient="records"), y, strict=True):
            self.learn_one(x, target)

    def predict_proba_one(self, x: Sample, **kwargs: Any) -> dict[Any, float]:
        rows = self._probabilities([x])
        return dict(zip(self._labels, rows[0].tolist(), strict=True))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        rows = self._probabilities(X.to_dict(orient="records"))
        return pd.DataFrame(rows, index=X.index, columns=list(self._labels))

    def _probabilities(self, samples: Sequence[Sample]) -> Numbers:
        scores, labels = self._scores(samples), len(self._labels)
        if scores is None or not scores.shape[1]:
            return np.full((len(samples), labels), 1 / max(labels, 1))
        assert self._head is not None
        logits = (scores - scores.max(1, keepdims=True)) / max(self._head.error, 1e-6)
        weights = np.pad(np.exp(logits), ((0, 0), (0, labels - scores.shape[1])))
        return np.asarray(weights / weights.sum(1, keepdims=True))


class ElephantRegressor(_Elephant, base.MiniBatchRegressor):
    """A regressor that learns one sample at a time and forgets nothing.

    As `ElephantClassifier`, for numbers.

    Parameters
    ----------
    n_units
        Number of random units.
    ridge
        The penalty relative to the mean diagonal of the sums of products; by default chosen by the
        evidence, which is computed from the same sums.
    forgetting
        Below 1, older samples fade by this factor with every new one: for streams that drift.
    a
        Width of the units.
    sigma_bias
        Spread of their biases.
    d
        Their sharpness.
    warm_up
        Features are scaled by this many first samples, which are kept until then.
    seed
        Seed of the random weights.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from elephant_nn.river import ElephantRegressor

    >>> evaluate.progressive_val_score(
    ...     datasets.TrumpApproval(), ElephantRegressor(), metrics.MAE()
    ... )
    MAE: 0.

    """

    def learn_one(self, x: Sample, y: float) -> None:
        self._learn(x, float(y), 1)

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        for x, target in zip(X.to_dict(orient="records"), y, strict=True):
            self.learn_one(x, target)

    def predict_one(self, x: Sample) -> float:
        scores = self._scores([x])
        return 0.0 if scores is None else float(scores[0, 0])

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        scores = self._scores(X.to_dict(orient="records"))
        values = np.zeros(len(X)) if scores is None else scores[:, 0]
        return pd.Series(values, index=X.index, dtype=float)
