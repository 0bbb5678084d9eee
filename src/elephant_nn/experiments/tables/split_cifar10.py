"""Split CIFAR10: Table 6 and one panel of Figure 6 of the paper."""

from elephant_nn.experiments.spec import Row, Search
from elephant_nn.experiments.tables import classes, ridge
from elephant_nn.experiments.tables.classes import COARSE, ELEPHANT, EWC, NARROW, RATES, WIDE, row
from elephant_nn.runs.cells import Axes

SHUFFLED_RATES = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6)

# FlyModel's authors report no raw pixels of CIFAR-10; both values that they use for MNIST are here.
FLY: Axes = {"lr": (0.001, 0.005, 0.01, 0.05), "per_unit": (32, 64, 128, 256)}


def _rows() -> list[Row]:
    return [
        row("mlp", "MLP", NARROW, RATES, paper=(0.151, 0.008), search=Search(2, finalists=4)),
        row(
            "mlp-ewc", "MLP + EWC", NARROW, EWC, paper=(0.158, 0.005), variant="anchor",
            coarse={**classes.FEW_PENALTIES, "lr": (3e-6, 1e-6, 3e-7), "E": (1, 2)},
            search=Search(1, coarse=True, finalists=4),
        ),
        row("flymodel", "FlyModel", NARROW, FLY, search=classes.ONE, evaluations=1),
        row(
            "emlp", "EMLP", {**NARROW, "d": 4}, ELEPHANT, paper=(0.197, 0.003), runs=20,
            coarse={"lr": (1e-6, 3e-7, 1e-7), "a": (0.04, 0.08, 0.16),
                    "sigma_bias": (0.16, 0.32, 0.64)},
            search=Search(2, coarse=True, finalists=4),
        ),
        row("cnn", "CNN", NARROW, RATES, paper=(0.151, 0.001), search=Search(1, finalists=3),
            runs=3),
        row(
            "cnn-ewc", "CNN + EWC", NARROW, EWC, paper=(0.147, 0.010), variant="anchor",
            coarse={**classes.FEW_PENALTIES, "lr": (3e-6, 1e-6, 3e-7), "E": (1, 2),
                    "gamma": (0.9,)},
            search=Search(1, coarse=True, finalists=6), runs=3,
        ),
        row(
            "ecnn", "ECNN", {**NARROW, "d": 4}, ELEPHANT, paper=(0.192, 0.004),
            coarse={"lr": (1e-7, 3e-8), "E": (1,), "a": (0.04, 0.08, 0.16),
                    "sigma_bias": (0.16, 0.32)},
            search=Search(1, coarse=True, finalists=3),
        ),
        *classes.mixers(1000, 125, (0.100, 0.0027), (0.100, 0.0001)),
        row(
            "mlp", "MLP", WIDE, RATES, paper=(0.173, 0.004),
            coarse={"lr": (3e-6, 1e-6, 3e-7, 1e-7)}, search=COARSE,
        ),
        row(
            "mlp-ewc", "MLP + EWC", WIDE, EWC, paper=(0.169, 0.003), variant="anchor",
            coarse={**classes.FEW_PENALTIES, "lr": (3e-6,)}, search=COARSE, runs=1,
        ),
        row("flymodel", "FlyModel", WIDE, FLY, search=classes.ONE, evaluations=1),
        row(
            "emlp", "EMLP", {**WIDE, "d": 4}, ELEPHANT, paper=(0.239, 0.002),
            coarse={"lr": (3e-7, 1e-7), "E": (1,), "a": (0.02, 0.04, 0.08),
                    "sigma_bias": (0.16, 0.32, 0.64)},
            search=COARSE,
        ),
        row(
            "cnn", "CNN", WIDE, RATES, paper=(0.151, 0.001),
            coarse={"lr": (3e-6, 1e-6, 3e-7), "E": (1,)}, search=COARSE, runs=1, evaluations=1,
        ),
        classes.wide_cnn_ewc((0.179, 0.007)),
        row(
            "ecnn", "ECNN", {**WIDE, "d": 4}, ELEPHANT, paper=(0.243, 0.002),
            coarse={"lr": (1e-7,), "E": (1,), "a": (0.02, 0.04), "sigma_bias": (0.16, 0.32)},
            search=COARSE, runs=2, evaluations=1,
        ),
        *classes.closing_rows((0.102, 0.0015), (0.100, 0.0001)),
        *ridge.of_pixels("split-cifar10", (1600, 10_000, 20_000), mirrored=20_000),
    ]  # fmt: skip


_ALL_ROWS = classes.with_shuffled("split-cifar10", _rows(), SHUFFLED_RATES, classes.ONE, runs=3)
SPLIT_CIFAR10 = classes.split_table(
    "split-cifar10",
    "Split CIFAR10, class-incremental",
    "Table 6, Figure 6",
    _ALL_ROWS,
    data="cifar10",
)
