"""Change one output of a trained network, and report what else changed."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, ArrayLike, Float

from elephant_nn.learners.gradient import GradientState, gradient
from elephant_nn.nn.networks import Network, Params


def edit(
    network: Network, params: Params, x: Float[Array, " in"], y: Float[Array, " out"],
    *, steps: int = 50, optimiser: optax.GradientTransformation | None = None,
) -> Params:  # fmt: skip
    """Teach the network that f(x) = y by gradient steps on that sample alone.

    Plain SGD with rate 1e-3 by default, as in the paper's demonstration.
    """
    optimiser = optax.sgd(1e-3) if optimiser is None else optimiser
    learner = gradient(network, optimiser, updates=steps)
    return learner.update(GradientState(params, optimiser.init(params)), (x[None], y[None])).params


@dataclass(frozen=True)
class EditReport:
    """The effect of an edit at the edited point, and outside a neighbourhood of it."""

    error_before: float
    error_after: float
    mean_change_outside: float
    max_change_outside: float
    fraction_moved: float


def edit_report(
    network: Network, before: Params, after: Params, x: Float[Array, " in"],
    y: Float[Array, " out"], elsewhere: Float[Array, "n in"],
    *, neighbourhood: float = 0.1, moved: float = 0.05,
) -> EditReport:  # fmt: skip
    """Compare a network before and after an edit at `x`, on the rows of `elsewhere`.

    Rows within `neighbourhood` of x (Euclidean distance) are left out; `fraction_moved` is the
    fraction of the others whose output changed by more than `moved`.
    """
    outside = jnp.linalg.norm(elsewhere - x, axis=-1) > neighbourhood
    if not outside.any():
        raise ValueError(
            f"edit_report: no row of elsewhere is farther than neighbourhood={neighbourhood} "
            "from x; give more rows or a smaller neighbourhood"
        )
    old, new = (network.apply(params, elsewhere) for params in (before, after))
    errors = [jnp.linalg.norm(network.apply(p, x[None])[0] - y) for p in (before, after)]
    return report_change(old, new, outside, errors, moved=moved)


def report_change(
    old: ArrayLike, new: ArrayLike, outside: ArrayLike, errors: Sequence[ArrayLike],
    moved: float = 0.05,
) -> EditReport:  # fmt: skip
    """The report of an edit from outputs, and errors at the edited point, before and after it."""
    change = np.linalg.norm(np.asarray(new) - np.asarray(old), axis=-1)[np.asarray(outside)]
    return EditReport(*map(float, (*errors, change.mean(), change.max(), (change > moved).mean())))
