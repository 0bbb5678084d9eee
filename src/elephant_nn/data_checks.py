"""Checks of samples and targets, whatever learns from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Check:
    """One line of a diagnosis: what was looked at, whether it is fine, and what to do if not."""

    name: str
    ok: bool
    text: str

    def __str__(self) -> str:
        return f"{'✓' if self.ok else '✗'} {self.name}: {self.text}"


def values(x: NDArray[Any], finite: NDArray[np.bool_], names: Sequence[str]) -> Check:
    """NaN and infinity."""
    if finite.all():
        return Check("values", True, f"{len(x):,} samples of {x.shape[1]:,} inputs, all finite")
    bad = np.flatnonzero(~np.isfinite(x).all(0))
    return Check(
        "values", False, f"{np.sum(~finite):,} of {len(x):,} samples have NaN or infinity, in "
        f"{listed(bad, names)}; fill gaps, for example with SimpleImputer, or drop such samples",
    )  # fmt: skip


def columns_of(x: Numbers, names: Sequence[str]) -> Check:
    """Constant columns, and ones that repeat another up to offset and scale."""
    deviation = x.std(0)
    constant = deviation <= 1e-12 * np.abs(x).max(0)
    varying = np.flatnonzero(~constant)
    standard = np.round((x[:, varying] - x[:, varying].mean(0)) / deviation[varying], 6) + 0.0
    _, first = np.unique(standard, axis=1, return_index=True)
    repeated = np.delete(varying, first)
    kinds = (("constant:", np.flatnonzero(constant)), ("repeats of others:", repeated))
    found = [f"{what} {listed(which, names)}" for what, which in kinds if len(which)]
    text = "; ".join(found) + "; drop them unless they will vary" if found else "all differ"
    return Check("columns", not found, text)


def targets_of(y: NDArray[Any], estimator: bool) -> Check:
    """Rare classes and order of labels; constant targets and outliers of numbers."""
    if y.ndim == 1 and y.dtype.kind not in "fc":
        labels, index, counts = np.unique(y, return_inverse=True, return_counts=True)
        if len(labels) == 1:
            return Check("targets", False, f"there is one class only: {labels[0]}")
        ends = int(np.sum(np.diff(index) != 0)) == len(labels) - 1
        order = f"{', one after the other' if ends else ''}"
        if counts.max() > 10 * counts.min():
            advice = 'class_weight="balanced"' if estimator else "weights in the loss"
            rare = labels[counts.argmin()]
            return Check(
                "targets", False, f"{len(labels)} classes{order}; {rare} has {counts.min():,} "
                f"samples, the largest {counts.max():,}; if rare ones matter, use {advice}",
            )  # fmt: skip
        return Check("targets", True, f"{len(labels)} classes of similar size{order}")
    values = y.reshape(len(y), -1).astype(float)
    if not np.isfinite(values).all():
        return Check("targets", False, "some are NaN or infinity; drop such samples")
    middle = np.median(values, 0)
    typical = 1.4826 * np.median(np.abs(values - middle), 0)
    if not values.std(0).all():
        return Check("targets", False, "they do not vary")
    furthest = np.max(np.abs(values - middle) / np.where(typical > 0, typical, values.std(0)))
    if furthest > 20:
        return Check("targets", False, f"one is {furthest:,.0f} typical deviations from the median "
                     "and decides much of a squared error; take logarithms or clip")  # fmt: skip
    return Check("targets", True, f"no outliers among {len(values):,}")


def listed(columns: NDArray[np.integer], names: Sequence[str]) -> str:
    shown = [names[i] if names else str(i) for i in columns[:5].tolist()]
    more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
    return f"column{'s' * (len(columns) > 1)} {', '.join(shown)}{more}"
