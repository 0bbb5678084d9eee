"""Ridge regression from running sums, in NumPy: the head of the estimators and of PyTorch models.

Ridge regression needs only sums of products, so samples may come in any order and in any pieces,
and none of them is kept. Neither JAX nor a compilation is involved.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dtrtri

Numbers = NDArray[np.float64]
Factor = tuple[Numbers, bool]

EXACT = 2500
"""Up to this many features the evidence is evaluated on a fine grid, after one decomposition."""
RESOLVED = 32
"""A ridge of this many times the rounding error of the largest eigenvalue stays above it."""
PENDING = 32
"""Rows whose products are added at once: adding one row costs almost as much as adding these."""
ARRAYS = ("origin", "samples", "sums", "products", "targets", "squares", "cross")


@dataclass(frozen=True)
class RidgeSolution:
    """Predictions are `(h - centre) @ weights + offset`.

    Attributes:
        ridge: the penalty, relative to the mean diagonal of the centred sums of products.
        noise: the variance of the residuals of each output.
        penalty: the same penalty as scikit-learn's `alpha`.
        error: the mean squared error that generalised cross-validation expects on new samples.
    """

    centre: Numbers
    weights: Numbers
    offset: Numbers
    ridge: float
    noise: Numbers
    penalty: float
    error: float

    def predict(self, h: ArrayLike) -> Numbers:
        return np.asarray(h) @ self.weights + (self.offset - self.centre @ self.weights)


class OnlineRidge:
    r"""Ridge regression with an intercept, for features and targets that come in pieces.

    With $G$ and $C$ the sums of products of centred features with themselves and with centred
    targets, the weights are $(G + r\,g\,I)^{-1} C$, where $g$ is the mean of $G$'s diagonal: those
    of scikit-learn's `Ridge(alpha=r * g)` fitted to all samples at once. All sums are float64; m
    features take m^2 numbers.

    Args:
        ridge: r above; default: the value with the largest evidence (the marginal likelihood of a
            Gaussian linear model), computed from the same sums, so nothing is held out.
        forgetting: sums are multiplied by it before every sample; below 1, old samples fade.
    """

    def __init__(
        self, features: int, outputs: int, *, ridge: float | None = None, forgetting: float = 1.0
    ):
        if ridge is not None and not 0 < ridge < np.inf:
            raise ValueError(f"ridge must be above 0, or None to choose it, got {ridge}")
        if not 0 < forgetting <= 1:
            raise ValueError(f"forgetting must be above 0 and at most 1, got {forgetting}")
        self.ridge, self.forgetting = ridge, forgetting
        self.cross = np.zeros((features, outputs))
        self.clear()

    def clear(self) -> None:
        """Forget all samples."""
        features, outputs = self.cross.shape
        self.origin = np.zeros(features)
        self.samples = np.zeros(())
        self.sums = np.zeros(features)
        self.products = np.zeros((features, features), order="F")  # the lower triangle is used
        self.targets, self.squares = np.zeros(outputs), np.zeros(outputs)
        self.cross = np.zeros((features, outputs))
        self._pending: list[Numbers] = []  # rows that are not in the products yet
        self._fade = 1.0  # of the products since then
        self._solution: RidgeSolution | None = None
        self._factor: Factor | None = None

    def add(self, h: ArrayLike, y: ArrayLike, weight: ArrayLike | None = None) -> None:
        """Add samples: a row of features and a row of targets each, and perhaps a weight."""
        h, y = np.asarray(h, float), np.asarray(y, float)
        n, (m, k) = len(h), self.cross.shape
        if h.shape != (n, m) or y.shape != (n, k):
            raise ValueError(
                f"OnlineRidge: expected features of shape (n, {m}) and targets of shape (n, {k}), "
                f"got {h.shape} and {y.shape}"
            )
        if n == 0:
            return
        w = np.ones(n) if weight is None else np.asarray(weight, float)
        if w.shape != (n,) or not (np.isfinite(w).all() and (w >= 0).all()):
            raise ValueError("OnlineRidge: expected a weight of 0 or more for each sample")
        fade = self.forgetting**n
        if fade < 1:
            w = w * self.forgetting ** np.arange(n - 1, -1, -1)
        if not self.samples and w.any():
            self.origin = np.average(h, axis=0, weights=w)
        h = h - self.origin
        wh, wy = (h, y) if weight is None and fade == 1 else (w[:, None] * h, w[:, None] * y)
        root = h if wh is h else np.sqrt(w)[:, None] * h
        self.samples = fade * self.samples + w.sum()
        self.sums = fade * self.sums + wh.sum(0)
        if fade < 1:
            self._fade, self._pending = fade * self._fade, [fade**0.5 * r for r in self._pending]
        self._pending.append(root)
        if sum(map(len, self._pending)) >= PENDING:
            self._flush()
        self.targets = fade * self.targets + wy.sum(0)
        self.squares = fade * self.squares + (wy * y).sum(0)
        self.cross = fade * self.cross + h.T @ wy
        self._solution = self._factor = None

    def grow(self, features: int, outputs: int) -> None:
        """Make room for features and outputs that were 0 in all samples so far."""
        m, k = self.cross.shape
        if features < m or outputs < k:
            raise ValueError(
                f"OnlineRidge: {m} features and {k} outputs cannot shrink to {features}, {outputs}"
            )
        if (features, outputs) == (m, k):
            return
        more, new = features - m, outputs - k
        self.origin, self.sums = np.pad(self.origin, (0, more)), np.pad(self.sums, (0, more))
        self.targets, self.squares = np.pad(self.targets, (0, new)), np.pad(self.squares, (0, new))
        self.cross = np.pad(self.cross, ((0, more), (0, new)))
        if more:
            self._flush()
            old, self.products = self.products, np.zeros((features, features), order="F")
            self.products[:m, :m] = old
        self._solution = self._factor = None

    def solution(self) -> RidgeSolution:
        """The solution for the samples so far; computed when it is asked for, and kept."""
        if self._solution is None:
            self._solution = self._solve()
        return self._solution

    def std(self, h: ArrayLike) -> Numbers:
        """The standard deviation of new targets: of the noise, and of what is not known yet."""
        return np.sqrt((1 + self.leverage(h))[:, None] * self.solution().noise)

    def leverage(self, h: ArrayLike) -> Numbers:
        """How far features are from what is known: $(h - c)^T (G + r g I)^{-1} (h - c)$.

        A sample of weight w and leverage s moves the prediction there by ws / (1 + ws) of the
        residual, if the centre c and the penalty stay as they are.
        """
        solution = self.solution()
        if self._factor is None:
            self._factor = _cholesky(self._centred_products(), solution.penalty)
        away = (np.asarray(h, float) - solution.centre).T
        return np.asarray(np.sum(away * cho_solve(self._factor, away, check_finite=False), 0))

    def arrays(self) -> dict[str, Numbers]:
        """The sums, by name: the whole state besides the settings."""
        self._flush()
        return {name: getattr(self, name) for name in ARRAYS}

    def load(self, arrays: Mapping[str, ArrayLike]) -> "OnlineRidge":
        """Continue from sums that `arrays` gave."""
        for name in ARRAYS:
            setattr(self, name, np.array(arrays[name], float, order="F"))
        self._pending, self._fade = [], 1.0
        self._solution = self._factor = None
        return self

    def __getstate__(self) -> dict[str, object]:
        self._flush()
        return {**self.__dict__, "_solution": None, "_factor": None}

    @property
    def _total(self) -> float:
        return max(float(self.samples), 1e-300)

    def _flush(self) -> None:
        """Add pending rows to the products."""
        if self._pending:
            rows = np.concatenate(self._pending)
            self.products = dsyrk(
                1.0, rows.T, beta=self._fade, c=self.products, lower=1, overwrite_c=1
            )  # fmt: skip
            self._pending, self._fade = [], 1.0

    def _centred_products(self) -> Numbers:
        self._flush()
        return dsyrk(-1 / self._total, self.sums[:, None], beta=1.0, c=self.products, lower=1)

    def _solve(self) -> RidgeSolution:
        n = self._total
        mean = self.sums / n
        gram = self._centred_products()
        cross = self.cross - np.outer(mean, self.targets)
        squares = np.maximum(self.squares - self.targets**2 / n, 0)
        diagonal = np.diag(gram)
        unit, eps = float(diagonal.mean()), np.finfo(float).eps
        rounding = n * np.mean((16 * eps * self.origin) ** 2) + 1e-290
        if not unit > rounding:  # no feature has varied so far
            unit = 1.0
        if len(gram) <= EXACT:
            values, vectors = eigh(gram, lower=True, driver="evd", check_finite=False)
            values, rotated = np.maximum(values, 0), vectors.T @ cross
            lowest = RESOLVED * eps * values[-1]
            grid = np.maximum(unit * np.logspace(-6, 2, 65), lowest)
            if self.ridge is not None:
                grid = np.maximum(np.array([self.ridge * unit]), lowest)
            shrunk = 1 / (values + grid[:, None])
            fits, volumes = shrunk @ rotated**2, np.log1p(values / grid[:, None]).sum(1)
            best = int(np.argmax(_log_evidence(fits, volumes, squares, n)))
            penalty, fit = float(grid[best]), fits[best]
            weights = vectors @ (rotated * shrunk[best][:, None])
            freedom = float(np.sum(values * shrunk[best]))
        else:
            lowest = RESOLVED * eps * float(diagonal.sum())
            penalty = self._penalty_by_cholesky(gram, cross, squares, n, unit, lowest)
            factor = _cholesky(gram, penalty)
            weights = cho_solve(factor, cross, check_finite=False)
            fit = np.sum(cross * weights, 0)
            inverse = dtrtri(np.tril(factor[0]), lower=1, overwrite_c=1)[0]
            freedom = len(gram) - penalty * float(np.sum(inverse**2))
        noise = np.maximum(squares - fit, 0) / n
        residuals = np.maximum(noise - penalty / n * np.sum(weights**2, 0), 0)
        error = float(residuals.mean()) / max(1 - freedom / n, 1e-3) ** 2
        offset = self.targets / n
        return RidgeSolution(
            self.origin + mean, weights, offset, penalty / unit, noise, penalty, error
        )  # fmt: skip

    def _penalty_by_cholesky(
        self, gram: Numbers, cross: Numbers, squares: Numbers, n: float, unit: float, lowest: float
    ) -> float:
        if self.ridge is not None:
            return max(self.ridge * unit, lowest)

        def evidence(r: float) -> float:
            factor = _cholesky(gram, r)
            volume = 2 * np.log(np.diag(factor[0])).sum() - len(gram) * np.log(r)
            fit = np.sum(cross * cho_solve(factor, cross, check_finite=False), 0)
            return float(_log_evidence(fit[None], np.array([volume]), squares, n)[0])

        grid = np.unique(np.maximum(unit * np.logspace(-5, 2, 8), lowest))
        return float(grid[np.argmax([evidence(r) for r in grid])])


def _cholesky(gram: Numbers, penalty: float) -> Factor:
    ridged = np.array(gram, order="F")
    ridged.flat[:: len(gram) + 1] += penalty
    factor, lower = cho_factor(ridged, lower=True, overwrite_a=True, check_finite=False)
    return factor, bool(lower)


def _log_evidence(fits: Numbers, volumes: Numbers, squares: Numbers, n: float) -> Numbers:
    """Log evidence up to a constant, one per candidate, with the variance of the noise profiled
    out. Outputs that have not varied say nothing."""
    varies = squares > 0
    rest = np.maximum(squares[varies] - fits[:, varies], 1e-10 * squares[varies])
    return -0.5 * (n * np.log(rest) + volumes[:, None]).sum(1)


class RecursiveRidge:
    """Ridge regression that is solved after every sample.

    Between full solutions from the sums, the inverse is updated for each sample, which takes m^2
    operations. Rounding errors of that recursion would accumulate and its penalty stays what it
    was, so the sums are solved anew whenever there are a fifth more samples.
    """

    def __init__(
        self, features: int, outputs: int, *, ridge: float | None = None, forgetting: float = 1.0
    ):
        self.sums = OnlineRidge(features, outputs, ridge=ridge, forgetting=forgetting)
        self.forgetting = forgetting
        self.since = 0  # samples since the last full solution
        self.due = 0
        self.inverse: Numbers = np.zeros((features + 1, features + 1))
        self.weights: Numbers = np.zeros((features + 1, outputs))
        self.error = 1.0  # expected on new samples, as of the last full solution

    def add(self, h: ArrayLike, y: ArrayLike) -> None:
        """Add samples, one after another: pieces do not matter."""
        h, y = np.asarray(h, float), np.asarray(y, float)
        while len(h):
            left = max(self.due - self.since, 1)
            self._add(h[:left], y[:left])
            h, y = h[left:], y[left:]

    def _add(self, h: Numbers, y: Numbers) -> None:
        self.sums.add(h, y)
        self.since += len(h)
        if self.since >= self.due:
            self.refresh()
            return
        rows: Numbers = self._rows(h)
        self.inverse /= self.forgetting ** len(h)
        gain: Numbers = self.inverse @ rows.T
        noise = self.forgetting ** -np.arange(len(h) - 1.0, -1, -1)  # of samples that have faded
        spread = rows @ gain + np.diag(noise)
        gain = np.asarray(np.linalg.solve(spread, gain.T).T, np.float64)
        self.weights += gain @ (y - rows @ self.weights)
        self.inverse -= gain @ spread @ gain.T

    def predict(self, h: ArrayLike) -> Numbers:
        return self._rows(np.asarray(h, float)) @ self.weights

    def grow(self, outputs: int) -> None:
        """Make room for outputs that were 0 in all samples so far."""
        self.sums.grow(len(self.sums.sums), outputs)
        more = outputs - self.weights.shape[1]
        self.weights = np.pad(self.weights, ((0, 0), (0, more)))

    def refresh(self) -> None:
        """Solve from the sums."""
        solution, sums, m = self.sums.solution(), self.sums, len(self.sums.sums)
        n, mean = sums._total, sums.sums / sums._total
        centred = _cholesky(sums._centred_products(), solution.penalty)
        self.inverse[:m, :m] = cho_solve(centred, np.eye(m), check_finite=False)
        self.inverse[m, :m] = self.inverse[:m, m] = -self.inverse[:m, :m] @ mean
        self.inverse[m, m] = 1 / n - mean @ self.inverse[:m, m]
        self.weights[:m] = solution.weights
        self.weights[m] = solution.offset - mean @ solution.weights
        self.error = solution.error
        memory = 1 / (1 - self.forgetting) if self.forgetting < 1 else np.inf
        self.since, self.due = 0, int(max(min(n / 5, memory), 50))

    def _rows(self, h: Numbers) -> Numbers:
        return np.column_stack([h - self.sums.origin, np.ones(len(h))])
