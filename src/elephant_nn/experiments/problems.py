"""What is learned and how it is evaluated: the problems of the tables, as compiled programs.

A problem is hashable and has a name below; `program` declares its settings as builders do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from elephant_nn.editing import edit, report_change
from elephant_nn.experiments.classes import ClassIncremental, moments as moments, summary as summary
from elephant_nn.experiments.constants import (
    EDIT_NEIGHBOURHOOD,
    EDIT_POINT,
    EDIT_TARGET,
    SINE_STAGES,
    STEPS,
)
from elephant_nn.learners.gradient import squared_error
from elephant_nn.learners.learner import Contract
from elephant_nn.rl import make_environment
from elephant_nn.rl.dqn import Agent, DQNConfig, dqn
from elephant_nn.rl.envs.environment import Environment
from elephant_nn.runs.cells import Hyper
from elephant_nn.runs.program import Data, Floats, Method, Outputs, Program
from elephant_nn.streams.samples import sine_stream
from elephant_nn.streams.stream import Epochs, advance, evaluate, named_key, start
from elephant_nn.theory.kernel import normalised_kernel, ntk
from elephant_nn.theory.sparsity import limit_sparsity, slope_of


@dataclass(frozen=True)
class Sine:
    """Streaming regression of a sine: 200 samples from left to right, each seen once.

    The test error is recorded after every sample. With `stages`, each chunk also records the
    learned function, and the kernel at its last sample before the updates on that sample.
    """

    samples_per_chunk: int = 50

    def lanes(self, hyper: Hyper) -> int:
        return 1 if "stages" in hyper else 15

    def program(self, method: Method, evaluations: float, *, stages: int = 0) -> Program:
        recipe, length = method.recipe(), self.samples_per_chunk

        def chunk(carry: Any, floats: Floats, stream: Data, index: Array) -> tuple[Any, Outputs]:
            learner, (state, order) = recipe(floats), carry

            def step(state: Any, t: Array) -> tuple[Any, Array]:
                state = advance(learner, stream, order, state, t, 1)
                return state, evaluate(learner, stream, state, squared_error)

            times = index * length + jnp.arange(length)
            if not stages:
                state, curve = jax.lax.scan(step, state, times)
                return (state, order), {"mse": curve}
            before, curve = jax.lax.scan(step, state, times[:-1])
            state, last = step(before, times[-1])
            outputs = {"mse": jnp.append(curve, last)}
            if learner.network is not None:
                kernel = ntk(learner.network, before.params, stream.test_x, stream.x[times[-1]])
                outputs["kernel"] = normalised_kernel(kernel)
                outputs["learned"] = learner.predict(state, stream.test_x)[:, 0]
            return (state, order), outputs

        def finish(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
            curve = outputs["mse"].reshape(-1)
            shown = [stage // length - 1 for stage in SINE_STAGES]
            pictures = {n: outputs[n][shown] for n in ("kernel", "learned") if n in outputs}
            return {"mse": curve[-5:].mean(), "mse_curve": curve, **pictures}

        stream = sine_stream()
        return Program(
            lambda key, floats, stream: start(recipe(floats), stream, key),
            chunk, stream.steps // length, finish, {"passes": 1, "task_boundary": False},
            data=stream, check=recipe,
        )  # fmt: skip


@dataclass(frozen=True)
class Edit:
    """Learn the sine from shuffled batches, then move one output on that sample alone.

    The edit is tried after each chunk, and the last one counts.
    """

    epochs: int = 250
    chunks: int = 5

    def lanes(self, hyper: Hyper) -> int:
        return 5

    def program(
        self, method: Method, evaluations: float, *, edit_steps: int, edit_lr: float
    ) -> Program:
        sine, recipe = sine_stream(), method.recipe()
        shuffled = replace(
            sine, batch_size=20, order=Epochs(self.epochs), shown=self.epochs * len(sine.x),
            contract=Contract(passes=self.epochs),
        )  # fmt: skip
        length = shuffled.steps // self.chunks
        point, target = jnp.array([EDIT_POINT]), jnp.array([EDIT_TARGET])

        def chunk(carry: Any, floats: Floats, stream: Data, index: Array) -> tuple[Any, Outputs]:
            learner, (state, order) = recipe(floats), carry
            if (network := learner.network) is None:
                raise ValueError(
                    "an edit needs a learner with a network: Learner(..., network=network)"
                )
            state = advance(learner, stream, order, state, index * length, length)
            sgd = optax.sgd(floats["edit_lr"])
            after = edit(network, state.params, point, target, steps=edit_steps, optimiser=sgd)
            both = (state.params, after)
            old, new = (network.apply(params, stream.test_x)[:, 0] for params in both)
            at_point = jnp.stack([network.apply(params, point[None])[0, 0] for params in both])
            return (state, order), {"old": old, "new": new, "at_point": at_point}

        def finish(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
            old, new, at_point = (outputs[name][-1] for name in ("old", "new", "at_point"))
            distance = np.abs(np.asarray(sine.test_x[:, 0]) - EDIT_POINT)
            outside, errors = distance > EDIT_NEIGHBOURHOOD, np.abs(at_point - EDIT_TARGET)
            report = report_change(old[:, None], new[:, None], outside, tuple(errors))
            return {
                "error_before": report.error_before, "error_after": report.error_after,
                "mean_change": report.mean_change_outside, "max_change": report.max_change_outside,
                "old": old, "new": new,
            }  # fmt: skip

        return Program(
            lambda key, floats, stream: start(recipe(floats), stream, key),
            chunk, self.chunks, finish, {"passes": self.epochs, "task_boundary": False},
            data=shuffled, check=recipe,
        )  # fmt: skip


@dataclass(frozen=True)
class Activations:
    """No training: the limit sparsity of a function, and of its slope by autodiff."""

    def lanes(self, hyper: Hyper) -> int:
        return 1

    def program(self, method: Method, evaluations: float) -> Program:
        function = method.recipe()({})

        def finish(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
            return {
                "sparsity": limit_sparsity(function),
                "slope_sparsity": limit_sparsity(slope_of(function)),
            }

        return Program(
            lambda key, floats, data: jnp.zeros(()), lambda carry, floats, data, index: (carry, {}),
            1, finish, {"passes": 0, "task_boundary": False},
        )  # fmt: skip


@dataclass(frozen=True)
class ReinforcementLearning:
    """DQN on a task; the number is the mean return of the last tenth of the training episodes."""

    task: str = ""
    steps_per_chunk: int = 1000
    curve_points: int = 100

    def lanes(self, hyper: Hyper) -> int:
        return 5

    def environment(self, task: str = "", truncate_pixels: int = 0, **others: Any) -> Environment:
        """The environment of these settings; others are ignored."""
        del others
        options = {"truncate_pixels": True} if truncate_pixels else {}
        return make_environment(self.task or task, **options)

    def program(
        self, method: Method, evaluations: float, *, buffer: int, lr: float, updates: int,
        task: str = "", steps: int = 0, truncate_pixels: int = 0,
    ) -> Program:  # fmt: skip
        """One run.

        Args:
            task: if the problem does not say.
            steps: of the run, rounded up to whole chunks; 0: the paper's.
            truncate_pixels: 1 for the rounding of pygame before 2.3 in Catcher and Pixelcopter.
        """
        length, environment = self.steps_per_chunk, self.environment(task, truncate_pixels)
        task = environment.name
        recipe = method.recipe(environment.size, environment.actions)
        config = DQNConfig(buffer, updates=updates, target_update=TARGET_UPDATE[task])

        def agent(floats: Floats) -> Agent:
            optimiser = optax.rmsprop(floats["lr"], decay=0.999)
            return dqn(environment, recipe(floats), optimiser, config)

        def init(key: Array, floats: Floats, data: Data) -> Any:
            state = agent(floats).init(named_key(key, "init"))
            return state, jax.random.key_data(named_key(key, "explore"))

        def chunk(carry: Any, floats: Floats, data: Data, index: Array) -> tuple[Any, Outputs]:
            state, words = carry
            key = jax.random.fold_in(jax.random.wrap_key_data(words), index)
            state, returns = agent(floats).train(state, key, index * length, length)
            return (state, words), {"returns": returns}

        def finish(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
            return episodes(outputs["returns"].reshape(-1), self.curve_points)

        chunks = -(-(steps or STEPS[task]) // length)
        memory = {"buffer_bytes": buffer * 4 * (2 * environment.size + 3)}
        learned = lambda carry: carry[0].dqn.params
        return Program(init, chunk, chunks, finish, memory, check=recipe, learned=learned)


TARGET_UPDATE = {"mountain-car": 100, "acrobot": 100, "catcher": 200, "pixelcopter": 200}


def episodes(returns: np.ndarray, points: int) -> dict[str, Any]:
    """The columns of a row from the return at every step that ended an episode, NaN elsewhere."""
    ends = np.flatnonzero(~np.isnan(returns))
    values = returns[ends].astype(float)
    if not len(ends):
        return {"return": np.nan, "episodes": 0, "return_curve": np.full(points, np.nan)}
    last = values[int(0.9 * len(values)) :]
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ended = np.searchsorted(ends, np.linspace(0, len(returns), points + 1)[1:])
    first = np.maximum(ended - 50, 0)  # a trailing mean over fifty episodes
    with np.errstate(invalid="ignore"):
        curve = (sums[ended] - sums[first]) / (ended - first)
    return {"return": last.mean(), "episodes": len(ends), "return_curve": curve}


sine, edit_sine, activations = Sine(), Edit(), Activations()
split_digits = ClassIncremental("digits", side_by_side=5)
split_mnist = ClassIncremental("mnist")
split_cifar10 = ClassIncremental("cifar10")
split_fashion = ClassIncremental("fashion-mnist")
embedding_cifar10 = ClassIncremental("cifar10")
embedding_cifar100 = ClassIncremental("cifar100")
embedding_tiny_imagenet = ClassIncremental("tiny-imagenet")
mountain_car = ReinforcementLearning("mountain-car")
acrobot = ReinforcementLearning("acrobot")
catcher = ReinforcementLearning("catcher")
pixelcopter = ReinforcementLearning("pixelcopter")
any_task = ReinforcementLearning()
