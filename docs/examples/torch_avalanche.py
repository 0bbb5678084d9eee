"""Avalanche's Split MNIST, five experiences of two classes, with an elephantized model.

Nothing special is needed: the model goes to Avalanche's strategy as any other. MNIST is the copy of
`elephant data fetch mnist`. Run: python docs/examples/torch_avalanche.py
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from avalanche.benchmarks.classic import SplitMNIST
from avalanche.training import Naive
from torch import nn

from elephant_nn.data.formats import to_idx
from elephant_nn.data.loading import load
from elephant_nn.torch import elephantize

RATES = {"ReLU": 1e-5, "elephant": 1e-5}


def mnist_folder():
    """The official files, where torchvision looks for them."""
    folder = Path(tempfile.mkdtemp())
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name, content in to_idx(load("mnist")):
        (raw / name).write_bytes(content)
    return folder


def run(name, benchmark, rate, experiences=5):
    """Accuracy on each experience after training on one after the other, once."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 10))
    if name == "elephant":
        first = benchmark.train_stream[0].dataset
        elephantize(model, torch.stack([first[i][0] for i in range(200)]))
    strategy = Naive(
        model=model, optimizer=torch.optim.RMSprop(model.parameters(), rate, alpha=0.999),
        criterion=nn.CrossEntropyLoss(), train_mb_size=125, train_epochs=1, eval_mb_size=1000,
        evaluator=None,
    )  # fmt: skip
    for experience in benchmark.train_stream[:experiences]:
        strategy.train(experience)
    model.eval()
    found = []
    for experience in benchmark.test_stream:
        data = experience.dataset
        x = torch.stack([data[i][0] for i in range(len(data))])
        y = torch.tensor([int(data[i][1]) for i in range(len(data))])
        with torch.no_grad():
            found.append(float((model(x).argmax(1) == y).float().mean()))
    return found


def main():
    benchmark = SplitMNIST(5, seed=0, dataset_root=mnist_folder())
    for name, rate in RATES.items():
        found = run(name, benchmark, rate)
        shown = " ".join(f"{value:.2f}" for value in found)
        print(f"{name}: accuracy by experience {shown}, mean {np.mean(found):.3f}", flush=True)


if __name__ == "__main__":
    main()
