"""What is learned and how it is evaluated: the problems of the tables, as compiled programs.

A problem is hashable and has a name below; `program` declares its settings as builders do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from elephant_nn.data.dataset import Dataset
from elephant_nn.data.loading import load
from elephant_nn.editing import edit, report_change
from elephant_nn.experiments.constants import (
    EDIT_NEIGHBOURHOOD,
    EDIT_POINT,
    EDIT_TARGET,
    SINE_STAGES,
    STEPS,
)
from elephant_nn.learners.gradient import squared_error
from elephant_nn.learners.learner import Contract, Learner
from elephant_nn.nn.networks import Network
from elephant_nn.rl import make_environment
from elephant_nn.rl.dqn import Agent, DQNConfig, dqn
from elephant_nn.rl.envs.environment import Environment
from elephant_nn.runs.cells import Hyper
from elephant_nn.runs.program import Data, Floats, Method, Outputs, Program
from elephant_nn.streams.class_incremental import class_incremental
from elephant_nn.streams.metrics import (
    backward_transfer,
    forgetting,
    learning_accuracy,
    overall_accuracy,
    task_matrix,
)
from elephant_nn.streams.samples import sine_stream
from elephant_nn.streams.stream import (
    Epochs,
    Stream,
    accuracy_by_class,
    advance,
    evaluate,
    named_key,
    start,
)
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

        def chunk(
            carry: Any, floats: Floats, stream: Data, index: jax.Array
        ) -> tuple[Any, Outputs]:
            learner, (state, order) = recipe(floats), carry

            def step(state: Any, t: jax.Array) -> tuple[Any, jax.Array]:
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
            init=lambda key, floats, stream: start(recipe(floats), stream, key),
            chunk=chunk,
            chunks=stream.steps // length,
            finish=finish,
            contract={"passes": 1, "task_boundary": False},
            data=stream,
            check=recipe,
        )


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
            sine,
            batch_size=20,
            order=Epochs(self.epochs),
            contract=Contract(passes=self.epochs),
            shown=self.epochs * len(sine.x),
        )
        length = shuffled.steps // self.chunks
        point, target = jnp.array([EDIT_POINT]), jnp.array([EDIT_TARGET])

        def chunk(
            carry: Any, floats: Floats, stream: Data, index: jax.Array
        ) -> tuple[Any, Outputs]:
            learner, (state, order) = recipe(floats), carry
            state = advance(learner, stream, order, state, index * length, length)
            network, before = _network_of(learner), state.params
            optimiser = optax.sgd(floats["edit_lr"])
            after = edit(network, before, point, target, steps=edit_steps, optimiser=optimiser)
            return (state, order), {
                "old": network.apply(before, stream.test_x)[:, 0],
                "new": network.apply(after, stream.test_x)[:, 0],
                "at_point": jnp.stack(
                    [network.apply(p, point[None])[0, 0] for p in (before, after)]
                ),
            }

        def finish(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
            old, new, at_point = (outputs[name][-1] for name in ("old", "new", "at_point"))
            outside = np.abs(np.asarray(sine.test_x[:, 0]) - EDIT_POINT) > EDIT_NEIGHBOURHOOD
            errors = np.abs(at_point - EDIT_TARGET)
            report = report_change(old[:, None], new[:, None], outside, tuple(errors))
            return {
                "error_before": report.error_before,
                "error_after": report.error_after,
                "mean_change": report.mean_change_outside,
                "max_change": report.max_change_outside,
                "old": old,
                "new": new,
            }

        return Program(
            init=lambda key, floats, stream: start(recipe(floats), stream, key),
            chunk=chunk,
            chunks=self.chunks,
            finish=finish,
            contract={"passes": self.epochs, "task_boundary": False},
            data=shuffled,
            check=recipe,
        )


def _network_of(learner: Learner) -> Network:
    if learner.network is None:
        raise ValueError("an edit needs a learner with a network: Learner(..., network=network)")
    return learner.network


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
            init=lambda key, floats, data: jnp.zeros(()),
            chunk=lambda carry, floats, data, index: (carry, {}),
            chunks=1,
            finish=finish,
            contract={"passes": 0, "task_boundary": False},
        )


@dataclass(frozen=True)
class ClassIncremental:
    """A few classes at a time, one head over all classes.

    A run is evaluated `evaluations` times per task (4: after every quarter of a task; 0.2: after
    every fifth task), and after the last batch.
    """

    data: str
    classes_per_task: int = 2
    side_by_side: int = 1

    def lanes(self, hyper: Hyper) -> int:
        return self.side_by_side

    def program(
        self,
        method: Method,
        evaluations: float,
        *,
        batch: int,
        held_out: int = 0,
        scaling: str = "unit",
        cut: str = "task",
        class_order: int = -1,
        order: str = "tasks",
        passes: int = 1,
        task_boundary: int = 0,
    ) -> Program:
        """One run.

        Args:
            held_out: hold out every n-th training sample of a class, and evaluate on it and on the
                test set at the end only: what settings are chosen on.
            class_order: the seed of a permutation of the classes; -1: the natural order.
        """
        dataset, (x, y, test_x, test_y) = _on_device(self.data)
        kept, held = dataset.held_out_rows(held_out) if held_out else (None, None)
        permutation = np.random.default_rng(class_order).permutation if class_order >= 0 else list
        stream, tasks = class_incremental(
            dataset,
            classes_per_task=self.classes_per_task,
            class_order=[int(label) for label in permutation(range(dataset.classes))],
            batch_size=batch,
            scaling=scaling,
            cut=cut,
            order=order,
            passes=passes,
            task_boundary=bool(task_boundary),
            rows=kept,
        )
        recipe = method.recipe(dataset.x_train.shape[1:], dataset.classes, ends=tasks.ends)
        # Learners that need class statistics may keep them, and the row says so.
        needs = recipe(dict.fromkeys(recipe.traced, 0.5)).needs
        contract = replace(stream.contract, class_statistics=needs.class_statistics)
        stream = replace(stream, x=x, y=y, test_x=test_x, test_y=test_y, contract=contract)
        bounds, when = moments(tasks.ends, 1e-9 if held_out else evaluations)
        classes, last = dataset.classes, len(bounds) - 1

        def sets(stream: Stream) -> dict[str, tuple[Any, Any, Any]]:
            test = (stream.test_x, stream.test_y, None)
            if held is None:
                return {"by_class": test}
            return {"by_class": (stream.x, stream.y, jnp.asarray(held)), "test_by_class": test}

        def chunk(
            carry: Any, floats: Floats, stream: Data, index: jax.Array
        ) -> tuple[Any, Outputs]:
            learner, (state, rows) = recipe(floats), carry
            ends = jnp.asarray(bounds)
            first = ends[index]
            state = advance(learner, stream, rows, state, first, ends[index + 1] - first)
            metric = accuracy_by_class(classes)
            measure = lambda: {
                name: evaluate(learner, stream, state, metric, samples, block=500)
                for name, samples in sets(stream).items()
            }
            skip = lambda: {name: jnp.full(classes, jnp.nan) for name in sets(stream)}
            return (state, rows), jax.lax.cond(jnp.asarray(when)[index], measure, skip)

        def finish(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
            labels = np.asarray(dataset.y_test)
            counts = np.bincount(labels, minlength=classes)
            seen = outputs["by_class"][when]
            if held is None:
                ends = tasks.ends if order == "tasks" else ()
                return summary(seen, counts, tasks.classes, bounds[1:][when], ends)
            held_counts = np.bincount(np.asarray(dataset.y_train)[held], minlength=classes)
            row = summary(seen, held_counts, tasks.classes, bounds[1:][when], ())
            return {**row, "test_accuracy": outputs["test_by_class"][-1] @ counts / len(labels)}

        return Program(
            init=lambda key, floats, stream: start(recipe(floats), stream, key),
            chunk=chunk,
            chunks=last,
            finish=finish,
            contract={
                "passes": contract.passes,
                "task_boundary": contract.task_boundary,
                "class_statistics": contract.class_statistics,
                "scaling": scaling,
                "cut": cut,
            },
            data=stream,
            check=recipe,
        )


@lru_cache(maxsize=1)
def _on_device(name: str) -> tuple[Dataset, tuple[jax.Array, ...]]:
    """A data set, and its parts as JAX arrays that all programs of this process share."""
    dataset = load(name)
    return dataset, tuple(jnp.asarray(part) for part in dataset.parts.values())


def moments(ends: Sequence[int], evaluations: float) -> tuple[np.ndarray, np.ndarray]:
    """The batches that bound the chunks of a run, and after which chunks to evaluate.

    A task has four nearly equal chunks, or one if there are more than ten tasks. All tasks have the
    same number of chunks, whatever their length.
    """
    pieces = 4 if len(ends) <= 10 else 1
    tasks = zip((0, *ends[:-1]), ends, strict=True)
    cuts = [np.linspace(first, last, pieces + 1)[1:] for first, last in tasks]
    bounds = np.concatenate([[0], *cuts]).round().astype(int)
    stride = max(1, round(min(pieces / evaluations, len(bounds))))
    number = np.arange(1, len(bounds))
    return bounds, (number % stride == 0) | (number == len(bounds) - 1)


def summary(
    by_class: np.ndarray,
    counts: np.ndarray,
    tasks: Sequence[Sequence[int]],
    batches: np.ndarray,
    ends: Sequence[int],
) -> dict[str, Any]:
    """The columns of a row from the accuracies of each class after some batches.

    Columns about tasks need their ends, and an evaluation after each.
    """
    curve = overall_accuracy(by_class, counts)
    row = {"accuracy": curve[-1], "accuracy_curve": curve, "batches": batches}
    if not len(ends) or not np.isin(ends, batches).all():
        return row
    over_time = task_matrix(by_class, counts, tasks)
    at_ends = over_time[np.searchsorted(batches, ends)]
    return row | {
        "forgetting": forgetting(at_ends),
        "backward_transfer": backward_transfer(at_ends),
        "learning_accuracy": learning_accuracy(at_ends),
        "task_accuracy": over_time,
    }


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
        self,
        method: Method,
        evaluations: float,
        *,
        buffer: int,
        lr: float,
        updates: int,
        task: str = "",
        steps: int = 0,
        truncate_pixels: int = 0,
    ) -> Program:
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

        def init(key: jax.Array, floats: Floats, data: Data) -> Any:
            state = agent(floats).init(named_key(key, "init"))
            return state, jax.random.key_data(named_key(key, "explore"))

        def chunk(carry: Any, floats: Floats, data: Data, index: jax.Array) -> tuple[Any, Outputs]:
            state, words = carry
            key = jax.random.fold_in(jax.random.wrap_key_data(words), index)
            state, returns = agent(floats).train(state, key, index * length, length)
            return (state, words), {"returns": returns}

        row_bytes = 4 * (2 * environment.size + 3)
        return Program(
            init=init,
            chunk=chunk,
            chunks=-(-(steps or STEPS[task]) // length),
            finish=lambda outputs: episodes(outputs["returns"].reshape(-1), self.curve_points),
            contract={"buffer_bytes": buffer * row_bytes},
            check=recipe,
            learned=lambda carry: carry[0].dqn.params,
        )


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
mountain_car = ReinforcementLearning("mountain-car")
acrobot = ReinforcementLearning("acrobot")
catcher = ReinforcementLearning("catcher")
pixelcopter = ReinforcementLearning("pixelcopter")
any_task = ReinforcementLearning()
