"""Correct one misread digit of MNIST at a time, and count what changes among 10,000 others.

Networks 784-1000-10 learn 10,000 digits; misread ones among other training digits are edited, and
the test digits show the collateral change. Run: python docs/examples/torch_editing.py
"""

import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from elephant_nn.data.loading import load
from elephant_nn.torch import RidgeHead, edit, edit_report, elephantize

SEEDS, EDITS, TRAINED, KEPT = range(3), 4, 10_000, 200


def digits():
    data = load("mnist")
    rows = lambda x: torch.tensor(np.asarray(x), dtype=torch.float32).flatten(1) / 255
    labels = lambda y: torch.tensor(np.asarray(y), dtype=torch.int64)
    return rows(data.x_train), labels(data.y_train), rows(data.x_test), labels(data.y_test)


def trained(name, x, y, seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 10))
    if name == "elephant":
        elephantize(model, x[:500])
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(2):
        for rows in torch.randperm(len(x)).split(100):
            optimiser.zero_grad()
            functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimiser.step()
    return model


def random_features(name, x, y, seed):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 10))
    elephantize(model, x[:500], head="ridge")
    return RidgeHead(model[:2], 10).partial_fit(x, y)


def main():
    x, y, test_x, test_y = digits()
    lines = {}
    for seed in SEEDS:
        for name in sys.argv[1:] or ("ReLU", "elephant", "ridge head"):
            learn = random_features if name == "ridge head" else trained
            model = learn(name, x[:TRAINED], y[:TRAINED], seed)
            with torch.no_grad():
                candidates = slice(TRAINED, TRAINED + 2000)
                wrong = model(x[candidates]).argmax(1) != y[candidates]
            points, labels = x[candidates][wrong][:EDITS], y[candidates][wrong][:EDITS]
            for kept in (False, True):
                keep = x[:KEPT] if kept else None
                reports = [
                    edit_report(
                        model, edit(model, p, int(label), keep=keep), p, int(label), test_x,
                        labels=test_y, neighbourhood=0.0,
                    )
                    for p, label in zip(points, labels, strict=True)
                ]  # fmt: skip
                lines.setdefault((name, kept), []).append(
                    [
                        np.mean([1 - r.error_after for r in reports]),
                        10_000 * np.mean([r.fraction_flipped for r in reports]),
                        100 * np.mean([r.accuracy_before for r in reports]),
                        100 * np.mean([r.accuracy_after - r.accuracy_before for r in reports]),
                    ]
                )
                print(seed, name, kept, np.round(lines[name, kept][-1], 3), flush=True)
    print("| model | points kept | corrected | predictions changed | accuracy before, % | change |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (name, kept), found in lines.items():
        mean, error = np.mean(found, 0), np.std(found, 0, ddof=1) / np.sqrt(len(found))
        pairs = [
            f"{m:.{n}f} ± {e:.{n}f}" for m, e, n in zip(mean, error, (0, 1, 2, 3), strict=True)
        ]
        kept_points = KEPT if kept else "none"
        print(f"| {name} | {kept_points} | {mean[0]:.0%} | {' | '.join(pairs[1:])} |")


if __name__ == "__main__":
    main()
