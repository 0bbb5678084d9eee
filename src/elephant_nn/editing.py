"""Change some outputs of a trained network or learner, and report what else changed."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, ArrayLike

from elephant_nn.collateral import (
    EditReport as EditReport,
    errors_at,
    far_from,
    report_change as report_change,
)
from elephant_nn.learners.gradient import cross_entropy, squared_error
from elephant_nn.learners.learner import Learner
from elephant_nn.learners.ridge import RidgeState
from elephant_nn.nn.networks import Network, Params, without_running_statistics

HEAVIEST = 2.0**30
"""A point of a ridge head counts as this many samples at most."""


def edit(
    model: Network | Learner, params: Any, x: ArrayLike, y: ArrayLike, *,
    keep: ArrayLike | None = None, keep_weight: ArrayLike = 1.0, steps: int | None = None,
    optimiser: optax.GradientTransformation | None = None, tolerance: float | None = None,
    weight: float | None = None,
) -> Any:  # fmt: skip
    """Teach a network or a learner that f(x) = y, at one point or at several, and nothing else.

    A network, or that of a learner, takes gradient steps on the points alone, by default of plain
    SGD with rate 1e-3 as in the paper's demonstration. For labels they stop as soon as every point
    has its label. A `ridge_head` is solved anew with the points added, which is exact. Any other
    learner, which has no gradients, takes its own updates on them.

    Args:
        model: a `Network` and its `params`, or a `Learner` and its state.
        x: one input, or several in rows.
        y: the target of each: whole numbers are labels, other numbers are outputs, one row per
            point. With one input, a single label or a single row.
        keep: inputs whose outputs shall stay as they are. For a network their squared change is
            added to the loss; a ridge head is shown them with its own scores, other learners with
            their own predictions.
        keep_weight: factor of that squared change, for a network.
        steps: of gradient, at most; by default 50, for labels 1,000. Not for a ridge head.
        optimiser: any of optax, for a network.
        tolerance: also stop when all outputs are within it of their targets. For a ridge head
            without labels, how close is close enough: by default 0.05.
        weight: how many samples each point counts for in a ridge head; by default the smallest
            power of two that is enough.

    Returns:
        New parameters, or a new state.
    """
    points, targets = jnp.asarray(x), jnp.asarray(y)
    labels = bool(jnp.issubdtype(targets.dtype, jnp.integer))
    if targets.ndim == (0 if labels else 1):
        points, targets = points[None], targets[None]
    if len(points) != len(targets):
        raise ValueError(f"edit: {len(points)} inputs and {len(targets)} targets do not match")
    if (
        isinstance(model, Learner)
        and model.network is not None
        and hasattr(state := params, "params")
    ):
        return state._replace(
            params=edit(
                model.network, state.params, points, targets, keep=keep, keep_weight=keep_weight,
                steps=steps, optimiser=optimiser, tolerance=tolerance, weight=weight,
            )
        )  # fmt: skip
    if isinstance(model, Learner):
        if optimiser is not None or np.any(np.asarray(keep_weight) != 1.0):
            raise ValueError(
                "edit: this learner takes no gradient steps; leave optimiser and keep_weight out"
            )
        kept = None if keep is None else jnp.asarray(keep)
        if not isinstance(params, RidgeState):
            return _edit_learner(model, params, points, targets, kept, steps, tolerance, weight)
        if steps is not None or (labels and tolerance is not None):
            raise ValueError(
                "edit: a ridge head is solved at once; leave steps out, and tolerance with labels"
            )
        return _edit_head(model, params, points, targets, kept, tolerance, weight)
    steps = _steps(steps, labels)
    if weight is not None:
        raise ValueError("edit: weight is for a ridge head; for a network choose steps instead")
    optimiser = optax.sgd(1e-3) if optimiser is None else optimiser
    fit = cross_entropy if labels else squared_error
    rows = points if keep is None else jnp.concatenate([points, jnp.asarray(keep)])
    before = None if keep is None else model.apply(params, jnp.asarray(keep))
    n = len(points)

    def objective(params: Params) -> Array:
        out = model.apply(params, rows)
        loss = fit(out[:n], targets)
        return loss if before is None else loss + keep_weight * squared_error(out[n:], before)

    def step(carry: tuple[Params, Any]) -> tuple[Params, Any]:
        params, state = carry
        change, state = optimiser.update(jax.grad(objective)(params), state, params)
        return optax.apply_updates(params, without_running_statistics(change)), state

    start = (params, optimiser.init(params))
    if not labels and tolerance is None:
        return jax.lax.fori_loop(0, steps, lambda _, carry: step(carry), start)[0]
    unfinished = lambda carry: (
        (carry[1] < steps) & ~_reached(model.apply(carry[0][0], points), targets, tolerance)
    )
    advance = lambda carry: (step(carry[0]), carry[1] + 1)
    return jax.lax.while_loop(unfinished, advance, (start, jnp.zeros((), int)))[0][0]


def _steps(steps: int | None, labels: bool) -> int:
    return (1000 if labels else 50) if steps is None else steps


def _edit_learner(
    learner: Learner, state: Any, x: Array, y: Array, keep: Array | None, steps: int | None,
    tolerance: float | None, weight: float | None,
) -> Any:  # fmt: skip
    labels = bool(jnp.issubdtype(y.dtype, jnp.integer))
    if weight is not None:
        raise ValueError("edit: weight is for a ridge head; for other learners choose steps")
    if keep is not None:
        outputs = learner.predict(state, keep)
        x = jnp.concatenate([x, keep])
        y = jnp.concatenate([y, outputs.argmax(-1).astype(y.dtype) if labels else outputs])
    update: Callable[..., Any] = jax.jit(learner.update)
    for _ in range(_steps(steps, labels)):
        if (labels or tolerance is not None) and _reached(learner.predict(state, x), y, tolerance):
            break
        state = update(state, (x, y))
    return state


def _edit_head(
    learner: Learner, state: RidgeState, x: Array, y: Array, keep: Array | None,
    tolerance: float | None, weight: float | None,
) -> Any:  # fmt: skip
    """Solve anew with the points added, and with kept points and their own scores as targets."""
    shown, targets, wanted = x, y, y
    if keep is not None:
        labels = bool(jnp.issubdtype(y.dtype, jnp.integer))
        solution = learner.prepare(state)
        scores = learner.predict(solution, keep)
        shown = jnp.concatenate([x, keep])
        columns = jax.nn.one_hot(y, scores.shape[1]) if labels else y.reshape(len(y), -1)
        targets = jnp.concatenate([columns, jnp.where(solution.seen, scores, 0)])
        wanted = jnp.concatenate([y, scores.argmax(-1).astype(y.dtype)]) if labels else targets
    update: Callable[..., Any] = jax.jit(learner.update)
    if weight is not None:
        return update(state, (shown, targets, jnp.full(len(shown), float(weight))))
    close, heavy = 0.05 if tolerance is None else tolerance, 1.0
    done = lambda state: bool(_reached(learner.predict(state, shown), wanted, close))
    if done(state):
        return state
    while heavy <= HEAVIEST:
        edited = update(state, (shown, targets, jnp.full(len(shown), heavy)))
        if done(edited):
            return edited
        heavy *= 2
    raise ValueError(
        "edit: the ridge head cannot have these outputs at these points, however much they weigh; "
        "two of them may have the same features"
    )


def _reached(out: Array, y: Array, tolerance: float | None) -> Array:
    if jnp.issubdtype(y.dtype, jnp.integer):
        return jnp.all(out.argmax(-1) == y)
    return jnp.all(jnp.abs(out - y) <= (0.0 if tolerance is None else tolerance))


def edit_report(
    model: Network | Learner, before: Any, after: Any, x: ArrayLike, y: ArrayLike,
    elsewhere: ArrayLike, *, labels: ArrayLike | None = None, neighbourhood: float = 0.1,
    moved: float = 0.05,
) -> EditReport:  # fmt: skip
    """Compare a network or learner before and after an edit at `x`, on the rows of `elsewhere`.

    Rows within `neighbourhood` of an edited point (Euclidean distance) are left out;
    `fraction_moved` is the fraction of the others whose outputs changed by more than `moved`.

    Args:
        before: parameters or state before the edit.
        after: the same after it.
        labels: the labels of `elsewhere`, to see the accuracy there.
    """
    points, targets = np.asarray(x), np.asarray(y)
    classes = targets.dtype.kind in "iu"
    if targets.ndim == (0 if classes else 1):
        points, targets = points[None], targets[None]
    outside = far_from(points, elsewhere, neighbourhood)
    apply = model.predict if isinstance(model, Learner) else model.apply
    old, new = (apply(params, jnp.asarray(elsewhere)) for params in (before, after))
    errors = [
        errors_at(apply(params, jnp.asarray(points)), targets, classes=classes)
        for params in (before, after)
    ]
    return report_change(old, new, outside, errors, moved, classes=classes, labels=labels)
