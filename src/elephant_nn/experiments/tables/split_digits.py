"""Split digits: the 8x8 digits of scikit-learn; no download, and small enough for whole grids."""

from dataclasses import replace

from elephant_nn.experiments.spec import Row, Search
from elephant_nn.experiments.tables import classes
from elephant_nn.experiments.tables.classes import PENALTIES, SHAPES, row
from elephant_nn.runs.cells import Axes, Hyper

SETTINGS: Hyper = {"neurons": 1000, "batch": 10}
SEARCH = Search(seeds=5)
SHUFFLED_RATES = (1e-3, 3e-4, 1e-4, 3e-5)

# Small changes of the best rates of ReLU networks cost much, so the grid is finer than the paper's.
RATES: Axes = {"lr": (3e-4, 1e-4, 5e-5, 3e-5, 2e-5, 1e-5, 3e-6), "E": (1, 2)}
CNN_RATES: Axes = {"lr": (1e-4, 3e-5, 1e-5, 5e-6, 3e-6, 2e-6, 1e-6, 3e-7), "E": (1, 2)}


def _standardised() -> list[Row]:
    """Every pixel with mean 0 and standard deviation 1: what scaling is worth. The inputs of the
    units are several times as wide as with pixels in [0, 1], and so are the shapes in the grid."""
    settings: Hyper = {**SETTINGS, "scaling": "features"}
    shapes: Axes = {"a": (0.16, 0.32, 0.64, 1.28), "sigma_bias": (0.08, 0.32, 0.64, 1.28, 2.56)}
    title = "{}, standardised pixels"
    rows = [
        row("mlp", title.format("MLP"), settings, RATES, search=SEARCH),
        row("emlp", title.format("EMLP"), {**settings, "d": 4}, {**RATES, **shapes}, search=SEARCH),
    ]
    return [replace(one, line=(one.line[0], "-.")) for one in rows if one.line]


def _rows() -> list[Row]:
    return [
        row("mlp", "MLP", SETTINGS, RATES, search=SEARCH),
        row(
            "mlp-ewc", "MLP + EWC", SETTINGS, {**RATES, **PENALTIES}, variant="anchor",
            coarse={"lr": (1e-4, 5e-5, 3e-5, 2e-5), "lambda": (1e1, 1e3, 1e5),
                    "gamma": (0.5, 0.9, 0.999)},
            search=Search(5, coarse=True),
        ),
        row(
            "sdmlp", "SDMLP", {**SETTINGS, "passes": 20},
            {"k": (1, 3, 10, 30), "switch": (3e2, 1e3, 3e3, 1e4, 3e4),
             "lr": (0.05, 0.2, 0.5, 1.0, 2.0)},
            search=SEARCH,
        ),
        classes.sdmlp_one_pass(10, (1e2, 3e2, 1e3, 3e3), search=SEARCH),
        row(
            "flymodel", "FlyModel", SETTINGS,
            {"lr": (0.005, 0.01, 0.05, 0.2), "per_unit": (4, 8, 16, 32)},
            search=SEARCH, evaluations=1,
        ),
        row("emlp", "EMLP", {**SETTINGS, "d": 4}, {**RATES, **SHAPES}, search=SEARCH),
        row("cnn", "CNN", SETTINGS, CNN_RATES, search=SEARCH),
        row("ecnn", "ECNN", {**SETTINGS, "d": 4}, {**CNN_RATES, **SHAPES}, search=SEARCH),
        *classes.references(10, SEARCH),
        classes.online_ewc(10, RATES, search=SEARCH),
        *_standardised(),
    ]  # fmt: skip


SPLIT_DIGITS = classes.split_table(
    "split-digits", "Split digits (8x8, built in), class-incremental",
    "not in the paper; no download",
    classes.with_shuffled("split-digits", _rows(), SHUFFLED_RATES, SEARCH),
    published_seeds=20, defaults={"batch": 10}, choosing={"held_out": 10},
)  # fmt: skip
