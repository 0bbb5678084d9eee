import inspect

import numpy as np
import pytest

from elephant_nn.streams.metrics import (
    backward_transfer,
    forgetting,
    learning_accuracy,
    overall_accuracy,
    task_matrix,
)

# R[s, t]: accuracy on task t after learning task s.
MATRIX = np.array([[0.9, 0.0, 0.0], [0.6, 0.8, 0.0], [0.3, 0.9, 0.7]])


def test_worked_example():
    assert learning_accuracy(MATRIX) == pytest.approx((0.9 + 0.8 + 0.7) / 3)
    assert forgetting(MATRIX) == pytest.approx(((0.9 - 0.3) + (0.8 - 0.9)) / 2)
    assert backward_transfer(MATRIX) == pytest.approx(((0.3 - 0.9) + (0.9 - 0.8)) / 2)


def test_one_task_forgets_nothing():
    assert forgetting(MATRIX[:1, :1]) == 0
    assert backward_transfer(MATRIX[:1, :1]) == 0


@pytest.mark.parametrize("measure", [forgetting, backward_transfer, learning_accuracy])
def test_matrices_that_are_not_square_are_refused(measure):
    with pytest.raises(ValueError, match=r"got shape \(12, 3\)"):
        measure(np.repeat(MATRIX, 4, axis=0))


def test_classes_are_weighted_by_their_samples():
    by_class = np.array([[1.0, 0.0, 0.5, 0.5], [0.0, 1.0, 1.0, 0.0]])
    counts = np.array([30, 10, 10, 10])
    np.testing.assert_allclose(overall_accuracy(by_class, counts), [40 / 60, 20 / 60])
    matrix = task_matrix(by_class, counts, [(0, 1), (2, 3)])
    np.testing.assert_allclose(matrix, [[0.75, 0.5], [0.25, 0.5]])


def test_unsuitable_tasks_are_refused():
    by_class = np.ones((3, 4))
    with pytest.raises(ValueError, match=r"counts must have 4 .* got shape \(3,\)"):
        inspect.unwrap(task_matrix)(by_class, np.array([1, 1, 1]), [(0, 1), (2, 3)])
    with pytest.raises(ValueError, match=r"task_matrix: by_class .* got shape \(4,\)"):
        inspect.unwrap(task_matrix)(by_class[0], np.ones(4, int), [(0, 1)])
    with pytest.raises(ValueError, match=r"classes 0 to 3, got \(3, 4\)"):
        task_matrix(by_class, np.ones(4, int), [(0, 1), (3, 4)])
    with pytest.raises(ValueError, match=r"no test samples of task \(2, 3\)"):
        task_matrix(by_class, np.array([1, 1, 0, 0]), [(0, 1), (2, 3)])
