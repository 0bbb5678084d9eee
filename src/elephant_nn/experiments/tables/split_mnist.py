"""Split MNIST: Tables 2 and 5 and one panel of Figure 6 of the paper."""

from elephant_nn.experiments.spec import Row, Search
from elephant_nn.experiments.tables import classes, ridge
from elephant_nn.experiments.tables.classes import COARSE, ELEPHANT, EWC, NARROW, RATES, WIDE, row
from elephant_nn.runs.cells import Axes

SHUFFLED_RATES = (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6)

# The dense layer of the CNN has 16 times as many inputs as the MLP's, half as wide: smaller rates.
# At 1e-6 and 3e-6 no setting with a from 0.04 to 0.16 got beyond 0.28.
CNN_COARSE: Axes = {
    "lr": (3e-7, 1e-7), "a": (0.02, 0.04, 0.08, 0.16), "sigma_bias": (0.04, 0.08, 0.16),
}  # fmt: skip


def _rows() -> list[Row]:
    return [
        row("mlp", "MLP", NARROW, RATES, paper=(0.665, 0.014), search=Search(5), runs=20),
        row(
            "mlp-ewc", "MLP + EWC", NARROW, EWC, paper=(0.708, 0.008), variant="anchor", runs=20,
            coarse={"lr": (3e-6, 1e-6), "lambda": (1e1, 1e2, 1e3, 1e4, 1e5),
                    "gamma": (0.5, 0.9, 0.999)},
            search=Search(2, coarse=True, finalists=6),
        ),
        row(
            "sdmlp", "SDMLP", {**NARROW, "k": 1, "lr": 0.05, "passes": 500, "switch": 5e6},
            paper=(0.69, None), runs=1,
        ),
        classes.sdmlp_one_pass(125, (1e3, 3e3, 1e4, 3e4, 1e5), search=Search(1, finalists=3)),
        row(
            "flymodel", "FlyModel", {**NARROW, "lr": 0.005, "per_unit": 64},
            paper=(0.77, None), evaluations=1,
        ),
        row(
            "emlp", "EMLP", {**NARROW, "d": 4}, ELEPHANT, paper=(0.723, 0.006), runs=20,
            coarse={"lr": (3e-6, 1e-6), "a": (0.04, 0.08, 0.16, 0.32),
                    "sigma_bias": (0.04, 0.08, 0.16, 0.32)},
            search=Search(5, coarse=True, finalists=6),
        ),
        row("cnn", "CNN", NARROW, RATES, paper=(0.659, 0.016), search=classes.ONE),
        row(
            "cnn-ewc", "CNN + EWC", NARROW, EWC, paper=(0.716, 0.024), variant="anchor",
            coarse={**classes.FEW_PENALTIES, "lr": (3e-6, 1e-6, 3e-7)}, search=COARSE,
        ),
        row(
            "ecnn", "ECNN", {**NARROW, "d": 4}, ELEPHANT, paper=(0.732, 0.007), coarse=CNN_COARSE,
            search=Search(1, coarse=True, finalists=4),
        ),
        *classes.mixers(1000, 125, (0.110, 0.003), (0.105, 0.003)),
        row("mlp", "MLP", WIDE, RATES, paper=(0.621, 0.010), search=Search(1, finalists=4)),
        row(
            "mlp-ewc", "MLP + EWC", WIDE, EWC, paper=(0.609, 0.013), variant="anchor",
            coarse={**classes.FEW_PENALTIES, "lambda": (1e1, 1e3, 1e4, 1e5),
                    "gamma": (0.5, 0.9, 0.999)},
            search=Search(1, coarse=True, finalists=2),
        ),
        row(  # with the published 500 passes it would take eight hours
            "sdmlp", "SDMLP", {**WIDE, "k": 10, "lr": 0.05, "passes": 50, "switch": 5e5},
            paper=(0.53, None), runs=1,
        ),
        row(
            "flymodel", "FlyModel", {**WIDE, "lr": 0.01, "per_unit": 32},
            paper=(0.91, None), evaluations=1,
        ),
        row(
            "emlp", "EMLP", {**WIDE, "d": 4}, ELEPHANT, paper=(0.802, 0.002),
            coarse={"lr": (3e-6, 1e-6, 3e-7), "a": (0.04, 0.08, 0.16),
                    "sigma_bias": (0.16, 0.32, 0.64)},
            search=Search(1, coarse=True, finalists=6),
        ),
        row(
            "cnn", "CNN", WIDE, RATES, paper=(0.769, 0.011), coarse={"lr": (3e-7, 1e-7)},
            search=COARSE, runs=2, evaluations=1,
        ),
        classes.wide_cnn_ewc((0.780, 0.010)),
        row(
            "ecnn", "ECNN", {**WIDE, "d": 4}, ELEPHANT, paper=(0.850, 0.004),
            coarse={"lr": (3e-7, 1e-7), "E": (1,), "a": (0.02, 0.04),
                    "sigma_bias": (0.08, 0.16, 0.32)},
            search=COARSE, runs=4, evaluations=1,
        ),
        *classes.closing_rows((0.107, 0.003), (0.104, 0.003), ("nearest-mean", "naive-bayes")),
        *ridge.of_pixels("split-mnist", (1600, 10_000)),
    ]  # fmt: skip


SPLIT_MNIST = classes.split_table(
    "split-mnist", "Split MNIST, class-incremental", "Tables 2 and 5, Figure 6",
    classes.with_shuffled("split-mnist", _rows(), SHUFFLED_RATES, classes.ONE, runs=5),
    data="mnist",
)  # fmt: skip
