"""A user's CNN knows eight classes of Fashion-MNIST and learns two new ones, without old images.

ReLU, the elephant in the last hidden layer, and each with a ridge head; learning rates are chosen
on held-out images with another seed. Run: python docs/examples/torch_new_classes.py
"""

import copy
import sys
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from elephant_nn.data.loading import load
from elephant_nn.torch import RidgeHead, Watch, elephantize

SEEDS, TUNING_SEED = range(3), 100
RATES = (1.5e-5, 2.5e-5, 4e-5, 6e-5, 1e-4)
OLD, NEW = range(8), (8, 9)  # bags and ankle boots are new
OLD_IMAGES, NEW_IMAGES, HELD_OUT, TESTED = 4_000, 2_000, 2_000, 2_000
EPOCHS, BATCH, EVERY = 3, 10, 50
FIGURE = Path("docs/results/pytorch/new-classes.png")


class CNN(nn.Module):
    """A model as people write it."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm = nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.fc1, self.fc2 = nn.Linear(16 * 25, 1000), nn.Linear(1000, 10)

    def forward(self, x):
        x = functional.max_pool2d(torch.relu(self.norm(self.conv1(x))), 2)
        x = functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def arrays():
    data = load("fashion-mnist")
    images = lambda x: torch.tensor(np.asarray(x), dtype=torch.float32).permute(0, 3, 1, 2) / 255
    labels = lambda y: torch.tensor(np.asarray(y), dtype=torch.int64)
    return images(data.x_train), labels(data.y_train), images(data.x_test), labels(data.y_test)


def pick(y, classes, n, seed):
    rows = torch.isin(y, torch.tensor(classes)).nonzero()[:, 0]
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    return rows[order[:n]]


def trained(name, x, y, seed):
    """The model after it learned the old classes, in several epochs."""
    torch.manual_seed(seed)
    model = CNN()
    if name == "elephant":
        model, report = elephantize(model, x[:500])
        if seed == TUNING_SEED:
            print(report, flush=True)
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(100):
            step(model, optimiser, x[rows], y[rows])
    return model


def step(model, optimiser, x, y):
    optimiser.zero_grad()
    functional.cross_entropy(model(x), y).backward()
    optimiser.step()


def loader(x, y, classes):
    keep = torch.isin(y, torch.tensor(classes))
    return DataLoader(TensorDataset(x[keep], y[keep]), 1000)


def learn_new(model, x, y, test, rate, every=None):
    """One pass over the new classes in batches of ten.

    The convolutions stay as they are, and so does the output bias, which all inputs share.
    """
    model = copy.deepcopy(model).requires_grad_(False)
    model.fc1.requires_grad_(True)
    model.fc2.weight.requires_grad_(True)
    watch = Watch(model, loader(*test, OLD), loader(*test, NEW))
    watch.measure(0)
    optimiser = torch.optim.Adam([*model.fc1.parameters(), model.fc2.weight], rate)
    batches = list(zip(x.split(BATCH), y.split(BATCH), strict=True))
    model.eval()
    for i, (xs, ys) in enumerate(batches, 1):
        step(model, optimiser, xs, ys)
        if i == len(batches) or (every and i % every == 0):
            watch.measure(i * BATCH)
    return watch.report()


def learn_new_by_ridge(model, old, new, test):
    """The same with a ridge head, which saw the old images once, before, and keeps sums."""
    features = copy.deepcopy(model)
    features.fc2 = nn.Identity()
    head = RidgeHead(features, 10).partial_fit(*old)
    watch = Watch(head, loader(*test, OLD), loader(*test, NEW))
    watch.measure(0)
    for i, rows in enumerate(torch.arange(len(new[0])).split(EVERY * BATCH), 1):
        head.partial_fit(new[0][rows], new[1][rows])
        watch.measure(min(i * EVERY * BATCH, len(new[0])))
    return watch.report()


def overall(report):
    """Accuracy over all ten classes, which have equally many test images."""
    return report.values @ np.array([len(OLD), len(NEW)]) / 10


def main():
    x, y, test_x, test_y = arrays()
    held_out = (x[-HELD_OUT:], y[-HELD_OUT:])
    x, y = x[:-HELD_OUT], y[:-HELD_OUT]
    names, reports, rates = ("ReLU", "elephant"), {}, {}
    for seed in (TUNING_SEED, *SEEDS):
        old, new = pick(y, OLD, OLD_IMAGES, seed), pick(y, NEW, NEW_IMAGES, seed)
        for name in names:
            model = trained(name, x[old], y[old], seed)
            if seed == TUNING_SEED:
                found = [
                    overall(learn_new(model, x[new], y[new], held_out, rate))[-1] for rate in RATES
                ]
                rates[name] = RATES[int(np.argmax(found))]
                print(name, dict(zip(RATES, np.round(found, 3).tolist(), strict=True)), flush=True)
                continue
            test, now = (test_x[:TESTED], test_y[:TESTED]), (x[new], y[new])
            runs = {
                name: learn_new(model, *now, test, rates[name], EVERY),
                f"{name} + ridge head": learn_new_by_ridge(model, (x[old], y[old]), now, test),
            }
            for method, report in runs.items():
                reports.setdefault(method, []).append(report)
            print(
                seed, {m: np.round(r.values[-1], 3).tolist() for m, r in runs.items()}, flush=True
            )
    print(table(reports, rates))
    draw(reports)


def table(reports, rates):
    mean = lambda values: (
        f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}"
    )
    lines = [
        "| model | learning rate | old before | old after | new classes | all ten |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for method, found in reports.items():
        columns = (
            [r.values[0, 0] for r in found], [r.values[-1, 0] for r in found],
            [r.values[-1, 1] for r in found], [overall(r)[-1] for r in found],
        )  # fmt: skip
        rate = f"{rates[method]:g}" if method in rates else ""
        lines.append(f"| {method} | {rate} | {' | '.join(map(mean, columns))} |")
    return "\n".join(lines)


def draw(reports):
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    colours = dict(zip(reports, ("#000000", "#999999", "#D55E00", "#0072B2"), strict=False))
    for ax, column, title in zip(axes, (0, 1), ("old classes", "new classes"), strict=True):
        for method, found in reports.items():
            curves = np.array([report.values[:, column] for report in found])
            mean, error = curves.mean(0), curves.std(0, ddof=1) / np.sqrt(len(curves))
            ax.plot(found[0].steps, mean, color=colours[method], label=method)
            ax.fill_between(
                found[0].steps, mean - error, mean + error, color=colours[method], alpha=0.2, lw=0
            )
        ax.set(title=title, xlabel="new images seen", ylim=(0, 1))
        ax.grid(color="#E5E5E5", linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("test accuracy")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=110)


if __name__ == "__main__":
    sys.exit(main())
