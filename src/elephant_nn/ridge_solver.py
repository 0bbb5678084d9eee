"""Solve ridge regression with many features from sums of products, in NumPy and in place.

Ten thousand features take a matrix of 400 MB in float32, so copies are avoided: one triangle of
the matrix is overwritten by Cholesky factors and restored from the other.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs, solve_triangular

Matrix = NDArray[Any]

EXACT = 2500
"""Up to this many features the evidence is evaluated on a fine grid, after one decomposition."""
RESOLVED = 32
"""Rounding errors of eigenvalues are a few times the machine's precision of the largest; a ridge of
this many times stays above them."""
_GRID = tuple(10.0**power for power in range(-5, 3))
_FIRST = 2  # 1e-3 is right, or nearly right, on most data
_BLOCK = 512


def solve_in_place(
    gram: Matrix, cross: Matrix, squares: Matrix, samples: float, unit: float,
    ridge: float | None = None,
) -> tuple[Matrix, float]:  # fmt: skip
    """The weights of the ridge regression, and its penalty: `ridge * unit`.

    Args:
        gram: sums of products of centred features, in Fortran order; only the lower triangle is
            read. It is overwritten; afterwards the lower triangle has the Cholesky factor of the
            penalised matrix.
        cross: sums of products of centred features and centred targets.
        squares: sums of squares of centred targets.
        ridge: by default the power of ten with the largest evidence.
    """
    if not gram.flags.f_contiguous:
        raise ValueError("solve_in_place: gram must be in Fortran order")
    _mirror(gram, to_lower=False)
    diagonal = gram.diagonal().copy()
    lowest = RESOLVED * float(np.finfo(gram.dtype).eps) * float(np.linalg.norm(gram))

    def halfway(penalty: float) -> Matrix | None:
        """L^-1 cross, where L is the Cholesky factor that replaces the lower triangle."""
        if not _factor(gram, diagonal, penalty):
            return None
        return solve_triangular(gram, cross, lower=True, check_finite=False)

    def evidence(penalty: float) -> float:
        z = halfway(penalty)
        if z is None:
            return -np.inf
        volume = 2 * float(np.log(gram.diagonal()).sum()) - len(gram) * np.log(penalty)
        fit = np.sum(np.square(z, dtype=float), 0)
        return float(log_evidence(fit[None], np.array([volume]), squares, samples)[0])

    if ridge is None:
        grid = np.unique(np.maximum(unit * np.array(_GRID), lowest))
        penalty = climb(evidence, [float(value) for value in grid])
    else:
        penalty = max(ridge * unit, lowest)
    z = halfway(penalty)
    while z is None:  # the sums are less accurate than their rounding errors say
        penalty *= 10
        z = halfway(penalty)
    weights = solve_triangular(gram, z, lower=True, trans="T", check_finite=False)
    return weights, penalty


def log_evidence(fits: Matrix, volumes: Matrix, squares: Matrix, samples: float) -> Matrix:
    """Log evidence up to a constant, one per candidate, with the variance of the noise profiled
    out. Outputs that have not varied say nothing."""
    varies = squares > 0
    smallest = 10 * np.finfo(squares.dtype).eps
    rest = np.maximum(squares[varies] - fits[:, varies], smallest * squares[varies])
    return -0.5 * (samples * np.log(rest) + volumes[:, None]).sum(1)


def climb(height: Callable[[float], float], grid: list[float]) -> float:
    """The value of an ascending grid where a function with one maximum is largest, in few calls."""
    best = min(_FIRST, len(grid) - 1)
    heights = {best: height(grid[best])}
    for step in (1, -1):
        while 0 <= (i := best + step) < len(grid) and i not in heights:
            heights[i] = height(grid[i])
            if not heights[i] > heights[best]:
                break
            best = i
    return grid[best]


def _factor(gram: Matrix, diagonal: Matrix, penalty: float) -> bool:
    """Replace the lower triangle by the Cholesky factor of the upper one and this diagonal."""
    _mirror(gram, to_lower=True)
    gram.T.flat[:: len(gram) + 1] = diagonal + np.asarray(penalty, gram.dtype)
    (potrf,) = get_lapack_funcs(("potrf",), (gram,))
    return bool(potrf(gram, lower=True, clean=False, overwrite_a=True)[1] == 0)


def _mirror(gram: Matrix, *, to_lower: bool) -> None:
    """Copy one triangle to the other, a block at a time."""
    for first in range(0, len(gram), _BLOCK):
        here = slice(first, first + _BLOCK)
        below = slice(first + _BLOCK, None)
        square = gram[here, here]
        kept = np.triu(square, 1) if to_lower else np.tril(square, -1)
        square[...] = kept + kept.T + np.diag(square.diagonal())
        if to_lower:
            gram[below, here] = gram[here, below].T
        else:
            gram[here, below] = gram[below, here].T
