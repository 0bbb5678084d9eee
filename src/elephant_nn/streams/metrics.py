"""How well a learner of tasks remembers: numbers from accuracies by class over time."""

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
            "task_matrix: by_class must have a row for each time and a column for each class, got "
            f"shape {by_class.shape}; by_class[None] is one of a single time"
        )
    if counts.shape != by_class.shape[1:]:
        raise ValueError(
            f"task_matrix: by_class has shape {by_class.shape}, so counts must have "
            f"{by_class.shape[-1]} numbers, got shape {counts.shape}; np.bincount(y_test, "
            "minlength=classes) has them all"
        )
    strange = [tuple(task) for task in tasks if not set(task) <= set(range(len(counts)))]
    if strange or not tasks:
        raise ValueError(
            f"task_matrix: tasks must be groups of the classes 0 to {len(counts) - 1}, got "
            f"{strange[0] if strange else 'none'}"
        )
    untested = [tuple(task) for task in tasks if counts[list(task)].sum() == 0]
    if untested:
        raise ValueError(
            f"task_matrix: there are no test samples of task {untested[0]}, so nothing can be said "
            "of it; add some, or leave the task out"
        )
    columns = [overall_accuracy(by_class[:, list(task)], counts[list(task)]) for task in tasks]
    return np.stack(columns, axis=1)


def learning_accuracy(matrix: Float[np.ndarray, "ends tasks"]) -> float:
    r"""How well each task was known when it had just been learned: $\frac1T\sum_t R_{t,t}$."""
    matrix = _square(matrix, "learning_accuracy")
    return float(np.diag(matrix).mean())


def forgetting(matrix: Float[np.ndarray, "ends tasks"]) -> float:
    r"""What was once known and is not any more, over all tasks but the last:

    $\frac{1}{T-1}\sum_{t<T} \big(\max_{s<T} R_{s,t} - R_{T,t}\big)$.
    """
    matrix = _square(matrix, "forgetting")
    if len(matrix) < 2:
        return 0.0
    return float((matrix[:-1, :-1].max(axis=0) - matrix[-1, :-1]).mean())


def backward_transfer(matrix: Float[np.ndarray, "ends tasks"]) -> float:
    r"""What later tasks did to earlier ones: $\frac{1}{T-1}\sum_{t<T} (R_{T,t} - R_{t,t})$.

    Negative where learning went at the expense of what was known.
    """
    matrix = _square(matrix, "backward_transfer")
    if len(matrix) < 2:
        return 0.0
    return float((matrix[-1, :-1] - np.diag(matrix)[:-1]).mean())


def _square(matrix: np.ndarray, name: str) -> np.ndarray:
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{name}: the matrix must have a row for the end of each task and a column for each "
            f"task, got shape {matrix.shape}; measure with learn(..., evaluate_at=tasks.ends)"
        )
    return matrix
