"""Progressive validation on the streams that River ships, and on one that drifts.

Each model predicts every sample before it learns it. Run: python docs/examples/river_streams.py
"""

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
    "Hoeffding tree": lambda seed: tree.HoeffdingTreeRegressor(),
    "adaptive random forest": lambda seed: forest.ARFRegressor(seed=seed),
    "elephant": lambda seed: river.ElephantRegressor(seed=seed),
    "elephant, forgetting=0.999": lambda seed: river.ElephantRegressor(seed=seed, forgetting=0.999),
}
BINARY = {"logistic regression"}
SAMPLES = 10_000


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
        scores, seconds = [], 0.0
        for seed in SEEDS:
            started, found = time.perf_counter(), metric()
            evaluate.progressive_val_score(stream(), build(seed), found)
            seconds += time.perf_counter() - started
            scores.append(found.get())
        mean = sum(scores) / len(scores)
        spread = (sum((score - mean) ** 2 for score in scores) / (len(scores) - 1)) ** 0.5
        se = spread / len(scores) ** 0.5
        print(
            f"| {name} | {title} | {mean:.3f} ± {se:.3f} | {seconds / len(SEEDS):.1f} |", flush=True
        )


if __name__ == "__main__":
    print("| stream | model | accuracy, or mean absolute error | seconds |")
    print("| --- | --- | --- | --- |")
    several = {name: build for name, build in CLASSIFIERS.items() if name not in BINARY}
    two = {name: build for name, build in CLASSIFIERS.items() if name != "softmax regression"}
    compare("Phishing", datasets.Phishing, two, metrics.Accuracy)
    compare("Bananas", datasets.Bananas, two, metrics.Accuracy)
    compare("ImageSegments", datasets.ImageSegments, several, metrics.Accuracy)
    compare("drift after 5,000 samples", drifting, two, metrics.Accuracy)
    compare("TrumpApproval", datasets.TrumpApproval, REGRESSORS, metrics.MAE)
    compare("ChickWeights", datasets.ChickWeights, REGRESSORS, metrics.MAE)
