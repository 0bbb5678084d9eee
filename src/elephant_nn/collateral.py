"""The report of an edit: what it changed where it should, and what it changed elsewhere.

NumPy only: editing of JAX networks and of PyTorch models share it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class EditReport:
    """The effect of an edit at the edited points, and outside a neighbourhood of them.

    Attributes:
        error_before: mean distance of the outputs from the targets at the edited points; for
            labels, the share of edited points that have another label.
        error_after: the same after the edit.
        mean_change_outside: mean distance between outputs before and after.
        max_change_outside: the largest one.
        fraction_moved: the share of outputs that changed by more than `moved`.
        fraction_flipped: the share of inputs whose largest output is another one, for labels.
        accuracy_before: with labels of the inputs elsewhere, the accuracy there.
        accuracy_after: the same after the edit.
    """

    error_before: float
    error_after: float
    mean_change_outside: float
    max_change_outside: float
    fraction_moved: float
    fraction_flipped: float | None = None
    accuracy_before: float | None = None
    accuracy_after: float | None = None


def report_change(
    old: ArrayLike, new: ArrayLike, outside: ArrayLike, errors: Sequence[ArrayLike],
    moved: float = 0.05, *, classes: bool = False, labels: ArrayLike | None = None,
) -> EditReport:  # fmt: skip
    """The report of an edit from outputs, and errors at the edited points, before and after it.

    Outputs that are not finite before or after it do not count as changed: a ridge head has -inf
    for classes without a sample.
    """
    keep = np.asarray(outside)
    first, last = np.asarray(old)[keep], np.asarray(new)[keep]
    finite = np.isfinite(first) & np.isfinite(last)
    change = np.linalg.norm(np.where(finite, last, 0) - np.where(finite, first, 0), axis=-1)
    numbers = [*map(float, (*errors, change.mean(), change.max(), (change > moved).mean()))]
    if not classes:
        return EditReport(*numbers)
    before, after = first.argmax(-1), last.argmax(-1)
    numbers.append(float((before != after).mean()))
    if labels is not None:
        truth = np.asarray(labels)[keep]
        numbers += [float((before == truth).mean()), float((after == truth).mean())]
    return EditReport(*numbers)


def far_from(points: ArrayLike, elsewhere: ArrayLike, neighbourhood: float) -> np.ndarray:
    """Which rows of `elsewhere` are farther than `neighbourhood` from every edited point."""
    rows = np.asarray(elsewhere, float).reshape(len(np.asarray(elsewhere)), -1)
    outside = np.ones(len(rows), bool)
    for point in np.asarray(points, float):
        outside &= np.linalg.norm(rows - point.reshape(-1), axis=-1) > neighbourhood
    if not outside.any():
        raise ValueError(
            f"edit_report: no row of elsewhere is farther than neighbourhood={neighbourhood} "
            "from x; give more rows or a smaller neighbourhood"
        )
    return outside


def errors_at(outputs: ArrayLike, y: ArrayLike, *, classes: bool) -> float:
    """The error at edited points: distance from the target, or the share of other labels."""
    outputs, y = np.asarray(outputs), np.asarray(y)
    if classes:
        return float((outputs.argmax(-1) != y).mean())
    return float(np.linalg.norm(outputs - y, axis=-1).mean())
