"""Checks of settings and inputs of the estimators for scikit-learn."""

from typing import Any

import numpy as np

from elephant_nn.estimators.hidden import Floats


def check_settings(estimator: Any) -> None:
    """Refuse settings out of range, with their names."""
    name = type(estimator).__name__
    for setting in ("n_units", "warm_up", "updates", "batch_size", "n_epochs"):
        value = getattr(estimator, setting)
        if not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name}: {setting} must be a whole number above 0, got {value!r}")
    for setting in ("a", "sigma_bias", "ridge", "learning_rate"):
        value = getattr(estimator, setting)
        if value is not None and not 0 < value < np.inf:
            raise ValueError(f"{name}: {setting} must be None or above 0, got {value!r}")
    if not estimator.d > 1:
        raise ValueError(f"{name}: d must be above 1, got {estimator.d!r}")
    for setting, choices in (
        ("head", ("ridge", "gradient")),
        ("raw_inputs", (True, False, "auto")),
    ):
        if getattr(estimator, setting) not in choices:
            raise ValueError(
                f"{name}: {setting} must be one of {choices}, got {getattr(estimator, setting)!r}"
            )
    if estimator.head == "gradient" and estimator.forgetting != 1:
        raise ValueError(f'{name}: forgetting is for head="ridge"; the gradient head has none')


def check_inputs(estimator: Any, X: Floats) -> None:
    """Refuse NaN and infinity, with the column."""
    finite = np.isfinite(X).all(0)
    if not finite.all():
        column = int(np.argmin(finite))
        names = getattr(estimator, "feature_names_in_", None)
        which = f"{column}" if names is None else f"{column} ({names[column]})"
        kind = "NaN" if np.isnan(X[:, column]).any() else "inf"
        raise ValueError(
            f"{type(estimator).__name__}: X contains {kind} in column {which}; fill or drop such "
            "values first, for example with SimpleImputer"
        )
