"""Class-incremental streams: a few classes at a time, one head, no task boundaries."""

import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from elephant_nn.data.dataset import Dataset
from elephant_nn.learners.learner import Contract
from elephant_nn.streams.stream import Order, Scaling, Stream, laps, shuffled

SCALINGS = ("unit", "standard", "features", "none")
CUTS = ("task", "stream")
ORDERS = ("tasks", "shuffled")
MANY = 10
"""With more tasks than this, samples are arranged by sorting."""


@dataclass(frozen=True)
class Tasks:
    """The classes of each task, and the number of batches after which it ends.

    For evaluation only; learners do not see it.
    """

    classes: tuple[tuple[int, ...], ...]
    ends: tuple[int, ...]


@dataclass(frozen=True)
class ClassOrder:
    """An order: one group of classes after another, the samples of each group shuffled.

    `sizes` is the number of samples per group, `kept` how many of them each pass shows.
    """

    groups: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    kept: tuple[int, ...]
    passes: int = 1

    def __call__(self, key: Key[Array, ""], y: Array) -> Int[Array, " m"]:
        if len(self.groups) > MANY:
            return self._sorted(key, y)
        parts = []
        for i, group in enumerate(self.groups):
            rows = jnp.flatnonzero(jnp.isin(y, jnp.array(group)), size=self.sizes[i])
            chosen = laps(jax.random.fold_in(key, i), self.sizes[i], self.kept[i], self.passes)
            parts.append(rows.astype(jnp.int32)[chosen])
        return jnp.concatenate(parts)

    def _sorted(self, key: Key[Array, ""], y: Array) -> Int[Array, " m"]:
        """The same for many groups by sorting: one permutation per group compiles slowly."""
        group_of = np.zeros(max(map(max, self.groups)) + 1, np.int32)
        for i, group in enumerate(self.groups):
            group_of[list(group)] = i
        one_pass = lambda lap: jnp.lexsort(
            (jax.random.uniform(jax.random.fold_in(key, lap), y.shape), jnp.asarray(group_of)[y])
        )
        rows = jax.lax.map(one_pass, jnp.arange(self.passes)).astype(jnp.int32)
        first = np.cumsum([0, *self.sizes[:-1]])
        spans = zip(first, self.kept, strict=True)
        places = [
            lap * len(y) + np.arange(start, start + kept)
            for start, kept in spans
            for lap in range(self.passes)
        ]
        return rows.reshape(-1)[np.concatenate(places)]


def class_incremental(
    dataset: Dataset, *, classes_per_task: int = 2,
    class_order: Iterable[int] | Int[np.ndarray, " classes"] | None = None, batch_size: int = 125,
    scaling: str = "unit", cut: str = "task", order: str = "tasks", passes: int = 1,
    task_boundary: bool = False, class_statistics: bool = False,
    rows: Int[np.ndarray, " n"] | None = None,
) -> tuple[Stream, Tasks]:  # fmt: skip
    """A stream of the shuffled samples of the first classes, then of the next, and so on.

    Args:
        class_order: a permutation of the classes; default: the natural order. By name, if there
            are names: `[dataset.names.index(name) for name in ...]`.
        scaling: "unit" divides image bytes by 255, and other numbers by the largest magnitude in
            the training data, so that pixels are in [0, 1]; "standard" gives every channel of
            images, or every feature, mean 0 and standard deviation 1 over the training data;
            "features" does so for every pixel of images, too; "none" changes nothing.
        cut: drop the incomplete batch of every task ("task"), or let batches straddle tasks and
            drop only the last ("stream").
        order: "tasks", or "shuffled" for the same samples in random order.
        passes: number of passes over each task before the next one.
        task_boundary: whether learners may know task boundaries. They are not part of the stream:
            such a learner counts batches and is built with `tasks.ends`.
        class_statistics: whether learners may keep statistics per class.
        rows: the rows of the training data to show; default: all.
    """
    _check_dataset(dataset)
    counted = {"classes_per_task": classes_per_task, "batch_size": batch_size, "passes": passes}
    for name, count in counted.items():
        if not isinstance(count, numbers.Integral) or count < 1:
            raise ValueError(
                f"class_incremental: {name} must be a whole number, 1 or more, got {count}"
            )
    label_order = _label_order(class_order, dataset.classes)
    if classes_per_task > dataset.classes:
        raise ValueError(
            "class_incremental: classes_per_task must be between 1 and the "
            f"{dataset.classes} classes, got {classes_per_task}"
        )
    chosen = {"scaling": (scaling, SCALINGS), "cut": (cut, CUTS), "order": (order, ORDERS)}
    for name, (value, choice) in chosen.items():
        if value not in choice:
            raise ValueError(f"class_incremental: {name} must be one of {choice}, got {value!r}")
    labels = np.asarray(dataset.y_train) if rows is None else np.asarray(dataset.y_train)[rows]
    counts = np.bincount(labels, minlength=dataset.classes)
    starts = range(0, len(label_order), classes_per_task)
    groups = tuple(tuple(label_order[start : start + classes_per_task]) for start in starts)
    sizes = [int(counts[list(group)].sum()) for group in groups]
    kept = [size // batch_size * batch_size if cut == "task" else size for size in sizes]
    if sum(kept) * passes < batch_size or (cut == "task" and min(kept) == 0):
        what, size = ("smallest task", min(sizes)) if cut == "task" else ("data", sum(kept))
        raise ValueError(
            f"class_incremental: batch_size={batch_size} is larger than the {what}, {size} "
            "samples; choose a smaller one, or more classes per task"
        )
    ends = np.cumsum(kept) * passes // batch_size
    by_task = ClassOrder(groups, tuple(sizes), tuple(kept), passes)
    arrangement: Order = by_task if order == "tasks" else shuffled
    x, y, test_x, test_y = map(jnp.asarray, dataset.parts.values())
    stream = Stream(
        x, y, test_x, test_y, batch_size, arrangement, shown=sum(kept) * passes,
        contract=Contract(passes, task_boundary, class_statistics),
        transform=_scaling(dataset, scaling, rows), classes=dataset.classes,
        rows=None if rows is None else jnp.asarray(rows),
    )  # fmt: skip
    return stream, Tasks(groups, tuple(int(end) for end in ends))


def _label_order(class_order: object, classes: int) -> list[int]:
    natural = list(range(classes))
    if class_order is None:
        return natural
    order: list[Any] = list(class_order) if isinstance(class_order, Iterable) else [class_order]
    whole = all(isinstance(label, numbers.Integral) for label in order)
    if not whole or sorted(order) != natural:
        raise ValueError(
            f"class_incremental: class_order must list each class from 0 to {classes - 1} once, "
            f"got {order}"
        )
    return [int(label) for label in order]


def _check_dataset(dataset: object) -> None:
    """Check a data set built by hand; those of `from_arrays` and `load` always pass."""
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"class_incremental: expected a Dataset, got {type(dataset).__name__}; load(name) or "
            "from_arrays(...) makes one"
        )
    parts = {name: np.shape(part) for name, part in dataset.parts.items()}
    if (
        parts["x_train"][:1] != parts["y_train"]
        or parts["x_test"][:1] != parts["y_test"]
        or parts["x_train"][1:] != parts["x_test"][1:]
    ):
        raise ValueError(
            "class_incremental: samples must have equal shapes and one label each, got shapes "
            f"{', '.join(f'{name} {shape}' for name, shape in parts.items())}"
        )
    labels = dataset.y_train
    if not (
        labels.size
        and labels.dtype.kind in "iu"
        and labels.min() == 0
        and np.bincount(labels).min() > 0
        and np.isin(dataset.y_test, labels).all()
    ):
        raise ValueError(
            "class_incremental: labels must be whole numbers from 0 on, each of them in the "
            f"training data, got {np.unique(labels)[:8].tolist()} in the training data and "
            f"{np.unique(dataset.y_test)[:8].tolist()} in the test data; "
            "from_arrays numbers any labels"
        )
    for part, x in (("x_train", dataset.x_train), ("x_test", dataset.x_test)):
        if x.dtype.kind == "f" and not np.isfinite(x).all():
            raise ValueError(
                f"class_incremental: {part} has NaN or infinity; drop or fill those rows first"
            )


def _scaling(dataset: Dataset, scaling: str, rows: np.ndarray | None) -> Scaling:
    if scaling == "none":
        return Scaling()
    image_bytes = dataset.x_train.dtype == np.uint8 and dataset.x_train.ndim == 4
    if scaling == "unit" and image_bytes:
        return Scaling(255.0)
    x = np.asarray(dataset.x_train)
    x = x if rows is None else x[rows]
    if scaling == "unit":
        return Scaling(float(np.abs(x).max()) or 1.0)
    axes = 0 if scaling == "features" else tuple(range(x.ndim - 1))
    mean = x.mean(axes, dtype=np.float64).astype(np.float32)
    deviation = x.std(axes, dtype=np.float64).astype(np.float32)
    deviation = np.where(deviation > 0, deviation, 1.0)  # a constant channel is only centred
    return Scaling(_tuples(deviation.tolist()), _tuples(mean.tolist()))


def _tuples(values: Any) -> Any:
    """Nested lists as nested tuples, which are hashable."""
    return tuple(map(_tuples, values)) if isinstance(values, list) else values
