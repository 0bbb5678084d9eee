"""`calibrate` on data that did not choose its rule, beside a grid around what it suggests.

Every setting of a, sigma_bias and the rate is half, once or twice what the rule says. Streams are
sorted by class or by a feature, shown once in batches. Run:
python docs/examples/calibration_check.py
"""

import itertools

import jax
import numpy as np
import optax
from sklearn.datasets import load_breast_cancer, load_diabetes, make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from elephant_nn import (
    accuracy,
    calibrate,
    cross_entropy,
    emlp,
    gradient,
    inject_hyperparams,
    learn,
    load,
    mlp,
    relu,
    sample_stream,
    squared_error,
)

UNITS, FACTORS, RELU_RATES = 1000, (0.5, 1.0, 2.0), np.logspace(-6, -2, 9)


def fashion(seed):
    data, rng = load("fashion-mnist"), np.random.default_rng(seed)
    some = rng.permutation(len(data.x_train))[:8000]
    some = some[np.argsort(data.y_train[some] // 2, kind="stable")]  # two classes at a time
    pixels = lambda x: (x.reshape(len(x), -1) / 255).astype(np.float32)
    test = slice(0, 2000)
    return (pixels(data.x_train[some]), data.y_train[some].astype(int),
            pixels(data.x_test[test]), data.y_test[test].astype(int), 125)  # fmt: skip


def table(x, y, seed, labels):
    train, test, train_y, test_y = train_test_split(x, y, test_size=0.3, random_state=seed)
    scaler = StandardScaler().fit(train)
    order = np.argsort(train_y if labels else train[:, 0], kind="stable")
    if not labels:
        middle, spread = train_y.mean(), train_y.std()
        train_y, test_y = (train_y - middle) / spread, (test_y - middle) / spread
    return (*(scaler.transform(train[order]).astype(np.float32), train_y[order]),
            *(scaler.transform(test).astype(np.float32), test_y), 10)  # fmt: skip


SETS = {
    "Fashion-MNIST, 8,000 samples": (fashion, 1),
    "breast cancer": (lambda seed: table(*load_breast_cancer(return_X_y=True), seed, True), 3),
    "diabetes": (lambda seed: table(*load_diabetes(return_X_y=True), seed, False), 3),
    "Friedman 1": (
        lambda seed: table(*make_friedman1(2000, noise=1.0, random_state=0), seed, False),
        3,
    ),
}


def run(build, settings, data, seed):
    x, y, test_x, test_y, batch = data
    labels = y.dtype.kind == "i"
    stream = sample_stream(x, y, test_x, test_y, batch)
    metric = accuracy if labels else squared_error
    learner = inject_hyperparams(build)(**settings)
    _, scores = learn(learner, stream, jax.random.key(seed), metric)
    return float(scores[-1]) if labels else 1 - float(scores[-1]) / np.var(test_y)


def compare(name):
    make, seeds = SETS[name]
    data = [make(seed) for seed in range(seeds)]
    x, y = data[0][:2]
    labels = y.dtype.kind == "i"
    outputs, loss = (int(y.max()) + 1, cross_entropy) if labels else (1, squared_error)
    sizes = (x.shape[1], UNITS, outputs)

    def ours(*, a: float, sigma_bias: float, lr: float):
        network = emlp(sizes, a=a, sigma_bias=sigma_bias, d=4)
        return gradient(network, optax.rmsprop(lr, decay=0.999), loss, updates=2)

    def theirs(*, lr: float):
        return gradient(mlp(sizes, relu), optax.rmsprop(lr, decay=0.999), loss, updates=2)

    mean = lambda build, settings: float(
        np.mean([run(build, settings, part, seed) for seed, part in enumerate(data)])
    )
    found = calibrate(x[:: max(len(x) // 500, 1)], UNITS)
    rule = {"a": found.a, "sigma_bias": found.sigma_bias, "lr": found.lr}
    plain = max(mean(theirs, {"lr": float(lr)}) for lr in RELU_RATES)
    grid = {
        factors: mean(ours, {key: f * rule[key] for key, f in zip(rule, factors, strict=True)})
        for factors in itertools.product(FACTORS, repeat=3)
    }
    best = max(grid, key=grid.get)
    rated = max(score for factors, score in grid.items() if factors[:2] == (1, 1))
    chosen = ", ".join(f"{value:.2g}" for value in rule.values())
    print(f"| {name} | {chosen} | {plain:.3f} | {grid[1, 1, 1]:.3f} | {rated:.3f} | "
          f"{grid[best]:.3f} | {best[0]:g}, {best[1]:g}, {best[2]:g} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    print("| data | rule: a, sigma_bias, lr | ReLU, best rate | rule | rule, best of three rates | "
          "best of the grid | at these multiples |")  # fmt: skip
    print("| --- |" + " --- |" * 6)
    for name in SETS:
        compare(name)
