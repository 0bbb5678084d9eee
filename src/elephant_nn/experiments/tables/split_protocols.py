"""What the points that the paper leaves open are worth, with 1,000 units."""

from collections.abc import Mapping
from dataclasses import replace

from elephant_nn.experiments.spec import Row, Search, Table
from elephant_nn.experiments.tables.choices import chosen
from elephant_nn.experiments.tables.split_cifar10 import SPLIT_CIFAR10
from elephant_nn.experiments.tables.split_mnist import SPLIT_MNIST
from elephant_nn.runs.cells import Axes, Hyper

ORDERS = (1, 2, 3, 4, 5)
HEADS = {"fixed": 0.0, "10 times slower": 0.1, "10 times faster": 10.0}
"""Rates of the output layer, relative to the hidden layer's."""

MLP_SEARCH = Search(seeds=2, finalists=3)
CNN_SEARCH = Search(seeds=1)

# Standardised pixels are three times as wide, and so are the inputs of the units.
STANDARDISED: Mapping[str, Axes] = {
    "mlp": {"lr": (1e-5, 3e-6, 1e-6, 3e-7, 1e-7), "E": (1, 2)},
    "emlp": {"lr": (3e-6, 1e-6, 3e-7), "E": (1,),
             "a": (0.08, 0.16, 0.32), "sigma_bias": (0.04, 0.16, 0.64)},
    "cnn": {"lr": (3e-7, 1e-7), "E": (1, 2)},
    "ecnn": {"lr": (3e-7, 1e-7), "E": (1,), "a": (0.16, 0.32), "sigma_bias": (0.04, 0.16, 0.64)},
}  # fmt: skip
STANDARDISED_CIFAR10: Mapping[str, Axes] = {
    "mlp": {"lr": (3e-5, 1e-5, 3e-6, 1e-6), "E": (1, 2)},
    "emlp": {"lr": (3e-6, 1e-6, 3e-7), "E": (1,),
             "a": (0.16, 0.32, 0.64), "sigma_bias": (0.32, 0.64, 1.28)},
}  # fmt: skip
# Beyond the edge of the paper's grid where both networks end; the MLP stays there.
WIDER: Mapping[str, Axes] = {
    "mlp": {"lr": (3e-5, 1e-5, 3e-6, 1e-6), "E": (1, 2, 4)},
    "emlp": {"lr": (1e-5, 3e-6), "E": (1, 2),
             "a": (0.04, 0.08, 0.16), "sigma_bias": (0.04, 0.08, 0.16, 0.32)},
}  # fmt: skip
# With fewer inputs of the dense layer, a larger rate.
FEWER_FILTERS: Mapping[str, Axes] = {
    "cnn": {"lr": (3e-6, 1e-6, 3e-7), "E": (1, 2)},
    "ecnn": {"lr": (1e-6, 3e-7, 1e-7), "E": (1, 2), "a": (0.04, 0.08), "sigma_bias": (0.04,)},
}
# Between the paper's rates, which are three times one another: that is too coarse for CNNs.
FINER: Mapping[str, Axes] = {
    "cnn": {"lr": (5e-7, 2e-7), "E": (1, 2)},
    "ecnn": {"lr": (2e-7, 1.5e-7), "E": (1, 2), "a": (0.08,), "sigma_bias": (0.04, 0.08)},
}


def _networks(table: Table, methods: tuple[str, ...]) -> list[Row]:
    narrow = {row.method: row for row in table.rows if row.settings.get("neurons") == 1000}
    return [narrow[method] for method in methods]


def other(
    base: Row, what: str, protocol: Hyper, axes: Axes | None = None, search: Search | None = None
) -> Row:
    """A row of the table with other rules, and a grid of its own if it has one."""
    return replace(
        base, title=f"{base.title}, {what}", settings={**base.settings, **protocol},
        grid=axes or {}, coarse={}, paper={}, search=search, runs=None, chosen=False,
    )  # fmt: skip


def _orders(base: Row) -> list[Row]:
    return [other(base, f"order of classes {seed}", {"class_order": seed}) for seed in ORDERS]


def _standardised(base: Row, axes: Mapping[str, Axes], search: Search) -> Row:
    protocol = {"scaling": "standard"}
    return other(base, "standardised pixels", protocol, axes[base.method], search)


def _mnist_rows() -> list[Row]:
    dense = [
        row
        for base in _networks(SPLIT_MNIST, ("mlp", "emlp"))
        for row in (
            other(base, "as in the table", {}),
            other(base, "batches across tasks", {"cut": "stream"}),
            *_orders(base),
            *(other(base, f"output layer {w}", {"head_rate": r}) for w, r in HEADS.items()),
            _standardised(base, STANDARDISED, MLP_SEARCH),
            other(base, "wider grid", {}, WIDER[base.method], MLP_SEARCH),
        )
    ]
    convolutional = [
        replace(row, runs=2)
        for base in _networks(SPLIT_MNIST, ("cnn", "ecnn"))
        for row in (
            _standardised(base, STANDARDISED, CNN_SEARCH),
            other(base, "16 filters", {"filters": 16}, FEWER_FILTERS[base.method], CNN_SEARCH),
            other(base, "finer rates", {}, FINER[base.method], CNN_SEARCH),
        )
    ]
    return dense + convolutional


def _cifar10_rows() -> list[Row]:
    return [
        replace(row, runs=3 if base.method == "emlp" else 2)
        for base in _networks(SPLIT_CIFAR10, ("mlp", "emlp"))
        for row in (
            other(base, "as in the table", {}),
            *_orders(base),
            _standardised(base, STANDARDISED_CIFAR10, MLP_SEARCH),
        )
    ]


_NOTES = (
    "1,000 units. One thing at a time differs from the table of {}; settings are the same but for "
    "{}, which have sweeps of their own. {}Orders of classes are random permutations, named by "
    "their seed."
)


def _table(base: Table, name: str, title: str, rows: list[Row], swept: str, more: str) -> Table:
    return replace(
        base, name=name, title=title, source="beyond the paper", rows=chosen(name, rows),
        notes=_NOTES.format(base.name, swept, more), columns=(), test_metric=None, figures=(),
    )  # fmt: skip


SPLIT_PROTOCOLS = _table(
    SPLIT_MNIST, "split-protocols", "Split MNIST, other protocols", _mnist_rows(),
    "the last two rows of MLP and EMLP and those of the CNNs",
    "The output layer is slower or faster than the hidden one. ",
)  # fmt: skip
SPLIT_PROTOCOLS_CIFAR10 = _table(
    SPLIT_CIFAR10, "split-protocols-cifar10", "Split CIFAR10, other protocols", _cifar10_rows(),
    "rows with standardised pixels", "",
)  # fmt: skip
