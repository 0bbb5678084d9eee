"""Metrics of continual learning, from the accuracy of each class over time."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int


def overall_accuracy(
    by_class: Float[np.ndarray, "times classes"], counts: Int[np.ndarray, " classes"]
) -> Float[np.ndarray, " times"]:
    """Accuracy over the whole test set at each time, from the accuracy of each class."""
    return by_class @ counts / counts.sum()


def task_matrix(
    by_class: Float[np.ndarray, "times classes"],
    counts: Int[np.ndarray, " classes"],
    tasks: Sequence[Sequence[int]],
) -> Float[np.ndarray, "times tasks"]:
    """Accuracy on each task's test samples at each time: R[s, t] is task t at time s.

    `counts` has the number of test samples of every class:
    `np.bincount(dataset.y_test, minlength=dataset.classes)`.
    """
    by_class, counts = np.asarray(by_class), np.asarray(counts)
    if by_class.ndim != 2:
        raise ValueError(
            "task_matrix: by_class must have one row per time and one column per class, got shape "
            f"{by_class.shape}; for a single time, pass by_class[None]"
        )
    if counts.shape != by_class.shape[1:]:
        raise ValueError(
            f"task_matrix: by_class has shape {by_class.shape}, so counts must have "
            f"{by_class.shape[-1]} numbers, got shape {counts.shape}; use np.bincount(y_test, "
            "minlength=classes)"
        )
    invalid = [tuple(task) for task in tasks if not set(task) <= set(range(len(counts)))]
    if invalid or not tasks:
        raise ValueError(
            f"task_matrix: tasks must be groups of the classes 0 to {len(counts) - 1}, got "
            f"{invalid[0] if invalid else 'none'}"
        )
    untested = [tuple(task) for task in tasks if counts[list(task)].sum() == 0]
    if untested:
        raise ValueError(
            f"task_matrix: there are no test samples of task {untested[0]}, so its accuracy is "
            "undefined; add test samples or drop the task"
        )
    columns = [overall_accuracy(by_class[:, list(task)], counts[list(task)]) for task in tasks]
    return np.stack(columns, axis=1)


def learning_accuracy(matrix: Float[np.ndarray, "ends tasks"]) -> float:
    r"""Mean accuracy on each task right after learning it: $\frac1T\sum_t R_{t,t}$."""
    matrix = _square(matrix, "learning_accuracy")
    return float(np.diag(matrix).mean())


def forgetting(matrix: Float[np.ndarray, "ends tasks"]) -> float:
    r"""Mean drop of accuracy from the best to the final one, over all tasks but the last:

    $\frac{1}{T-1}\sum_{t<T} \big(\max_{s<T} R_{s,t} - R_{T,t}\big)$.
    """
    matrix = _square(matrix, "forgetting")
    if len(matrix) < 2:
        return 0.0
    return float((matrix[:-1, :-1].max(axis=0) - matrix[-1, :-1]).mean())


def backward_transfer(matrix: Float[np.ndarray, "ends tasks"]) -> float:
    r"""Mean effect of later tasks on earlier ones: $\frac{1}{T-1}\sum_{t<T} (R_{T,t} - R_{t,t})$.

    Negative if learning later tasks lowers the accuracy on earlier ones.
    """
    matrix = _square(matrix, "backward_transfer")
    if len(matrix) < 2:
        return 0.0
    return float((matrix[-1, :-1] - np.diag(matrix)[:-1]).mean())


def _square(matrix: np.ndarray, name: str) -> np.ndarray:
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{name}: the matrix must have one row per end of a task and one column per task, got "
            f"shape {matrix.shape}; evaluate with learn(..., at=tasks.ends)"
        )
    return matrix
