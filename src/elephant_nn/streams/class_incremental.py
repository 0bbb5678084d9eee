"""Class-incremental streams: a few classes at a time, one head, no boundaries told."""

import numbers
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key

from elephant_nn.data.dataset import Dataset
from elephant_nn.learners.learner import Contract
from elephant_nn.streams.stream import Stream

SCALINGS = ("unit", "standard", "none")
CUTS = ("task", "stream")


@dataclass(frozen=True)
class Tasks:
    """Which classes come together, in which order, and when each task's batches end.

    Known to whoever measures; the learner never sees it.
    """

    classes: tuple[tuple[int, ...], ...]
    ends: tuple[int, ...]


def class_incremental(
    dataset: Dataset,
    *,
    classes_per_task: int = 2,
    class_order: Iterable[int] | Int[np.ndarray, " classes"] | None = None,
    batch_size: int = 125,
    scaling: str = "unit",
    cut: str = "task",
    passes: int = 1,
    task_boundary: bool = False,
    class_statistics: bool = False,
) -> tuple[Stream, Tasks]:
    """The stream and its tasks: all samples of the first classes, shuffled, then the next, ...

    Args:
        class_order: a permutation of the classes; default: the natural order. By name, where
            there are names: `[dataset.names.index(name) for name in ...]`.
        scaling: bytes of pictures divided by 255 and other numbers by the largest magnitude in the
            training data, so that pixels are in [0, 1] ("unit"); every channel or feature with mean
            0 and deviation 1 over the training data ("standard"); or as they are ("none").
        cut: drop the incomplete batch of every task ("task"), or let batches straddle tasks and
            drop only the last ("stream").
        passes: how often each task is shown before the next one comes.
        task_boundary: whether learners that need boundaries are granted them. They are not in the
            stream: such a learner counts its batches, and is built with `tasks.ends`.
        class_statistics: whether learners that keep sums by class are granted that.
    """
    _check_dataset(dataset)
    for name, count in (
        ("classes_per_task", classes_per_task),
        ("batch_size", batch_size),
        ("passes", passes),
    ):
        if not isinstance(count, numbers.Integral) or count < 1:
            raise ValueError(
                f"class_incremental: {name} must be a whole number, 1 or more, got {count}"
            )
    order = _order(class_order, dataset.classes)
    if classes_per_task > dataset.classes:
        raise ValueError(
            "class_incremental: classes_per_task must be between 1 and the "
            f"{dataset.classes} classes, got {classes_per_task}"
        )
    for name, value, choice in (("scaling", scaling, SCALINGS), ("cut", cut, CUTS)):
        if value not in choice:
            raise ValueError(f"class_incremental: {name} must be one of {choice}, got {value!r}")
    starts = range(0, len(order), classes_per_task)
    classes = tuple(tuple(order[start : start + classes_per_task]) for start in starts)
    rows = [np.flatnonzero(np.isin(dataset.y_train, group)) for group in classes]
    kept = [len(r) // batch_size * batch_size if cut == "task" else len(r) for r in rows]
    if sum(kept) * passes < batch_size or (cut == "task" and min(kept) == 0):
        what, size = (
            ("smallest task", min(map(len, rows))) if cut == "task" else ("data", sum(kept))
        )
        raise ValueError(
            f"class_incremental: batch_size={batch_size} is larger than the {what}, {size} "
            "samples; choose a smaller one, or more classes a task"
        )
    ends = np.cumsum(kept) * passes // batch_size
    transform = _scaling(dataset, scaling)

    def in_tasks(key: Key[Array, ""], n: int) -> Int[Array, " m"]:
        del n
        parts = []
        for task, (group, size) in enumerate(zip(rows, kept, strict=True)):
            shuffle = partial(_shuffle, jax.random.fold_in(key, task), len(group), size)
            chosen = jax.lax.map(shuffle, jnp.arange(passes)).reshape(-1)
            parts.append(jnp.asarray(group, jnp.int32)[chosen])
        return jnp.concatenate(parts)

    stream = Stream(
        jnp.asarray(dataset.x_train),
        jnp.asarray(dataset.y_train),
        jnp.asarray(dataset.x_test),
        jnp.asarray(dataset.y_test),
        batch_size,
        in_tasks,
        Contract(passes=passes, task_boundary=task_boundary, class_statistics=class_statistics),
        shown=sum(kept) * passes,
        transform=transform,
        classes=dataset.classes,
    )
    return stream, Tasks(classes, tuple(int(end) for end in ends))


def _order(class_order: object, classes: int) -> list[int]:
    natural = list(range(classes))
    if class_order is None:
        return natural
    order: list[Any] = list(class_order) if isinstance(class_order, Iterable) else [class_order]
    whole = all(isinstance(label, numbers.Integral) for label in order)
    if not whole or sorted(order) != natural:
        raise ValueError(
            f"class_incremental: class_order must name each class from 0 to {classes - 1} once, "
            f"one after another, got {order}"
        )
    return [int(label) for label in order]


def _check_dataset(dataset: object) -> None:
    """For data sets made by hand; `from_arrays` and `load` give none that fail this."""
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"class_incremental: needs a data set, got {type(dataset).__name__}; load(name) or "
            "from_arrays(...) makes one"
        )
    parts = {name: np.shape(part) for name, part in dataset.parts.items()}
    if (
        parts["x_train"][:1] != parts["y_train"]
        or parts["x_test"][:1] != parts["y_test"]
        or parts["x_train"][1:] != parts["x_test"][1:]
    ):
        raise ValueError(
            "class_incremental: samples must be alike and have one label each, got shapes "
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
            "class_incremental: labels must be whole numbers from 0 on, every one of them in the "
            f"training data, got {np.unique(labels)[:8].tolist()} in it and "
            f"{np.unique(dataset.y_test)[:8].tolist()} in the test data; "
            "from_arrays numbers any labels so"
        )
    for part, x in (("x_train", dataset.x_train), ("x_test", dataset.x_test)):
        if x.dtype.kind == "f" and not np.isfinite(x).all():
            raise ValueError(
                f"class_incremental: {part} has NaN or infinity; drop or fill those rows first"
            )


def _shuffle(key: Key[Array, ""], n: int, size: int, lap: Int[Array, ""]) -> Int[Array, " size"]:
    return jax.random.permutation(jax.random.fold_in(key, lap), n)[:size]


def _scaling(dataset: Dataset, scaling: str) -> Callable[[Array], Array]:
    if scaling == "unit":
        bytes_of_pictures = dataset.x_train.dtype == np.uint8 and dataset.x_train.ndim == 4
        top = 255.0 if bytes_of_pictures else float(np.abs(dataset.x_train).max())
        return lambda x: x.astype(jnp.float32) / (top or 1.0)
    if scaling == "standard":
        axes = tuple(range(dataset.x_train.ndim - 1))
        mean = dataset.x_train.mean(axes, dtype=np.float64).astype(np.float32)
        deviation = dataset.x_train.std(axes, dtype=np.float64).astype(np.float32)
        deviation = np.where(deviation > 0, deviation, 1.0)  # what never varied stays as it is
        return lambda x: (x.astype(jnp.float32) - mean) / deviation
    return lambda x: x.astype(jnp.float32)
