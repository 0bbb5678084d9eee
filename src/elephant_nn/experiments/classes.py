"""Class-incremental learning: a few classes at a time, one head over all classes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from elephant_nn.data.dataset import Dataset
from elephant_nn.data.loading import load
from elephant_nn.learners.learner import Contract, Learner
from elephant_nn.learners.recipe import Recipe
from elephant_nn.learners.scaling import first_batch_scaling
from elephant_nn.runs.cells import Hyper
from elephant_nn.runs.program import Data, Floats, Method, Outputs, Program
from elephant_nn.streams import metrics
from elephant_nn.streams.class_incremental import class_incremental
from elephant_nn.streams.stream import accuracy_by_class, advance, evaluate, start


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
        self, method: Method, evaluations: float, *, batch: int, held_out: int = 0,
        scaling: str = "unit", cut: str = "task", class_order: int = -1, legacy_order: int = -1,
        order: str = "tasks", passes: int = 1, task_boundary: int = 0, embedding: str = "",
    ) -> Program:  # fmt: skip
        """One run.

        Args:
            held_out: hold out every n-th training sample of a class, and evaluate on it and on the
                test set at the end only: what settings are chosen on.
            scaling: as in `class_incremental`, or "first-batch".
            class_order: the seed of a permutation of the classes; -1: the natural order.
            legacy_order: the same for NumPy's legacy generator; SDMLP's and FlyModel's published
                numbers are means over the natural order and the seeds 3, 15, 27 and 97.
            embedding: the name of an embedding, to learn from it instead of from images.
        """
        dataset, (x, y, test_x, test_y) = _on_device(self.data, embedding)
        kept, held = dataset.held_out_rows(held_out) if held_out else (None, None)
        by_first_batch = scaling == "first-batch"
        stream, tasks = class_incremental(
            dataset, classes_per_task=self.classes_per_task,
            class_order=_class_order(dataset.classes, class_order, legacy_order),
            batch_size=batch, scaling="none" if by_first_batch else scaling, cut=cut, order=order,
            passes=passes, task_boundary=bool(task_boundary), rows=kept,
        )  # fmt: skip
        recipe = method.recipe(dataset.x_train.shape[1:], dataset.classes, ends=tasks.ends)

        def build(floats: Floats) -> Learner:
            learner = recipe(floats)
            return first_batch_scaling(learner) if by_first_batch else learner

        # Learners that need class statistics may keep them, and the row says so.
        contract = replace(stream.contract, class_statistics=_needs(recipe).class_statistics)
        stream = replace(stream, x=x, y=y, test_x=test_x, test_y=test_y, contract=contract)
        bounds, when = moments(tasks.ends, 1e-9 if held_out else evaluations)
        classes = dataset.classes

        def sets(stream: Data) -> dict[str, tuple[Any, Any, Any]]:
            test = (stream.test_x, stream.test_y, None)
            if held is None:
                return {"by_class": test}
            return {"by_class": (stream.x, stream.y, jnp.asarray(held)), "test_by_class": test}

        def chunk(carry: Any, floats: Floats, stream: Data, index: Array) -> tuple[Any, Outputs]:
            learner, (state, rows) = build(floats), carry
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
            lambda key, floats, stream: start(build(floats), stream, key),
            chunk, len(bounds) - 1, finish, {**asdict(contract), "scaling": scaling, "cut": cut},
            data=stream, check=recipe,
        )  # fmt: skip


def _needs(recipe: Recipe) -> Contract:
    """What the learner of a recipe needs, whatever the values of its traced parameters."""
    found: list[Contract] = []
    scalar = jax.ShapeDtypeStruct((), jnp.float32)
    build = lambda floats: found.append(recipe(floats).needs)
    jax.eval_shape(build, dict.fromkeys(recipe.traced, scalar))
    return found[0]


def _class_order(classes: int, seed: int, legacy_seed: int) -> list[int]:
    if seed >= 0 and legacy_seed >= 0:
        raise ValueError(
            f"give class_order or legacy_order, not both, got {seed} and {legacy_seed}"
        )
    if seed >= 0:
        return [int(label) for label in np.random.default_rng(seed).permutation(classes)]
    if legacy_seed >= 0:
        return [int(label) for label in np.random.RandomState(legacy_seed).permutation(classes)]
    return list(range(classes))


@lru_cache(maxsize=1)
def _on_device(name: str, embedding: str) -> tuple[Dataset, tuple[Array, ...]]:
    """A data set, and its parts as JAX arrays that all programs of this process share."""
    dataset = load(name, embedding or None)
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
    by_class: np.ndarray, counts: np.ndarray, tasks: Sequence[Sequence[int]], batches: np.ndarray,
    ends: Sequence[int],
) -> dict[str, Any]:  # fmt: skip
    """The columns of a row from the accuracies of each class after some batches.

    Columns about tasks need their ends, and an evaluation after each.
    """
    curve = metrics.overall_accuracy(by_class, counts)
    row = {"accuracy": curve[-1], "accuracy_curve": curve, "batches": batches}
    if not len(ends) or not np.isin(ends, batches).all():
        return row
    over_time = metrics.task_matrix(by_class, counts, tasks)
    at_ends = over_time[np.searchsorted(batches, ends)]
    return row | {
        "forgetting": metrics.forgetting(at_ends),
        "backward_transfer": metrics.backward_transfer(at_ends),
        "learning_accuracy": metrics.learning_accuracy(at_ends),
        "task_accuracy": over_time,
    }
