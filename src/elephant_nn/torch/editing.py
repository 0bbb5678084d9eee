"""Change some outputs of a trained PyTorch model, and report what else changed."""

import copy
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from elephant_nn.collateral import EditReport, errors_at, far_from, report_change
from elephant_nn.torch.modes import evaluating
from elephant_nn.torch.ridge import RidgeHead

Model = TypeVar("Model", bound=nn.Module)
Optimiser = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]

HEAVIEST = 2.0**40
"""A point of a ridge head counts as this many samples at most."""


def edit(
    model: Model, x: Tensor, y: Tensor | int, *, keep: Tensor | None = None,
    keep_weight: float = 1.0, steps: int | None = None, optimiser: Optimiser | None = None,
    tolerance: float | None = None, weight: float | None = None,
) -> Model:  # fmt: skip
    """A copy of a model, changed so that f(x) = y at one point or at several.

    The model takes gradient steps on the points alone, by default of plain SGD with rate 1e-3. For
    labels they stop as soon as every point has its label, and a warning says if one has not. A
    `RidgeHead` is solved anew with the points added, which is exact.

    Args:
        x: one input, or a batch of several.
        y: the target of each: whole numbers are labels, other numbers are outputs, one row per
            point. With one input, a single label or a single row.
        keep: a batch of inputs whose outputs shall stay as they are. Their squared change is added
            to the loss; a ridge head is shown them with its own scores.
        keep_weight: factor of that squared change; this and the next three are not for a ridge
            head.
        steps: of gradient, at most; by default 50, for labels 1,000.
        optimiser: makes one from parameters, as `lambda p: torch.optim.Adam(p, 1e-4)` does.
        tolerance: also stop when all outputs are within it of their targets.
        weight: how many samples each point counts for in a ridge head; by default the smallest
            power of two that is enough.
    """
    points, targets = _batch(x, y)
    labels = not targets.is_floating_point()
    if isinstance(model, RidgeHead):
        if not labels:
            raise ValueError("edit: a RidgeHead predicts classes, so y must be whole numbers")
        if keep_weight != 1.0 or any(s is not None for s in (steps, optimiser, tolerance)):
            raise ValueError(
                "edit: a RidgeHead is solved at once; leave keep_weight, steps, optimiser and "
                "tolerance out"
            )
        return _edit_head(model, points, targets, keep, weight)
    if weight is not None:
        raise ValueError("edit: weight is for a RidgeHead; for other models choose steps instead")
    edited = copy.deepcopy(model)
    trained = [p for p in edited.parameters() if p.requires_grad]
    if not trained:
        raise ValueError(
            "edit: no parameter of the model requires a gradient, so nothing can change"
        )
    stepper = torch.optim.SGD(trained, 1e-3) if optimiser is None else optimiser(trained)
    fit = functional.cross_entropy if labels else functional.mse_loss
    n, rows = len(points), points if keep is None else torch.cat([points, keep])
    steps = (1000 if labels else 50) if steps is None else steps
    with evaluating(edited), torch.enable_grad():
        before = None if keep is None else edited(keep).detach()
        outputs = edited(points[:1]).shape[-1]
        if labels and not 0 <= int(targets.min()) <= int(targets.max()) < outputs:
            raise ValueError(
                f"edit: labels must be between 0 and {outputs - 1}, the outputs of the model, got "
                f"{targets.tolist()}"
            )
        for _ in range(steps):
            out = edited(rows)
            if (labels or tolerance is not None) and _reached(out[:n], targets, tolerance):
                break
            loss = fit(out[:n], targets)
            if before is not None:
                loss = loss + keep_weight * functional.mse_loss(out[n:], before)
            stepper.zero_grad()
            loss.backward()
            stepper.step()
        stepper.zero_grad()
        aimed = labels or tolerance is not None
        if aimed and not _reached(edited(points).detach(), targets, tolerance):
            warnings.warn(
                f"edit: not every point has its target after {steps} steps; give more steps, or "
                "an optimiser with a larger rate",
                RuntimeWarning,
                stacklevel=2,
            )
    return edited


def _edit_head(
    head: RidgeHead, x: Tensor, y: Tensor, keep: Tensor | None, weight: float | None
) -> Any:
    scores = head(x)
    if weight is None and _reached(scores, y, None):
        return copy.deepcopy(head)
    kept = None if keep is None else (head.measure(keep), _finite(head(keep)), head.predict(keep))

    def weighted(heavy: float) -> RidgeHead:
        edited = copy.deepcopy(head)
        edited.partial_fit(x, y, torch.full((len(x),), heavy, dtype=torch.float64))
        if kept is not None and edited.sums is not None:
            edited.sums.add(kept[0], kept[1], np.full(len(kept[0]), heavy))
        return edited

    def reached(edited: RidgeHead) -> bool:
        if not _reached(edited(x), y, None):
            return False
        return kept is None or keep is None or bool((edited.predict(keep) == kept[2]).all())

    if weight is not None:
        return weighted(weight)
    heavy, found = _first_weight(head, x, y, scores), None
    while heavy <= HEAVIEST:
        edited = weighted(heavy)
        if reached(edited):
            found, heavy = edited, heavy / 2
            if heavy < 1:
                return found
        elif found is not None:
            return found
        else:
            heavy *= 2
    raise ValueError(
        "edit: the ridge head cannot have these labels at these points, however much they weigh; "
        "two of them may have the same features"
    )


def _finite(scores: Tensor) -> Any:
    return torch.where(scores.isfinite(), scores, 0.0).double().cpu().numpy()


def _first_weight(head: RidgeHead, x: Tensor, y: Tensor, scores: Tensor) -> float:
    """A power of two near the weight that one wrong point needs."""
    if head.sums is None:
        raise RuntimeError("edit: the ridge head has learned nothing yet")
    own = scores.gather(1, y[:, None])[:, 0]
    best = scores.amax(1)
    gap = (best - own)[best > own].double().clamp_max(1.0).cpu().numpy()
    moved = gap / (1 + gap)  # share of the residual that the point must be moved
    leverage = head.sums.leverage(head.measure(x[best > own])) + 1 / float(head.sums.samples)
    needed = moved / (1 - moved) / np.maximum(leverage, 1e-12)
    return float(2.0 ** np.clip(np.round(np.log2(needed.max())), 0, 40)) if len(gap) else 1.0


def edit_report(
    before: nn.Module, after: nn.Module, x: Tensor, y: Tensor | int, elsewhere: Tensor, *,
    labels: Tensor | None = None, neighbourhood: float = 0.1, moved: float = 0.05,
    batch_size: int = 1000,
) -> EditReport:  # fmt: skip
    """Compare a model before and after an edit at `x`, on the inputs `elsewhere`.

    Those within `neighbourhood` of an edited point (Euclidean distance) are left out;
    `fraction_moved` is the fraction of the others whose outputs changed by more than `moved`.

    Args:
        labels: the labels of `elsewhere`, to see the accuracy there.
    """
    points, targets = _batch(x, y)
    classes = not targets.is_floating_point()
    outside = far_from(_array(points), _array(elsewhere), neighbourhood)
    old, new = (_outputs(model, elsewhere, batch_size) for model in (before, after))
    errors = [
        errors_at(_outputs(model, points, batch_size), _array(targets), classes=classes)
        for model in (before, after)
    ]
    truth = None if labels is None else _array(labels)
    return report_change(old, new, outside, errors, moved, classes=classes, labels=truth)


def _batch(x: Tensor, y: Any) -> tuple[Tensor, Tensor]:
    targets = torch.as_tensor(y).to(x.device)
    if targets.dim() == (1 if targets.is_floating_point() else 0):
        x, targets = x[None], targets[None]
    if len(x) != len(targets):
        raise ValueError(f"edit: {len(x)} inputs and {len(targets)} targets do not match")
    return x, targets


def _reached(out: Tensor, y: Tensor, tolerance: float | None) -> bool:
    if not y.is_floating_point():
        return bool((out.argmax(-1) == y).all())
    return bool(((out - y).abs() <= (0.0 if tolerance is None else tolerance)).all())


def _outputs(model: nn.Module, x: Tensor, batch_size: int) -> np.ndarray:
    with evaluating(model), torch.no_grad():
        return np.asarray(_array(torch.cat([model(rows) for rows in x.split(batch_size)])))


def _array(x: Tensor) -> Any:
    x = x.detach().cpu()
    return (x.double() if x.is_floating_point() else x).numpy()
