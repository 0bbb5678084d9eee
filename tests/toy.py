"""A small program for the tests of the runner: real training, in a fraction of a second."""

import os
import signal
import time
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from elephant_nn import emlp, function_stream, gradient
from elephant_nn.runs.cells import Cell
from elephant_nn.runs.program import Program, named_key
from elephant_nn.streams.stream import travel

STREAM = function_stream(jnp.cos, 0.0, 1.0, samples=20, test_samples=16)


def program(method: str, static: Mapping[str, Any]) -> Program:
    """Method "train" learns, "slow" does so slowly, "fail" raises, "die" takes its worker along,
    "threads" has the number of its worker's threads as its error."""
    if method == "fail":
        raise RuntimeError("this method always fails")
    if method == "die":
        os.kill(os.getpid(), signal.SIGKILL)

    def learner(floats):
        network = emlp((1, static["neurons"], 1), a=floats["a"], sigma_bias=0.5)
        return gradient(network, optax.adam(floats["lr"]))

    def chunk(state, floats, index):
        if method == "slow":
            jax.debug.callback(lambda: time.sleep(0.05), ordered=False)
        order = jnp.arange(len(STREAM.x))
        passage = travel(learner(floats), STREAM, order, state, index * 5, 5)
        return passage.state, {"mse": passage.curve}

    def finish(outputs):
        curve = outputs["mse"].reshape(-1)
        if method == "threads":
            curve = np.array([float(os.environ["PJRT_NPROC"])])
        return {"mse": curve[-1], "mse_curve": curve}

    return Program(
        init=lambda key, floats: learner(floats).init(named_key(key, "init")),
        chunk=chunk,
        chunks=4,
        finish=finish,
        contract={"passes": 1, "task_boundary": False},
    )


def cell(seed: int = 0, method: str = "train", **hyper: Any) -> Cell:
    return Cell.of("toy", method, {"lr": 1e-2, "a": 0.2, "neurons": 12, **hyper}, seed)
