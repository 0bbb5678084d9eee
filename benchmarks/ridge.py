"""The ridge head against what a user would run on the same features."""

import subprocess
import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cho_factor, cho_solve, get_blas_funcs, get_lapack_funcs
from sklearn.linear_model import Ridge, SGDClassifier

from benchmarks.table import Measurement
from elephant_nn import emlp, ridge_head

INPUTS, CLASSES, BATCH, SAMPLES, UNITS, WIDE = 784, 10, 125, 12_500, 1000, 10_000
MNIST = 60_000 // BATCH
"""Batches of MNIST."""

_PEAK = """
import resource
import jax, numpy as np
from elephant_nn import emlp, learn, ridge_head, sample_stream
rng = np.random.default_rng(0)
x, y = rng.uniform(size=(2, 1250, 784)).astype("float32")
learner = ridge_head(emlp((784, 10_000, 1), a=0.32, sigma_bias=0.32), 10, regression=True)
learn(learner, sample_stream(x, y[:, :10], batch_size=125), jax.random.key(0))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def measure() -> list[Measurement]:
    return [*_narrow(), *_wide(), _memory()]


def _narrow() -> list[Measurement]:
    """1,000 units: `SAMPLES` samples in batches, then the solution."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(SAMPLES, INPUTS)).astype(np.float32)
    y = rng.integers(0, CLASSES, SAMPLES)
    network = emlp((INPUTS, UNITS, CLASSES), a=0.32, sigma_bias=0.32)
    learner = ridge_head(network, CLASSES)
    start = learner.init(jax.random.key(0), x[:BATCH])
    features = jax.jit(network.features)
    x_batches, y_batches = x.reshape(-1, BATCH, INPUTS), y.reshape(-1, BATCH)

    @jax.jit
    def ours(state, x, y):
        state, _ = jax.lax.scan(lambda s, b: (learner.update(s, b), None), state, (x, y))
        return learner.prepare(state).weights

    def sgd() -> None:
        model, classes = SGDClassifier(), np.arange(CLASSES)
        for one, labels in zip(x_batches, y_batches, strict=True):
            model.partial_fit(np.asarray(features(start.params, one)), labels, classes=classes)

    def at_once() -> None:
        Ridge().fit(np.asarray(features(start.params, x)), np.eye(CLASSES)[y])

    def loop() -> None:
        gram, cross = np.zeros((UNITS, UNITS), np.float32), np.zeros((UNITS, CLASSES), np.float32)
        for one, labels in zip(x_batches, y_batches, strict=True):
            h = np.asarray(features(start.params, one))
            gram += h.T @ h
            cross += h.T @ np.eye(CLASSES, dtype=np.float32)[labels]
        cho_solve(cho_factor(gram + 1e-3 * np.eye(UNITS, dtype=np.float32)), cross)

    calls = [lambda: ours(start, x_batches, y_batches).block_until_ready(), sgd, at_once, loop]
    mine, *others = _best(calls, rounds=3)
    what = f"{SAMPLES:,} samples in batches of {BATCH}, {UNITS:,} units, and the solution"
    rate = lambda seconds: f"{SAMPLES / seconds:,.0f} samples per second"
    names = ("SGDClassifier.partial_fit on the same features", "Ridge on all features at once",
             "a NumPy loop with one penalty")  # fmt: skip
    return [
        Measurement(what, rate(mine), f"{name}, {rate(other)}", mine / other, target)
        for name, other, target in zip(names, others, ("<= 1", "<= 3", ""), strict=True)
    ]


def _wide() -> list[Measurement]:
    """10,000 units: an update against BLAS, and all of MNIST put together from the parts."""
    network = emlp((INPUTS, WIDE, CLASSES), a=0.32, sigma_bias=0.32)
    learner = ridge_head(network, CLASSES)
    key = jax.random.key(0)
    x = jax.random.uniform(key, (BATCH, INPUTS))
    y = jnp.arange(BATCH) % CLASSES
    state = learner.init(key, x)
    update = jax.jit(lambda s: learner.update(s, (x, y)), donate_argnums=0)
    state = update(state)
    h = np.asfortranarray(np.asarray(network.features(state.params, x)).T)
    gram = np.zeros((WIDE, WIDE), np.float32, order="F")
    (syrk,) = get_blas_funcs(("syrk",), (gram,))
    ours, bare = [], []
    for _ in range(5):
        started = time.perf_counter()
        state = jax.block_until_ready(update(state))
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        gram = syrk(1.0, h, beta=1.0, c=gram, lower=1, overwrite_c=1)
        bare.append(time.perf_counter() - started)
    started = time.perf_counter()
    jax.block_until_ready(learner.prepare(state).weights)
    solve = time.perf_counter() - started
    gram.flat[:: WIDE + 1] += 1.0
    (potrf,) = get_lapack_funcs(("potrf",), (gram,))
    started = time.perf_counter()
    potrf(gram, lower=True, overwrite_a=True)
    cholesky = time.perf_counter() - started
    step, product = min(ours), min(bare)
    mine, other = MNIST * step + solve, MNIST * product + cholesky
    return [
        Measurement(f"update of {WIDE:,} units, batch {BATCH}", f"{step * 1e3:.0f} ms",
                    f"symmetric rank-k update in BLAS, {product * 1e3:.0f} ms", step / product,
                    ""),
        Measurement(f"MNIST with {WIDE:,} units: {MNIST} updates and one solution",
                    f"{mine:.0f} s",
                    f"as many rank-k updates and one Cholesky factor, {other:.0f} s",
                    mine / other, "<= 1.5"),
    ]  # fmt: skip


def _memory() -> Measurement:
    found = subprocess.run(
        [sys.executable, "-c", _PEAK], check=True, capture_output=True, text=True
    )
    peak, sums = float(found.stdout), WIDE**2 * 4 / 2**20
    return Measurement(
        f"peak memory with {WIDE:,} units", f"{peak:.0f} MB",
        f"the sums of products, {sums:.0f} MB", peak / sums, "under 1,500 MB",
    )  # fmt: skip


def _best(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """Least seconds of each call, in turn, after a first round."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds + 1):
        for spent, call in zip(seconds, calls, strict=True):
            started = time.perf_counter()
            call()
            spent.append(time.perf_counter() - started)
    return [min(spent[1:]) for spent in seconds]
