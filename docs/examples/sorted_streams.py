"""Streams sorted by class, or by a feature for regression: one pass in batches of ten samples.

Every model has its default settings, and the result is on held-out samples. Run:
python docs/examples/sorted_streams.py, or with "classes" or "numbers" for half of it.
"""

import sys
import warnings

import jax
import numpy as np
from sklearn.datasets import (
    load_diabetes,
    load_digits,
    load_wine,
    make_classification,
    make_friedman1,
)
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

from elephant_nn import RAW_INPUTS, streaming_lda
from elephant_nn.sklearn import ElephantClassifier, ElephantRegressor

SPLITS = range(3)
CLASSES = {
    "wine": load_wine(return_X_y=True),
    "digits": load_digits(return_X_y=True),
    "synthetic": make_classification(
        5000, 54, n_informative=15, n_redundant=5, n_classes=7, random_state=0
    ),
}
NUMBERS = {
    "Friedman 1": make_friedman1(2000, noise=1.0, random_state=0),
    "diabetes": load_diabetes(return_X_y=True),
}


class StreamingLDA:
    """`streaming_lda` of this package on the inputs themselves."""

    def partial_fit(self, x, y, classes):
        if not hasattr(self, "learner"):
            self.learner = streaming_lda(RAW_INPUTS, x.shape[1], len(classes))
            self.update = jax.jit(self.learner.update)
            self.state = self.learner.init(jax.random.key(0), x)
        self.state = self.update(self.state, (jax.numpy.asarray(x), jax.numpy.asarray(y)))

    def score(self, x, y):
        return np.mean(np.argmax(self.learner.predict(self.state, x), 1) == y)


def classifiers(seed):
    return {
        "SGDClassifier": SGDClassifier(random_state=seed),
        "MLPClassifier": MLPClassifier(random_state=seed),
        "GaussianNB": GaussianNB(),
        "streaming LDA": StreamingLDA(),
        'ElephantClassifier(head="gradient")': ElephantClassifier(
            head="gradient", random_state=seed
        ),
        "ElephantClassifier()": ElephantClassifier(random_state=seed),
    }


def regressors(seed):
    return {
        "SGDRegressor": SGDRegressor(random_state=seed),
        "MLPRegressor": MLPRegressor(random_state=seed),
        'ElephantRegressor(head="gradient")': ElephantRegressor(head="gradient", random_state=seed),
        "ElephantRegressor()": ElephantRegressor(random_state=seed),
    }


def score(build, name, data, seed, raw):
    x, y = data
    labels = build is classifiers
    train, test, train_y, test_y = train_test_split(
        x, y, test_size=0.3, random_state=seed, stratify=y if labels else None
    )
    if not raw:
        scaler = StandardScaler().fit(train)
        train, test = scaler.transform(train), scaler.transform(test)
    order = np.argsort(train_y if labels else train[:, 0], kind="stable")
    model = build(seed)[name]
    for first in range(0, len(train), 10):
        rows = order[first : first + 10]
        more = {} if "Elephant" in name or not labels else {"classes": np.unique(y)}
        model.partial_fit(train[rows], train_y[rows], **more)
    return model.score(test, test_y)


def table(build, sets, *, raw):
    print(f"\n| {'as they are' if raw else 'standardised'} | {' | '.join(sets)} |")
    print(f"| --- |{' --- |' * len(sets)}")
    for name in build(0):
        cells = []
        for data in sets.values():
            found = [score(build, name, data, seed, raw) for seed in SPLITS]
            se = np.std(found, ddof=1) / len(found) ** 0.5
            cells.append(
                f"{np.mean(found):.3f} ± {se:.3f}" if np.mean(found) > -10 else "below -10"
            )
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    for raw in (False, True):
        if sys.argv[1:] != ["numbers"]:
            table(classifiers, CLASSES, raw=raw)
        if sys.argv[1:] != ["classes"]:
            table(regressors, NUMBERS, raw=raw)
