"""What the points that the paper leaves open are worth, on Split MNIST with 1,000 units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from elephant_nn.experiments.spec import Entry, Experiment
from elephant_nn.experiments.split import mnist_program
from elephant_nn.experiments.split_mnist import SPLIT_MNIST
from elephant_nn.experiments.split_rows import CHOOSING, METRICS, Grid
from elephant_nn.runs.cells import Hyper

ORDERS = (1, 2, 3, 4, 5)
HEADS = {"fixed": 0.0, "10 times slower": 0.1, "10 times faster": 10.0}
"""Rates of the output layer, in parts of the hidden layer's."""

_STANDARD: dict[str, tuple[Hyper, Grid]] = {
    "mlp": ({"lr": 3e-6, "E": 1}, {"lr": (1e-5, 3e-6, 1e-6, 3e-7, 1e-7), "E": (1, 2)}),
    "emlp": (
        {"lr": 3e-6, "E": 1, "a": 0.32, "sigma_bias": 0.64},
        {
            "lr": (3e-6, 1e-6, 3e-7),
            "E": (1,),
            "a": (0.08, 0.16, 0.32),
            "sigma_bias": (0.04, 0.16, 0.64),
        },
    ),
    "cnn": ({"lr": 1e-7, "E": 1}, {"lr": (3e-7, 1e-7), "E": (1, 2)}),
    "ecnn": (
        {"lr": 1e-7, "E": 1, "a": 0.16, "sigma_bias": 0.16},
        {
            "lr": (3e-7, 1e-7),
            "E": (1,),
            "a": (0.16, 0.32),
            "sigma_bias": (0.04, 0.16, 0.64),
        },
    ),
}
"""Tuned settings and grid. Standardised pixels are three times as wide, and so is what the units
see."""

_BEYOND: dict[str, tuple[Hyper, Grid]] = {
    "mlp": ({}, {"lr": (3e-5, 1e-5, 3e-6, 1e-6), "E": (1, 2, 4)}),
    "emlp": (
        {"E": 2, "sigma_bias": 0.32},
        {
            "lr": (1e-5, 3e-6),
            "E": (1, 2),
            "a": (0.04, 0.08, 0.16),
            "sigma_bias": (0.04, 0.08, 0.16, 0.32),
        },
    ),
}
"""Past the edge of the paper's grid where both networks end; the MLP stays there."""

_NARROW_CNN: dict[str, tuple[Hyper, Grid]] = {
    "cnn": ({"lr": 3e-7}, {"lr": (1e-6, 3e-7), "E": (1, 2)}),
    "ecnn": (
        {"lr": 3e-7, "a": 0.04, "sigma_bias": 0.04},
        {
            "lr": (3e-7, 1e-7),
            "E": (1, 2),
            "a": (0.04, 0.08),
            "sigma_bias": (0.04, 0.16),
        },
    ),
}
"""With fewer inputs of the dense layer, a larger rate."""

_FINE: dict[str, tuple[Hyper, Grid]] = {
    "cnn": ({"lr": 5e-7, "E": 1}, {"lr": (5e-7, 2e-7), "E": (1, 2)}),
    "ecnn": (
        {"lr": 2e-7, "E": 1, "a": 0.08, "sigma_bias": 0.04},
        {"lr": (2e-7, 1.5e-7), "E": (1, 2), "a": (0.08,), "sigma_bias": (0.04, 0.08)},
    ),
}
"""Between the paper's rates, which are three times one another: CNNs are steeper than that."""


def _entries() -> list[Entry]:
    networks = {
        entry.method: entry
        for entry in SPLIT_MNIST.entries
        if entry.method in ("mlp", "emlp", "cnn", "ecnn") and entry.settings["neurons"] == 1000
    }

    def other(
        entry: Entry, what: str, protocol: Hyper, tuned: Mapping[str, tuple[Hyper, Grid]] = {}
    ) -> Entry:
        settings, grid = tuned.get(entry.method, ({}, {}))
        return replace(
            entry,
            title=f"{entry.title}, {what}",
            settings={**entry.settings, **protocol, **settings},
            grid=grid,
            coarse={},
            paper={},
        )

    rows = [
        row
        for entry in (networks["mlp"], networks["emlp"])
        for row in (
            other(entry, "as in the table", {}),
            other(entry, "batches across tasks", {"cut": "stream"}),
            *(other(entry, f"order of classes {seed}", {"class_order": seed}) for seed in ORDERS),
            *(other(entry, f"output layer {w}", {"head_rate": r}) for w, r in HEADS.items()),
            other(entry, "standardised pixels", {"scaling": "standard"}, _STANDARD),
            other(entry, "wider grid", {}, _BEYOND),
        )
    ]
    convolved = [
        row
        for entry in (networks["cnn"], networks["ecnn"])
        for row in (
            other(entry, "standardised pixels", {"scaling": "standard"}, _STANDARD),
            other(entry, "16 filters", {"filters": 16}, _NARROW_CNN),
            other(entry, "finer rates", {}, _FINE),
        )
    ]
    return rows + convolved


SPLIT_PROTOCOLS = Experiment(
    name="split-protocols",
    title="Split MNIST, other protocols",
    source="beyond the paper",
    metrics=METRICS,
    entries=tuple(_entries()),
    program=mnist_program,
    lanes=lambda cell: 1,
    notes=(
        "1,000 units. One thing at a time differs from the table of split-mnist; settings are the "
        "same but for the last two rows of MLP and EMLP and those of the CNNs, which have sweeps "
        "of their own. The output layer is slower or faster than the hidden one. Orders of classes "
        "are random permutations, named by their seed."
    ),
    data="mnist",
    choosing=CHOOSING,
)
