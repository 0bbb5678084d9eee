"""Ridge regression by Cholesky factors in place, against NumPy."""

import numpy as np
import pytest

from elephant_nn.ridge_solver import climb, log_evidence, solve_in_place

RNG = np.random.default_rng(0)
H = RNG.standard_normal((2000, 700))  # more than one block
H -= H.mean(0)
Y = H @ RNG.standard_normal((700, 3)) / 20 + RNG.standard_normal((2000, 3))
Y -= Y.mean(0)
GRAM, CROSS, SQUARES = H.T @ H, H.T @ Y, (Y**2).sum(0)
UNIT = float(np.diag(GRAM).mean())


def lower(dtype):
    return np.asfortranarray(np.tril(GRAM), dtype)


@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-12), (np.float32, 1e-4)])
@pytest.mark.parametrize("ridge", [1e-2, None])
def test_it_solves_the_penalised_equations(dtype, error, ridge):
    gram = lower(dtype)
    weights, penalty = solve_in_place(gram, CROSS.astype(dtype), SQUARES, 2000, UNIT, ridge)
    expected = np.linalg.solve(GRAM + penalty * np.eye(700), CROSS)
    assert weights.dtype == dtype
    np.testing.assert_allclose(weights, expected, atol=error * np.abs(expected).max())
    factor = np.tril(gram)
    np.testing.assert_allclose(factor @ factor.T, GRAM + penalty * np.eye(700), atol=1e-1)
    assert ridge is None or penalty == pytest.approx(ridge * UNIT)


def test_the_chosen_power_of_ten_has_the_largest_evidence():
    penalty = solve_in_place(lower(float), CROSS, SQUARES, 2000, UNIT)[1]
    values, vectors = np.linalg.eigh(GRAM)
    grid = UNIT * 10.0 ** np.arange(-5, 3)
    fits = np.array([((vectors.T @ CROSS) ** 2 / (values + r)[:, None]).sum(0) for r in grid])
    volumes = np.array([np.log1p(np.maximum(values, 0) / r).sum() for r in grid])
    assert penalty == grid[np.argmax(log_evidence(fits, volumes, SQUARES, 2000))]


def test_sums_without_full_rank_get_a_larger_penalty():
    h = np.ones((3, 600), np.float32) * RNG.standard_normal((3, 1)).astype(np.float32)
    gram = np.asfortranarray(h.T @ h - 1e-2 * np.eye(600, dtype=np.float32))
    weights, penalty = solve_in_place(gram, h.T @ np.ones((3, 1)), np.ones(1), 3, 1.0, 1e-30)
    assert np.isfinite(weights).all()
    assert penalty > 1e-3


def test_climbing_finds_a_maximum_wherever_it_is():
    grid = [float(value) for value in range(8)]
    for best in grid:
        assert climb(lambda value, best=best: -abs(value - best), grid) == best
    assert climb(lambda value: value, [3.0]) == 3.0


def test_matrices_that_cannot_be_overwritten_are_refused():
    with pytest.raises(ValueError, match="Fortran order"):
        solve_in_place(np.eye(3), np.ones((3, 1)), np.ones(1), 3, 1.0)
