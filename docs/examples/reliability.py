"""How often predictions are right, by their probability.

Run: python docs/examples/reliability.py
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.model_selection import train_test_split

from elephant_nn.report.style import COLOURS, figure
from elephant_nn.sklearn import ElephantClassifier

SETS = {
    "digits": load_digits(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
    "synthetic": make_classification(
        5000, 54, n_informative=15, n_redundant=5, n_classes=7, random_state=0
    ),
}
BINS = np.linspace(0, 1, 11)
SPLITS = range(10)


def predictions(x, y, seed):
    """Of held-out samples: the largest probability, and whether its class is right."""
    train, test, train_y, test_y = train_test_split(
        x, y, test_size=0.3, random_state=seed, stratify=y
    )
    order = np.argsort(train_y, kind="stable")
    model = ElephantClassifier(random_state=seed).fit(train[order], train_y[order])
    probabilities = model.predict_proba(test)
    return probabilities.max(1), model.classes_[probabilities.argmax(1)] == test_y


def main():
    drawn, (ax,) = figure(1, 1, 5, 4.4)
    ax.plot([0, 1], [0, 1], color="#888888", lw=1)
    print("| data | accuracy | mean probability | expected calibration error |")
    print("| --- | --- | --- | --- |")
    for (name, (x, y)), colour in zip(SETS.items(), ("blue", "orange", "green"), strict=True):
        found = [predictions(x, y, seed) for seed in SPLITS]
        sure, right = (np.concatenate(part) for part in zip(*found, strict=True))
        bins = np.clip(np.digitize(sure, BINS) - 1, 0, len(BINS) - 2)
        filled = [i for i in range(len(BINS) - 1) if np.sum(bins == i) >= 20]
        means = np.array([[sure[bins == i].mean(), right[bins == i].mean()] for i in filled])
        share = np.array([np.mean(bins == i) for i in filled])
        error = np.sum(share * np.abs(means[:, 0] - means[:, 1]))
        ax.plot(*means.T, "o-", color=COLOURS[colour], label=name, ms=4)
        print(f"| {name} | {right.mean():.3f} | {sure.mean():.3f} | {error:.3f} |")
    ax.set(xlabel="probability of the predicted class", ylabel="share of right predictions",
           xlim=(0, 1.02), ylim=(0, 1.02))  # fmt: skip
    ax.legend(loc="upper left")
    path = Path("docs/results/estimators/reliability.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
