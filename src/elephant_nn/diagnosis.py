"""What may be wrong between a learner and some data, in ticked lines that say what to do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from elephant_nn.data_checks import Check, columns_of, listed, targets_of, values

Numbers = NDArray[np.float64]

ROWS = 2000
FAR = 10.0
"""Deviations from the first samples beyond which an input is far from them."""
RARE = 0.05
SHARE = 0.5
"""Of units that may be dead or saturated."""


@dataclass(frozen=True)
class Diagnosis:
    """All checks of `diagnose`; print it to read them."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether all is fine."""
        return all(check.ok for check in self.checks)

    def __getitem__(self, name: str) -> Check:
        return next(check for check in self.checks if check.name == name)

    def __str__(self) -> str:
        return "\n".join(map(str, self.checks))


@dataclass(frozen=True)
class _View:
    """What the checks of the layer need."""

    units: Numbers | None  # values of the hidden units, one row per sample
    scaled: Numbers | None  # inputs as the layer sees them, if they are scaled
    distance: Numbers | None  # deviations from the first samples
    condition: float | None
    ridge: bool
    estimator: bool


def diagnose(learner: Any, x: Any, y: Any = None, *, state: Any = None) -> Diagnosis:
    """Check a learner or an estimator on your own data.

    * values: NaN and infinity;
    * columns: constant ones, and ones that repeat another;
    * scale: whether inputs are, or will be, of similar size;
    * range: inputs far away from the samples that decided the scaling, or without any unit;
    * units: dead ones, which respond to no input, and saturated ones, which respond to all alike;
    * features: conditioning of the Gram matrix, or how much features of two inputs overlap;
    * targets: rare classes, constant targets, outliers.

    Args:
        learner: an estimator of `elephant_nn.sklearn`, fitted or not (then a copy is fitted to
            these samples), or a `Learner`.
        x: samples, in the order in which they come; 2,000 of them at even distances are used.
        y: their labels or targets.
        state: of a `Learner`; default: its initial state.
    """
    names = [str(name) for name in getattr(x, "columns", ())]
    table = np.asarray(x)
    if table.dtype.kind not in "buif" or table.ndim < 2 or len(table) < 2:
        raise ValueError(
            "diagnose: x must be numbers in shape (samples, inputs) with two or more samples, got "
            f"{table.dtype} in shape {table.shape}"
        )
    targets = None if y is None else np.asarray(y)
    if targets is not None and len(targets) != len(table):
        raise ValueError(f"diagnose: x has {len(table)} samples, y has {len(targets)}")
    columns = table.reshape(len(table), -1)
    finite = np.isfinite(columns).all(1)
    kept = np.flatnonzero(finite)
    if len(kept) < 2:
        return Diagnosis((values(columns, finite, names),))
    kept = kept[np.linspace(0, len(kept) - 1, min(len(kept), ROWS)).astype(int)]
    some, few = columns[kept].astype(float), None if targets is None else targets[kept]
    view = _view(learner, table[kept], few, state, names)
    checks = [values(columns, finite, names), columns_of(some, names), _scale(some, view)]
    checks += [*_range(view, names), *_units(view), *_features(view)]
    if targets is not None:
        checks.append(targets_of(targets, view.estimator))
    return Diagnosis(tuple(checks))


def _view(learner: Any, x: Any, y: Any, state: Any, names: Sequence[str]) -> _View:
    if hasattr(learner, "get_params") and hasattr(learner, "partial_fit"):
        return _view_of_estimator(learner, x, y)
    if callable(getattr(learner, "init", None)) and callable(getattr(learner, "predict", None)):
        return _view_of_learner(learner, x, state)
    raise TypeError(
        "diagnose: expected an estimator of elephant_nn.sklearn or a Learner, got "
        f"{type(learner).__name__}"
    )


def _view_of_estimator(estimator: Any, x: NDArray[Any], y: Any) -> _View:
    from sklearn.base import clone

    if not hasattr(estimator, "model_"):
        estimator = clone(estimator).fit(x, np.zeros(len(x), int) if y is None else y)
    model = estimator.model_
    _, units = model.hidden(np.asarray(x, estimator.dtype_))
    scaling, condition = model.scaling, None
    if ridge := estimator.head == "ridge":
        gram, penalty = model.head._centred_products(), model.head.solution().penalty
        last = len(gram) - 1
        largest = eigh(gram, lower=True, eigvals_only=True, subset_by_index=[last, last])[0]
        condition = float(1 + max(largest, 0.0) / penalty)
    distance = (x - scaling.offset) / scaling.scale
    return _View(units, scaling(x), distance, condition, ridge, True)


def _view_of_learner(learner: Any, x: NDArray[Any], state: Any) -> _View:
    import jax
    import jax.numpy as jnp

    seen = jnp.asarray(x, jnp.float32)
    state = learner.init(jax.random.key(0), seen[:100]) if state is None else state
    flat = None
    if hasattr(state, "offset") and hasattr(state, "scale"):
        seen = (seen - state.offset) / state.scale
        flat = np.asarray(seen, float).reshape(len(x), -1)
    units = None
    if learner.network is not None and hasattr(state, "params"):
        units = np.asarray(learner.network.features(state.params, seen), float)
    return _View(units, flat, flat, None, False, False)


def _scale(x: Numbers, view: _View) -> Check:
    if view.scaled is not None:
        return Check("scale", True, "inputs are scaled by the first samples")
    deviation = x.std(0)
    varying = deviation[deviation > 0]
    if not len(varying):
        return Check("scale", False, "no input varies")
    ratio, size = varying.max() / np.median(varying), float(np.sqrt(np.mean(x**2)))
    advice = "standardise the inputs, or wrap the learner in first_batch_scaling"
    if ratio > 100:
        text = f"the widest column varies {ratio:,.0f} times as much as the median one; {advice}"
        return Check("scale", False, text)
    if not 0.01 < size < 100:
        return Check("scale", False, f"inputs are of size {size:.2g}, far from 1; {advice}")
    return Check("scale", True, f"inputs are of size {size:.2g}, and columns vary alike")


def _range(view: _View, names: Sequence[str]) -> Iterator[Check]:
    alone = 0.0 if view.units is None else float(np.mean(view.units.max(1) < 0.5))
    if view.units is None and view.distance is None:
        return
    if view.distance is not None:
        share = np.mean(np.abs(view.distance) > FAR, axis=0)
        worst = np.flatnonzero(share > RARE)
        if len(worst):
            advice = "add units there with respread(x), or " if view.ridge else ""
            yield Check(
                "range", False, f"more than {RARE:.0%} of the values are {FAR:.0f} deviations away "
                f"from the first samples in {listed(worst, names)}; {advice}begin with "
                f"samples that cover them{' (warm_up)' if view.estimator else ''}",
            )  # fmt: skip
            return
    if alone > 0.01:
        advice = "make a wider or sigma_bias as large as the pre-activations: see calibrate"
        yield Check("range", False, f"{alone:.0%} of the inputs excite no unit; {advice}")
    else:
        yield Check("range", True, "inputs are within what the layer covers")


def _units(view: _View) -> Iterator[Check]:
    h = view.units
    if h is None:
        return
    dead, full = float(np.mean(h.max(0) < 0.5)), float(np.mean((h > 0.9).all(0)))
    text = f"{dead:.0%} of {h.shape[1]:,} respond to no input, {full:.0%} to all alike"
    if dead > SHARE:
        text += "; make a wider or sigma_bias smaller: see calibrate"
    if full > SHARE:
        text += "; make a narrower: see calibrate"
    yield Check("units", max(dead, full) <= SHARE, text)


def _features(view: _View) -> Iterator[Check]:
    if view.condition is not None:
        text = f"with its penalty, the Gram matrix has condition number {view.condition:.1g}"
        ok = view.condition < 1e11
        advice = "; set ridge=1e-6 or more, or use fewer units"
        yield Check("features", ok, text if ok else text + advice)
    elif view.units is not None:
        some = view.units[
            np.linspace(0, len(view.units) - 1, min(len(view.units), 300)).astype(int)
        ]
        lengths = np.linalg.norm(some, axis=1, keepdims=True)
        some = some / np.maximum(lengths, 1e-12)
        n = len(some)
        overlap = float((np.square(some.sum(0)).sum() - np.square(some).sum()) / (n * (n - 1)))
        text = f"those of two inputs have a cosine similarity of {overlap:.2f}"
        advice = ", so a step at one input changes all others; make a narrower: see calibrate"
        yield Check("features", overlap < 0.9, text if overlap < 0.9 else text + advice)
