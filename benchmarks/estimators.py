"""The estimators against what a user of scikit-learn would run instead."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge, SGDClassifier
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from benchmarks.table import Measurement
from elephant_nn.sklearn import ElephantClassifier

UNITS, INPUTS, CLASSES, ROUNDS = 1000, 50, 10, 300


def measure() -> list[Measurement]:
    return [*_one_row(), _fit(), _first_call(), _memory()]


def _one_row() -> list[Measurement]:
    """One row at a time, after a first batch: our 1,000 units, and models with as many."""
    rng = np.random.default_rng(0)
    x, wide = rng.normal(size=(ROUNDS + 200, INPUTS)), rng.normal(size=(ROUNDS + 200, UNITS))
    y = np.arange(ROUNDS + 200) % CLASSES
    images = rng.uniform(size=(ROUNDS + 200, 784))
    start = lambda model, x: model.partial_fit(x[:200], y[:200], classes=range(CLASSES))
    ours, large = (start(ElephantClassifier(UNITS, random_state=0), x) for x in (x, images))
    sgd = start(SGDClassifier(), wide)
    mlp, mlp_large = (start(MLPClassifier((UNITS,)), x) for x in (x, images))
    with threadpool_limits(1):  # threads do not pay for one row
        learn = _seconds(
            [(ours.partial_fit, x, y), (sgd.partial_fit, wide, y), (mlp.partial_fit, x, y),
             (large.partial_fit, images, y), (mlp_large.partial_fit, images, y)]
        )  # fmt: skip
        ours.predict(x[:1])  # solves
        predict = _seconds([(ours.predict, x), (mlp.predict, x)])
    what = f"partial_fit of one row, {UNITS:,} units"
    return [
        Measurement(what, f"{learn[0] * 1e3:.2f} ms",
                    f"SGDClassifier with {UNITS:,} features, {learn[1] * 1e3:.2f} ms",
                    learn[0] / learn[1], "<= 1"),
        Measurement(what, f"{learn[0] * 1e3:.2f} ms",
                    f"MLPClassifier with {UNITS:,} hidden units, {learn[2] * 1e3:.2f} ms",
                    learn[0] / learn[2], "<= 0.1"),
        Measurement(f"{what}, 784 inputs", f"{learn[3] * 1e3:.2f} ms",
                    f"MLPClassifier with {UNITS:,} hidden units, {learn[4] * 1e3:.2f} ms",
                    learn[3] / learn[4], "<= 0.1"),
        Measurement(f"predict of one row, {UNITS:,} units", f"{predict[0] * 1e3:.2f} ms",
                    f"MLPClassifier with as many, {predict[1] * 1e3:.2f} ms",
                    predict[0] / predict[1], "under 1 ms"),
    ]  # fmt: skip


def _seconds(calls: list[tuple[Callable[..., Any], *tuple[np.ndarray, ...]]]) -> list[float]:
    """Seconds of calls with one row, in turn: the fastest tenth, for a busy machine."""
    seconds: list[list[float]] = [[] for _ in calls]
    for i in range(200, 200 + ROUNDS):
        for spent, (call, *arrays) in zip(seconds, calls, strict=True):
            row = [array[i : i + 1] for array in arrays]
            started = time.perf_counter()
            call(*row)
            spent.append(time.perf_counter() - started)
    return [float(np.quantile(spent, 0.1)) for spent in seconds]


def _fit() -> Measurement:
    """Fit as many rows of as many inputs as MNIST has; Ridge gets our features, computed by us."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(60_000, 784)).astype(np.float32)
    y = rng.integers(0, CLASSES, 60_000)
    started = time.perf_counter()
    model = ElephantClassifier(UNITS, random_state=0).fit(x, y)
    model.predict(x[:1])
    ours = time.perf_counter() - started
    started = time.perf_counter()
    features = np.concatenate(
        [model.model_.features(x[i : i + 2000]) for i in range(0, 60_000, 2000)]
    )
    Ridge().fit(features.astype(np.float64), np.eye(CLASSES)[y])
    other = time.perf_counter() - started
    return Measurement(
        f"fit and solve, 60,000 rows, 784 inputs, {UNITS:,} units", f"{ours:.1f} s",
        f"the same features, then Ridge with one penalty, {other:.1f} s", ours / other, "<= 1.5",
    )  # fmt: skip


def _first_call() -> Measurement:
    """In a new process: import, and learn and predict one batch; processor time on one thread."""
    script = (
        "import numpy as np\nfrom {} import {}\n"
        "x = np.random.default_rng(0).normal(size=(200, 20))\n"
        "{}().partial_fit(x, x[:, 0] > 0, classes=[False, True]).predict(x)\n"
    )
    seconds = []
    for module, name in (("elephant_nn.sklearn", "ElephantClassifier"),
                         ("sklearn.neural_network", "MLPClassifier")):  # fmt: skip
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", script.format(module, name, name)], check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return Measurement(
        "import, first partial_fit and predict, new process, processor time", f"{seconds[0]:.2f} s",
        f"MLPClassifier, {seconds[1]:.2f} s", seconds[0] / seconds[1], "under 3 s",
    )  # fmt: skip


def _memory() -> Measurement:
    """Peak memory after a million samples against that after ten thousand."""
    script = (
        "import resource, numpy as np\nfrom elephant_nn.sklearn import ElephantRegressor\n"
        "rng, model = np.random.default_rng(0), ElephantRegressor(200, random_state=0)\n"
        "for i in range({}):\n"
        "    x = rng.normal(size=(1000, 10)); model.partial_fit(x, x[:, 0])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    peaks = [
        float(subprocess.run([sys.executable, "-c", script.format(n)], check=True,
                             capture_output=True, text=True).stdout)
        for n in (1000, 10)
    ]  # fmt: skip
    return Measurement(
        "peak memory, a million samples", f"{peaks[0]:.0f} MB",
        f"ten thousand samples, {peaks[1]:.0f} MB", peaks[0] / peaks[1], "<= 1.05",
    )  # fmt: skip
