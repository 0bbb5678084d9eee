"""Function and slope sparsity of the activations: the paper's table, computed, and its drawings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from elephant_nn.experiments.spec import Entry, Experiment, Metric

if TYPE_CHECKING:
    import numpy as np

    from elephant_nn.runs.program import Program


def program(method: str, static: Mapping[str, Any]) -> Program:
    """No training: the limit sparsity of the function, and of its slope by autodiff."""
    import jax.numpy as jnp

    from elephant_nn.nn.activations import CLASSICAL, elephant_activation
    from elephant_nn.runs.program import Program
    from elephant_nn.theory.sparsity import limit_sparsity, slope_of

    function = elephant_activation(d=static["d"]) if method == "elephant" else CLASSICAL[method]

    def finish(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        return {
            "sparsity": limit_sparsity(function),
            "slope_sparsity": limit_sparsity(slope_of(function)),
        }

    return Program(
        init=lambda key, floats: jnp.zeros(()),
        chunk=lambda carry, floats, index: (carry, {}),
        chunks=1,
        finish=finish,
        contract={"passes": 0, "task_boundary": False},
    )


def _entry(name: str, value: float, slope: float, **settings: Any) -> Entry:
    return Entry(
        name, name, settings, {}, {"sparsity": (value, None), "slope_sparsity": (slope, None)}
    )


ACTIVATIONS = Experiment(
    name="activations",
    title="Sparsity of activation functions and of their slopes",
    source="Table 3, Figures 1 and 5",
    metrics=(
        Metric("sparsity", "function sparsity", "higher", digits=3),
        Metric("slope_sparsity", "slope sparsity", "higher", digits=3),
    ),
    entries=(
        _entry("relu", 0.5, 0.5),
        _entry("sigmoid", 0.5, 1.0),
        _entry("tanh", 0.0, 1.0),
        _entry("elu", 0.0, 0.5),
        _entry("elephant", 1.0, 1.0, d=8),
    ),
    program=program,
    lanes=lambda cell: 1,
    seeds=1,
    notes="Measured on growing ranges at shrinking thresholds until the share stops moving; "
    "nothing here is random.",
)
