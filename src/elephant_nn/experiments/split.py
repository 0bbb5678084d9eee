"""Class-incremental learning on images: Split MNIST, Split CIFAR10, and digits without a download.

Tables 2, 5 and 6 and Figure 6 of the paper: two classes at a time, one pass, no boundaries told, one
head over all classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from elephant_nn.runs.program import Program

EVALUATIONS_PER_TASK = 4
TEST_BLOCK = 500


def program(method: str, static: Mapping[str, Any]) -> Program:
    """One run down the stream; after every quarter of a task, the accuracy of each class.

    With `held_out` among the settings, every tenth training sample is kept back and measured on
    instead of the test set: what settings are chosen on.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    from elephant_nn.data.loading import load
    from elephant_nn.runs.program import Floats, Program, named_key
    from elephant_nn.streams.class_incremental import class_incremental

    dataset = load(static["data"])
    if "held_out" in static:
        dataset = dataset.held_out(every=10)
    stream, tasks = class_incremental(dataset, batch_size=static["batch"])
    counts = np.bincount(dataset.y_test, minlength=dataset.classes)
    inputs = int(np.prod(dataset.x_train.shape[1:]))
    starts = (0, *tasks.ends[:-1])
    stops = [
        np.linspace(start, end, EVALUATIONS_PER_TASK + 1).round().astype(int)[1:]
        for start, end in zip(starts, tasks.ends, strict=True)
    ]
    bounds = jnp.array([0, *np.concatenate(stops)])

    def learner(floats: Floats) -> Any:
        return build_learner(method, static, floats, inputs, dataset.classes)

    def init(key: jax.Array, floats: Floats) -> Any:
        order = stream.order(named_key(key, "data"), len(stream.x))
        return learner(floats).init(named_key(key, "init")), order

    def chunk(carry: Any, floats: Floats, index: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
        state, order = carry
        learn = lambda t, s: learner(floats).update(s, stream.batch(order, t))
        state = jax.lax.fori_loop(bounds[index], bounds[index + 1], learn, state)
        out = jax.lax.map(
            lambda x: learner(floats).predict(state, stream.transform(x[None]))[0],
            stream.test_x,
            batch_size=TEST_BLOCK,
        )
        right = jnp.zeros(len(counts)).at[stream.test_y].add(jnp.argmax(out, -1) == stream.test_y)
        return (state, order), {"by_class": right / jnp.maximum(counts, 1)}

    def finish(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        return summary(outputs["by_class"], counts, tasks.classes, np.asarray(bounds)[1:])

    contract = {
        "passes": stream.contract.passes,
        "task_boundary": stream.contract.task_boundary,
    }
    return Program(init, chunk, len(bounds) - 1, finish, contract)


def build_learner(
    method: str, static: Mapping[str, Any], floats: Mapping[str, Any], inputs: int, classes: int
) -> Any:
    import optax

    from elephant_nn.learners.gradient import cross_entropy, gradient
    from elephant_nn.networks import emlp, mlp

    sizes = (inputs, static["neurons"], classes)
    if method == "emlp":
        network = emlp(sizes, a=floats["a"], sigma_bias=floats["sigma_bias"], d=static["d"])
    else:
        network = mlp(sizes)
    optimiser = optax.rmsprop(floats["lr"], decay=0.999)
    return gradient(network, optimiser, cross_entropy, updates=static["E"])


def summary(
    by_class: np.ndarray,
    counts: np.ndarray,
    tasks: tuple[tuple[int, ...], ...],
    steps: np.ndarray,
) -> dict[str, Any]:
    """The columns of a row from the accuracies of each class over time."""
    from elephant_nn.streams.measures import (
        backward_transfer,
        forgetting,
        learning_accuracy,
        overall_accuracy,
        task_matrix,
    )

    curve = overall_accuracy(by_class, counts)
    over_time = task_matrix(by_class, counts, tasks)
    at_ends = over_time[EVALUATIONS_PER_TASK - 1 :: EVALUATIONS_PER_TASK]
    return {
        "accuracy": curve[-1],
        "forgetting": forgetting(at_ends),
        "backward_transfer": backward_transfer(at_ends),
        "learning_accuracy": learning_accuracy(at_ends),
        "accuracy_curve": curve,
        "batches": steps,
        "task_accuracy": over_time,
    }
