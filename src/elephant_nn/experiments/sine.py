"""Streaming regression: learn sin(pi x) from samples that come once, from left to right.

Table 1 and Figure 2 of the paper. The tuned settings are what `elephant sweep sine --seeds 20`
chose, on seeds that no table reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from elephant_nn.experiments.spec import Entry, Experiment, Metric

if TYPE_CHECKING:
    import numpy as np

    from elephant_nn.nn.networks import Network
    from elephant_nn.runs.program import Program

LEARNING_RATES = (3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
CHUNK = 50
STAGES = (100, 150, 200)


def program(method: str, static: Mapping[str, Any]) -> Program:
    """One run: 200 samples, E Adam updates on each, the test error after every sample.

    With `stages` among the settings also, at the end of each chunk, the learned function and the
    kernel at the chunk's last sample, the latter before the updates on that sample.
    """
    import jax
    import optax

    from elephant_nn.learners.gradient import gradient
    from elephant_nn.learners.learner import Learner
    from elephant_nn.learners.srnn import sr_nn
    from elephant_nn.nn.activations import CLASSICAL
    from elephant_nn.nn.curves import curve, elephant_curve
    from elephant_nn.runs.program import Floats, Program, named_key
    from elephant_nn.streams.regression import sine_stream
    from elephant_nn.streams.stream import travel
    from elephant_nn.theory.kernel import normalised_kernel, ntk

    stream = sine_stream()
    order = stream.order(jax.random.key(0), len(stream.x))

    network = partial(build_network, method, static)

    def learner(floats: Floats) -> Learner:
        optimiser, updates = optax.adam(floats["lr"]), static["E"]
        if method == "sr-nn":
            weight, beta = floats["lambda"], floats["beta"]
            return sr_nn(network(floats), optimiser, weight=weight, beta=beta, updates=updates)
        return gradient(network(floats), optimiser, updates=updates)

    def predict(state: Any, x: jax.Array, floats: Floats) -> jax.Array:
        if method == "emlp":
            return elephant_curve(state.params, x, floats["a"], static["d"])
        return curve(state.params, x, CLASSICAL[static["activation"]])

    def init(key: jax.Array, floats: Floats) -> Any:
        return learner(floats).init(named_key(key, "init"))

    def chunk(state: Any, floats: Floats, index: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
        start = index * CHUNK
        fast = replace(learner(floats), predict=partial(predict, floats=floats))
        passage = travel(fast, stream, order, state, start, CHUNK)
        outputs = {"mse": passage.curve}
        if "stages" in static:
            last = stream.x[start + CHUNK - 1]
            kernel = ntk(network(floats), passage.before_last.params, stream.test_x, last)
            outputs["kernel"] = normalised_kernel(kernel)
            outputs["learned"] = fast.predict(passage.state, stream.test_x)[:, 0]
        return passage.state, outputs

    return Program(
        init,
        chunk,
        chunks=stream.steps // CHUNK,
        finish=_finish,
        contract={
            "passes": stream.contract.passes,
            "task_boundary": stream.contract.task_boundary,
        },
    )


def build_network(method: str, static: Mapping[str, Any], floats: Mapping[str, Any]) -> Network:
    """One number in, one out, with the method's activation in the hidden layer."""
    from elephant_nn.nn.activations import CLASSICAL
    from elephant_nn.nn.networks import emlp, mlp

    sizes = (1, static["neurons"], 1)
    if method == "emlp":
        return emlp(sizes, a=floats["a"], sigma_bias=floats["sigma_bias"], d=static["d"])
    return mlp(sizes, CLASSICAL[static["activation"]])


def _finish(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    curve = outputs["mse"].reshape(-1)
    stages = [stage // CHUNK - 1 for stage in STAGES]
    pictures = {name: outputs[name][stages] for name in ("kernel", "learned") if name in outputs}
    return {"mse": curve[-5:].mean(), "mse_curve": curve, **pictures}


def _mlp(activation: str, lr: float, paper: tuple[float, float]) -> Entry:
    return Entry(
        f"mlp-{activation}",
        f"MLP ({activation})",
        {"activation": activation, "lr": lr, "E": 10, "neurons": 1000},
        {"lr": LEARNING_RATES},
        {"mse": paper},
    )


def _sr_nn(activation: str, lr: float, weight: float, beta: float) -> dict[str, Any]:
    return {
        "activation": activation,
        "lr": lr,
        "lambda": weight,
        "beta": beta,
        "E": 10,
        "neurons": 1000,
    }


SINE = Experiment(
    name="sine",
    title="Streaming regression of a sine",
    source="Table 1, Figure 2",
    metrics=(Metric("mse", "test MSE", "lower"),),
    entries=(
        _mlp("relu", 3e-3, (0.4729, 0.0110)),
        _mlp("sigmoid", 1e-3, (0.4583, 0.0008)),
        _mlp("tanh", 3e-3, (0.4461, 0.0013)),
        _mlp("elu", 3e-3, (0.4521, 0.0019)),
        Entry(
            "sr-nn",
            "SR-NN",
            _sr_nn("elu", 3e-3, 0.01, 0.05),
            {
                "activation": ("relu", "sigmoid", "tanh", "elu"),
                "lr": LEARNING_RATES,
                "lambda": (0.1, 0.01, 0.001),
                "beta": (0.05, 0.1, 0.2),
            },
            {"mse": (0.4061, 0.0036)},
            variant="activation",
            pictured={"stages": 1},
            rivals=(
                _sr_nn("tanh", 3e-3, 0.1, 0.1),
                _sr_nn("relu", 3e-5, 0.001, 0.2),
                _sr_nn("sigmoid", 3e-5, 0.01, 0.2),
            ),
        ),
        Entry(
            "emlp",
            "EMLP",
            {"lr": 1e-4, "a": 0.04, "sigma_bias": 0.64, "d": 8, "E": 10, "neurons": 1000},
            {
                "lr": LEARNING_RATES,
                "a": (0.02, 0.04, 0.08, 0.16, 0.32),
                "sigma_bias": (0.08, 0.16, 0.32, 0.64, 1.28),
            },
            {"mse": (0.0081, 0.0009)},
            pictured={"stages": 1},
        ),
    ),
    program=program,
    lanes=lambda cell: 1 if "stages" in cell.hyper else 15,
    notes="A run's number is the mean of its last five test errors.",
)
