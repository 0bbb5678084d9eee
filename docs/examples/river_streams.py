"""Progressive validation on the streams that River ships, and on one that drifts.

Each model predicts every sample before it learns it; models without randomness run once. Run:
python docs/examples/river_streams.py, or with the names of some streams.
"""

import sys
import time
from itertools import islice

from river import datasets, evaluate, forest, linear_model, metrics, preprocessing, tree
from river.datasets import synth

from elephant_nn import river

SEEDS = range(3)
CLASSIFIERS = {
    "logistic regression": lambda seed: (
        preprocessing.StandardScaler() | linear_model.LogisticRegression()
    ),
    "softmax regression": lambda seed: (
        preprocessing.StandardScaler() | linear_model.SoftmaxRegression()
    ),
    "Hoeffding tree": lambda seed: tree.HoeffdingTreeClassifier(),
    "adaptive random forest": lambda seed: forest.ARFClassifier(seed=seed),
    "elephant": lambda seed: river.ElephantClassifier(seed=seed),
    "elephant, forgetting=0.999": lambda seed: river.ElephantClassifier(
        seed=seed, forgetting=0.999
    ),
}
REGRESSORS = {
    "linear regression": lambda seed: (
        preprocessing.StandardScaler() | linear_model.LinearRegression()
    ),
    "Hoeffding tree": lambda seed: preprocessing.StandardScaler() | tree.HoeffdingTreeRegressor(),
    "adaptive random forest": lambda seed: (
        preprocessing.StandardScaler() | forest.ARFRegressor(seed=seed)
    ),
    "elephant": lambda seed: river.ElephantRegressor(seed=seed),
    "elephant, forgetting=0.999": lambda seed: river.ElephantRegressor(seed=seed, forgetting=0.999),
}
RANDOM = ("adaptive random forest", "elephant", "elephant, forgetting=0.999")
SAMPLES = 5000


def drifting():
    """A random tree whose labels mean something else in its second half."""
    return islice(
        synth.ConceptDriftStream(
            synth.RandomTree(seed_tree=1, seed_sample=2, n_classes=2, n_num_features=5,
                             n_cat_features=0),
            synth.RandomTree(seed_tree=7, seed_sample=3, n_classes=2, n_num_features=5,
                             n_cat_features=0),
            position=SAMPLES // 2, width=100, seed=0,
        ),
        SAMPLES,
    )  # fmt: skip


def compare(name, stream, models, metric):
    for title, build in models.items():
        scores, seconds = [], []
        for seed in SEEDS if title in RANDOM else range(1):
            started, found = time.process_time(), metric()
            evaluate.progressive_val_score(stream(), build(seed), found)
            seconds.append(time.process_time() - started)
            scores.append(found.get())
        mean = sum(scores) / len(scores)
        score = f"{mean:.3f}"
        if len(scores) > 1:
            spread = (sum((score - mean) ** 2 for score in scores) / (len(scores) - 1)) ** 0.5
            score += f" ± {spread / len(scores) ** 0.5:.3f}"
        print(f"| {name} | {title} | {score} | {min(seconds):.1f} |", flush=True)


def without(*titles):
    return {title: build for title, build in CLASSIFIERS.items() if title not in titles}


STREAMS = {
    "Phishing": (datasets.Phishing, without("softmax regression"), metrics.Accuracy),
    "Bananas": (datasets.Bananas, without("softmax regression"), metrics.Accuracy),
    "ImageSegments": (datasets.ImageSegments, without("logistic regression"), metrics.Accuracy),
    "drift": (drifting, without("softmax regression"), metrics.Accuracy),
    "TrumpApproval": (datasets.TrumpApproval, REGRESSORS, metrics.MAE),
    "ChickWeights": (datasets.ChickWeights, REGRESSORS, metrics.MAE),
}

if __name__ == "__main__":
    print("| stream | model | accuracy, or mean absolute error | CPU seconds |")
    print("| --- | --- | --- | --- |")
    for name in sys.argv[1:] or STREAMS:
        compare(name, *STREAMS[name])
