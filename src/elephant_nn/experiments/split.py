"""Class-incremental learning on images: how a run goes. Each table has its file.

Two classes at a time, one pass, no boundaries told, one head over all classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from elephant_nn.data.dataset import Dataset
    from elephant_nn.learners.learner import Learner
    from elephant_nn.nn.networks import Network
    from elephant_nn.runs.program import Floats, Program

PIECES_PER_TASK = 4
TEST_BLOCK = 500


def _slow_to_predict(method: str, static: Mapping[str, Any]) -> bool:
    """Then the test set is looked at after every task, not four times in it."""
    wide = static.get("neurons", 0) >= 10_000
    return method in ("convmixer", "econvmixer", "flymodel") or (
        wide and method in ("cnn", "cnn-ewc", "ecnn")
    )


def mnist_program(method: str, static: Mapping[str, Any]) -> Program:
    return program("mnist", method, static)


def cifar10_program(method: str, static: Mapping[str, Any]) -> Program:
    return program("cifar10", method, static)


def digits_program(method: str, static: Mapping[str, Any]) -> Program:
    return program("digits", method, static)


def program(data: str, method: str, static: Mapping[str, Any]) -> Program:
    """One run down the stream; every task in four pieces, after each the accuracy by class.

    With `held_out` among the settings, every so manieth training sample is kept back, and measured
    beside the test set at the end: what settings are chosen on. Other settings that a row may have:
    `scaling`, `cut`, `class_order` (the seed of a permutation), `order` ("shuffled"), `passes`,
    `task_boundary` (1 grants boundaries to a method that needs them), `filters` of a CNN, and
    `head_rate` of an MLP, the rate of its output layer in parts of the others'.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    from elephant_nn.runs.program import Program, named_key
    from elephant_nn.streams.class_incremental import class_incremental
    from elephant_nn.streams.stream import accuracy_by_class, agree, in_blocks, shuffled

    dataset = _load(data)
    learned = dataset.held_out(static["held_out"]) if "held_out" in static else dataset
    stream, tasks = class_incremental(
        learned,
        class_order=_class_order(static.get("class_order"), dataset.classes),
        batch_size=static["batch"],
        scaling=static.get("scaling", "unit"),
        cut=static.get("cut", "task"),
        passes=static.get("passes", 1),
        task_boundary=bool(static.get("task_boundary", 0)),
    )
    in_tasks = static.get("order") != "shuffled"
    order = stream.order if in_tasks else shuffled
    bounds = np.array([0, *_pieces(tasks.ends)])
    last = len(bounds) - 1
    when = np.ones(last, bool)
    if "held_out" in static:
        when = np.arange(last) == last - 1
    elif _slow_to_predict(method, static):
        when = np.arange(1, last + 1) % PIECES_PER_TASK == 0
    tests = {"by_class": (learned.x_test, learned.y_test)}
    if learned is not dataset:
        tests["test_by_class"] = (dataset.x_test, dataset.y_test)

    def learner(floats: Floats) -> Learner:
        return build_learner(method, static, floats, dataset, tasks.ends)

    example = learner({name: jnp.array(0.5) for name in _FLOATS})
    # Class statistics are granted to whoever needs them, and the row says so.
    contract = replace(stream.contract, class_statistics=example.needs.class_statistics)
    agree(example, replace(stream, contract=contract))

    def init(key: jax.Array, floats: Floats) -> Any:
        rows = order(named_key(key, "data"), len(stream.x))
        return learner(floats).init(named_key(key, "init")), rows

    def by_class(state: Any, floats: Floats, x: np.ndarray, y: np.ndarray) -> jax.Array:
        predict = lambda rows: learner(floats).predict(state, stream.transform(rows))
        out = in_blocks(predict, jnp.asarray(x), TEST_BLOCK)
        return accuracy_by_class(dataset.classes)(out, jnp.asarray(y))

    def chunk(carry: Any, floats: Floats, index: jax.Array) -> tuple[Any, dict[str, jax.Array]]:
        state, rows = carry
        learn = lambda t, s: learner(floats).update(s, stream.batch(rows, t))
        ends = jnp.asarray(bounds)
        state = jax.lax.fori_loop(ends[index], ends[index + 1], learn, state)
        look = lambda: {name: by_class(state, floats, *test) for name, test in tests.items()}
        skip = lambda: {name: jnp.full(dataset.classes, jnp.nan) for name in tests}
        return (state, rows), jax.lax.cond(jnp.asarray(when)[index], look, skip)

    def finish(outputs: Mapping[str, np.ndarray]) -> dict[str, Any]:
        counts = {n: np.bincount(y, minlength=dataset.classes) for n, (_, y) in tests.items()}
        seen = outputs["by_class"][when]
        ends = tasks.ends if in_tasks else ()
        row = summary(seen, counts["by_class"], tasks.classes, bounds[1:][when], ends)
        if "test_by_class" in tests:
            final = outputs["test_by_class"][-1]
            row["test_accuracy"] = final @ counts["test_by_class"] / len(dataset.y_test)
        return row

    rules = {
        "passes": contract.passes,
        "task_boundary": contract.task_boundary,
        "class_statistics": contract.class_statistics,
        "scaling": static.get("scaling", "unit"),
        "cut": static.get("cut", "task"),
    }
    return Program(init, chunk, last, finish, rules)


@lru_cache(maxsize=1)
def _load(data: str) -> Dataset:
    from elephant_nn.data.loading import load

    return load(data)


def _class_order(seed: int | None, classes: int) -> list[int] | None:
    import numpy as np

    return None if seed is None else np.random.default_rng(seed).permutation(classes).tolist()


def _pieces(ends: Sequence[int]) -> list[int]:
    """Batches after which a chunk ends: each task in four nearly equal pieces.

    So many in every task, whatever its length: figures count on it. A short one has empty pieces.
    """
    import numpy as np

    tasks = zip((0, *ends[:-1]), ends, strict=True)
    cuts = [np.linspace(start, end, PIECES_PER_TASK + 1)[1:] for start, end in tasks]
    return np.concatenate(cuts).round().astype(int).tolist()


_FLOATS = ("lr", "a", "sigma_bias", "lambda", "gamma", "switch", "head_rate")
_ELEPHANTS = {"emlp": "mlp", "ecnn": "cnn", "econvmixer": "convmixer"}


def build_network(
    method: str, static: Mapping[str, Any], floats: Mapping[str, Any], dataset: Dataset
) -> Network:
    """The method's network; elephant only in the last hidden layer, of `neurons` units."""
    import math

    from elephant_nn.nn.activations import elephant_activation, relu
    from elephant_nn.nn.convolution import cnn, convmixer
    from elephant_nn.nn.networks import mlp

    shape, classes, neurons = dataset.x_train.shape[1:], dataset.classes, static["neurons"]
    kind, spread, activation = method, 0.0, relu
    if method in _ELEPHANTS:
        kind, spread = _ELEPHANTS[method], floats["sigma_bias"]
        activation = elephant_activation(floats["a"], static["d"])
    if kind == "mlp":
        return mlp((math.prod(shape), neurons, classes), activation, sigma_bias=spread)
    if kind == "cnn":
        filters = static.get("filters", 64)
        return cnn(shape, neurons, classes, activation, sigma_bias=spread, filters=filters)
    return convmixer(shape, neurons, classes, activation, sigma_bias=spread)


def build_learner(
    method: str,
    static: Mapping[str, Any],
    floats: Mapping[str, Any],
    dataset: Dataset,
    ends: Sequence[int] = (),
) -> Learner:
    """The learner behind a row of the table; `ends` of tasks are for those that need them."""
    import math

    import optax

    from elephant_nn.learners.ewc import online_ewc, streaming_ewc
    from elephant_nn.learners.flymodel import flymodel
    from elephant_nn.learners.gradient import cross_entropy, gradient
    from elephant_nn.learners.learner import Learner
    from elephant_nn.learners.sdmlp import sdmlp
    from elephant_nn.learners.statistics import (
        RAW_INPUTS,
        naive_bayes,
        nearest_class_mean,
        streaming_lda,
    )

    inputs, classes = math.prod(dataset.x_train.shape[1:]), dataset.classes
    if method == "flymodel":
        per_unit = static["per_unit"]
        return flymodel(inputs, static["neurons"], classes, per_unit=per_unit, lr=floats["lr"])
    name, _, form = method.partition("/")
    if name == "sdmlp":
        return sdmlp(
            inputs,
            static["neurons"],
            classes,
            k=static["k"],
            switch=floats["switch"],
            lr=floats["lr"],
            passes=static["passes"],
        )
    summing = {
        "nearest-mean": nearest_class_mean,
        "naive-bayes": naive_bayes,
        "lda": streaming_lda,
    }
    if name in summing:
        if not form:
            return summing[name](RAW_INPUTS, inputs, classes)
        network = build_network("emlp", static, floats, dataset)
        return summing[name](network, static["neurons"], classes)
    if method == "chance":
        untrained = build_network("mlp", static, floats, dataset)
        return Learner(untrained.init, lambda state, batch: state, untrained.apply)
    network = build_network(name.removesuffix("-ewc"), static, floats, dataset)
    optimiser = optax.rmsprop(floats["lr"], decay=0.999)
    if "head_rate" in floats:
        optimiser = optax.chain(optimiser, _scaled_head(floats["head_rate"]))
    if name.endswith("-ewc"):
        spring = {
            "weight": floats["lambda"],
            "decay": floats["gamma"],
            "updates": static["E"],
        }
        if form == "boundaries":
            return online_ewc(network, optimiser, cross_entropy, ends=ends, **spring)
        return streaming_ewc(network, optimiser, cross_entropy, anchor=static["anchor"], **spring)
    return gradient(network, optimiser, cross_entropy, updates=static["E"])


def _scaled_head(factor: Any) -> Any:
    """Multiplies the changes of an MLP's output layer."""
    import jax
    import optax

    def scale(changes: Any, params: Any) -> Any:
        if not isinstance(changes, tuple):
            raise ValueError("head_rate is for MLPs, whose parameters are a tuple of layers")
        *hidden, head = changes
        return (*hidden, jax.tree.map(lambda change: factor * change, head))

    return optax.stateless(scale)


def summary(
    by_class: np.ndarray,
    counts: np.ndarray,
    tasks: Sequence[Sequence[int]],
    batches: np.ndarray,
    ends: Sequence[int],
) -> dict[str, Any]:
    """The columns of a row from the accuracies of each class at some moments.

    What speaks of tasks is there only if they have ends, and all of these were measured.
    """
    import numpy as np

    from elephant_nn.streams.metrics import (
        backward_transfer,
        forgetting,
        learning_accuracy,
        overall_accuracy,
        task_matrix,
    )

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
