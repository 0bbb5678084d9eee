"""A training step of a network with the elephant against the same with ReLU, in PyTorch.

Processor time of one thread, which other processes hardly change.
"""

import time
from collections.abc import Callable
from statistics import median

import torch
from torch import nn
from torch.nn import functional

from benchmarks.table import Measurement
from elephant_nn.torch import Elephant

ROUNDS, SIZES = 300, (784, 1000, 10)
BATCHES = (32, 128)


class ReLU(nn.Module):
    """The function itself: `nn.ReLU` has a little more Python around it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


def measure() -> list[Measurement]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [
            _line(batch, name, optimiser)
            for batch in BATCHES
            for name, optimiser in (("Adam", torch.optim.Adam), ("SGD", torch.optim.SGD))
        ]
    finally:
        torch.set_num_threads(threads)


def _line(batch: int, name: str, optimiser: type[torch.optim.Optimizer]) -> Measurement:
    steps = [step(act, batch, optimiser) for act in (Elephant(0.1), ReLU())]
    ours, other = interleaved(*steps)
    return Measurement(
        f"PyTorch: step of {'-'.join(map(str, SIZES))}, batch {batch}, {name}, elephant",
        f"{ours * 1e3:.2f} ms",
        f"the same with torch.relu, {other * 1e3:.2f} ms",
        ours / other,
        "<= 1.1",
    )


def step(
    activation: nn.Module, batch: int, optimiser: type[torch.optim.Optimizer]
) -> Callable[[], None]:
    """One step of a network on random images."""
    torch.manual_seed(0)
    inputs, units, classes = SIZES
    model = nn.Sequential(nn.Linear(inputs, units), activation, nn.Linear(units, classes))
    steps = optimiser(model.parameters(), lr=1e-4)  # type: ignore[call-arg]
    x, y = torch.rand(batch, inputs), torch.randint(0, classes, (batch,))

    def run() -> None:
        steps.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        steps.step()

    return run


def interleaved(first: Callable[[], None], second: Callable[[], None]) -> tuple[float, float]:
    """Median processor seconds of two functions called in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for i in range(ROUNDS + 5):
        for function, taken in zip((first, second), times, strict=True):
            started = time.thread_time()
            function()
            if i >= 5:
                taken.append(time.thread_time() - started)
    return median(times[0]), median(times[1])
