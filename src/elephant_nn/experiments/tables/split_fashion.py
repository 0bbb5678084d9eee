"""Split Fashion-MNIST: the protocol of Split MNIST on clothes, beyond the paper."""

from elephant_nn.experiments.spec import Row, Search
from elephant_nn.experiments.tables import classes, ridge
from elephant_nn.experiments.tables.choices import chosen
from elephant_nn.experiments.tables.classes import NARROW, ONE, RATES, row
from elephant_nn.runs.cells import Axes

# Around what was chosen on Split MNIST.
ELEPHANT: Axes = {"lr": (3e-6, 1e-6), "E": (1, 2), "a": (0.08, 0.16, 0.32),
                  "sigma_bias": (0.04, 0.16, 0.64)}  # fmt: skip


def _rows() -> list[Row]:
    search = Search(1, finalists=3)
    return [
        row("mlp", "MLP", NARROW, {**RATES, "lr": (1e-5, *RATES["lr"][:3])}, search=search),
        row("flymodel", "FlyModel", NARROW, {"lr": (0.005, 0.01, 0.05), "per_unit": (16, 32, 64)},
            search=ONE, evaluations=1),
        row("emlp", "EMLP", {**NARROW, "d": 4}, ELEPHANT, search=search),
        *classes.references(125, ONE),
        *ridge.of_pixels("split-fashion", (1600, 10_000)),
    ]  # fmt: skip


SPLIT_FASHION = classes.split_table(
    "split-fashion", "Split Fashion-MNIST, class-incremental", "not in the paper",
    chosen("split-fashion", _rows()), data="fashion-mnist",
)  # fmt: skip
