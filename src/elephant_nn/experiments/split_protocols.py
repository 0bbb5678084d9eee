"""What the points that the paper leaves open are worth, with 1,000 units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from elephant_nn.experiments.spec import Entry, Experiment
from elephant_nn.experiments.split import cifar10_program, mnist_program
from elephant_nn.experiments.split_cifar10 import SPLIT_CIFAR10
from elephant_nn.experiments.split_mnist import SPLIT_MNIST
from elephant_nn.experiments.split_rows import CHOOSING, METRICS, Grid
from elephant_nn.runs.cells import Hyper

ORDERS = (1, 2, 3, 4, 5)
HEADS = {"fixed": 0.0, "10 times slower": 0.1, "10 times faster": 10.0}
"""Rates of the output layer, in parts of the hidden layer's."""

Tuned = Mapping[str, tuple[Hyper, Grid]]
"""By method: settings that differ from the table's, and a grid to choose them from."""

_STANDARD: Tuned = {
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
    "cnn": ({"lr": 1e-7, "E": 2}, {"lr": (3e-7, 1e-7), "E": (1, 2)}),
    "ecnn": (
        {"lr": 1e-7, "E": 1, "a": 0.16, "sigma_bias": 0.04},
        {
            "lr": (3e-7, 1e-7),
            "E": (1,),
            "a": (0.16, 0.32),
            "sigma_bias": (0.04, 0.16, 0.64),
        },
    ),
}
"""Standardised pixels are three times as wide, and so is what the units see."""

_STANDARD_CIFAR: Tuned = {
    "mlp": ({"lr": 3e-6, "E": 1}, {"lr": (3e-5, 1e-5, 3e-6, 1e-6), "E": (1, 2)}),
    "emlp": (
        {"lr": 3e-6, "E": 1, "a": 0.32, "sigma_bias": 1.28},
        {
            "lr": (3e-6, 1e-6, 3e-7),
            "E": (1,),
            "a": (0.16, 0.32, 0.64),
            "sigma_bias": (0.32, 0.64, 1.28),
        },
    ),
}

_BEYOND: Tuned = {
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

_NARROW_CNN: Tuned = {
    "cnn": ({"lr": 1e-6, "E": 2}, {"lr": (3e-6, 1e-6, 3e-7), "E": (1, 2)}),
    "ecnn": (
        {"lr": 1e-6, "E": 1, "a": 0.04, "sigma_bias": 0.04},
        {"lr": (1e-6, 3e-7, 1e-7), "E": (1, 2), "a": (0.04, 0.08), "sigma_bias": (0.04,)},
    ),
}
"""With fewer inputs of the dense layer, a larger rate."""

_FINE: Tuned = {
    "cnn": ({"lr": 5e-7, "E": 1}, {"lr": (5e-7, 2e-7), "E": (1, 2)}),
    "ecnn": (
        {"lr": 1.5e-7, "E": 1, "a": 0.08, "sigma_bias": 0.04},
        {"lr": (2e-7, 1.5e-7), "E": (1, 2), "a": (0.08,), "sigma_bias": (0.04, 0.08)},
    ),
}
"""Between the paper's rates, which are three times one another: CNNs are steeper than that."""


def _networks(table: Experiment) -> dict[str, Entry]:
    return {
        entry.method: entry
        for entry in table.entries
        if entry.method in ("mlp", "emlp", "cnn", "ecnn") and entry.settings["neurons"] == 1000
    }


def _other(entry: Entry, what: str, protocol: Hyper, tuned: Tuned | None = None) -> Entry:
    settings, grid = (tuned or {}).get(entry.method, ({}, {}))
    return replace(
        entry,
        title=f"{entry.title}, {what}",
        settings={**entry.settings, **protocol, **settings},
        grid=grid,
        coarse={},
        paper={},
    )


def _orders(entry: Entry) -> list[Entry]:
    return [_other(entry, f"order of classes {seed}", {"class_order": seed}) for seed in ORDERS]


def _standard(entry: Entry, tuned: Tuned) -> Entry:
    return _other(entry, "standardised pixels", {"scaling": "standard"}, tuned)


def _mnist_entries() -> list[Entry]:
    networks = _networks(SPLIT_MNIST)
    rows = [
        row
        for entry in (networks["mlp"], networks["emlp"])
        for row in (
            _other(entry, "as in the table", {}),
            _other(entry, "batches across tasks", {"cut": "stream"}),
            *_orders(entry),
            *(_other(entry, f"output layer {w}", {"head_rate": r}) for w, r in HEADS.items()),
            _standard(entry, _STANDARD),
            _other(entry, "wider grid", {}, _BEYOND),
        )
    ]
    convolved = [
        row
        for entry in (networks["cnn"], networks["ecnn"])
        for row in (
            _standard(entry, _STANDARD),
            _other(entry, "16 filters", {"filters": 16}, _NARROW_CNN),
            _other(entry, "finer rates", {}, _FINE),
        )
    ]
    return rows + convolved


def _cifar_entries() -> list[Entry]:
    networks = _networks(SPLIT_CIFAR10)
    return [
        row
        for entry in (networks["mlp"], networks["emlp"])
        for row in (
            _other(entry, "as in the table", {}),
            *_orders(entry),
            _standard(entry, _STANDARD_CIFAR),
        )
    ]


SPLIT_PROTOCOLS = Experiment(
    name="split-protocols",
    title="Split MNIST, other protocols",
    source="beyond the paper",
    metrics=METRICS,
    entries=tuple(_mnist_entries()),
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

SPLIT_PROTOCOLS_CIFAR10 = Experiment(
    name="split-protocols-cifar10",
    title="Split CIFAR10, other protocols",
    source="beyond the paper",
    metrics=METRICS,
    entries=tuple(_cifar_entries()),
    program=cifar10_program,
    lanes=lambda cell: 1,
    notes=(
        "1,000 units. One thing at a time differs from the table of split-cifar10; settings are "
        "the same but for standardised pixels, which have a sweep of their own. Orders of classes "
        "are random permutations, named by their seed."
    ),
    data="cifar10",
    choosing=CHOOSING,
)
