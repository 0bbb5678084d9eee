"""A small problem for the tests of the runner: real training, in a fraction of a second."""

import os
import signal
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from elephant_nn import emlp, function_stream, gradient
from elephant_nn.data.loading import load
from elephant_nn.learners.learner import Learner
from elephant_nn.runs.cells import Cell
from elephant_nn.runs.program import Method, Program
from elephant_nn.runs.shard import Work
from elephant_nn.streams.stream import advance, evaluate, squared_error, start


def train(*, neurons: int, lr: float, a: float, extra: int = 0) -> Learner:
    """Trains a small network."""
    return gradient(emlp((1, neurons, 1), a=a, sigma_bias=0.5), optax.adam(lr))


def slow(*, neurons: int, lr: float, a: float) -> Learner:
    return train(neurons=neurons, lr=lr, a=a)


def threads(*, neurons: int, lr: float, a: float) -> Learner:
    return train(neurons=neurons, lr=lr, a=a)


def fail(*, neurons: int, lr: float, a: float) -> Learner:
    raise RuntimeError("this method always fails")


def die(*, neurons: int, lr: float, a: float) -> Learner:
    """Takes its worker along."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


class Toy:
    """Method "slow" sleeps in every chunk; the error of "threads" is the number of threads."""

    pause = float(os.environ.get("TOY_CHUNK_SECONDS", "0.05"))

    def lanes(self, hyper: Any) -> int:
        return 4

    def program(self, method: Method, evaluations: float) -> Program:
        name, recipe = method.build.__name__, method.recipe()

        def chunk(carry, floats, stream, index):
            if name == "slow":
                jax.debug.callback(lambda: time.sleep(self.pause), ordered=False)
            learner, (state, order) = recipe(floats), carry

            def step(state, t):
                state = advance(learner, stream, order, state, t, 1)
                return state, evaluate(learner, stream, state, squared_error)

            state, curve = jax.lax.scan(step, state, index * 5 + jnp.arange(5))
            return (state, order), {"mse": curve}

        def finish(outputs):
            curve = outputs["mse"].reshape(-1)
            if name == "threads":
                curve = np.array([float(os.environ["PJRT_NPROC"])])
            return {"mse": curve[-1], "mse_curve": curve}

        return Program(
            init=lambda key, floats, stream: start(recipe(floats), stream, key),
            chunk=chunk,
            chunks=4,
            finish=finish,
            contract={"passes": 1, "task_boundary": False},
            data=function_stream(jnp.cos, 0.0, 1.0, samples=20, test_samples=16),
            check=recipe,
        )


class Embedded(Toy):
    """Needs an embedding."""

    data = "digits"

    def program(self, method: Method, evaluations: float, *, embedding: str) -> Program:
        assert load(self.data, embedding).x_train.shape == (6, 2)
        return super().program(method, evaluations)


PROBLEM, EMBEDDED = Toy(), Embedded()


def cell(seed: int = 0, method: str = "train", **hyper: Any) -> Cell:
    return Cell.of("toy", method, {"lr": 1e-2, "a": 0.2, "neurons": 12, **hyper}, seed)


def work(method: str = "train", problem: str = "PROBLEM") -> Work:
    return Work(f"toy:{problem}", f"toy:{method}")
