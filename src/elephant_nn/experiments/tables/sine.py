"""Streaming regression of a sine, editing one of its outputs, and the activations themselves."""

from typing import Any

from elephant_nn.experiments.constants import EDIT_NEIGHBOURHOOD
from elephant_nn.experiments.spec import Metric, Row, Search, Table
from elephant_nn.experiments.tables.choices import METHODS, PROBLEMS, chosen

LEARNING_RATES = (3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
SEARCH = Search(seeds=20)
LINES = {"relu": "orange", "sigmoid": "sky", "tanh": "green", "elu": "pink"}
PAPER = {
    "relu": (0.4729, 0.0110), "sigmoid": (0.4583, 0.0008),
    "tanh": (0.4461, 0.0013), "elu": (0.4521, 0.0019),
}  # fmt: skip


def _mlp(activation: str) -> Row:
    return Row(
        f"mlp-{activation}", f"MLP ({activation})", f"{METHODS}:sine_mlp",
        {"activation": activation, "E": 10, "neurons": 1000}, {"lr": LEARNING_RATES},
        paper={"mse": PAPER[activation]}, search=SEARCH, line=(LINES[activation], "-"),
    )  # fmt: skip


_SR_NN = Row(
    "sr-nn", "SR-NN", f"{METHODS}:sine_sr_nn", {"E": 10, "neurons": 1000},
    grid={
        "activation": ("relu", "sigmoid", "tanh", "elu"),
        "lr": LEARNING_RATES,
        "lambda": (0.1, 0.01, 0.001),
        "beta": (0.05, 0.1, 0.2),
    },
    paper={"mse": (0.4061, 0.0036)}, search=SEARCH, variant="activation", compare_variants=True,
    pictured={"stages": 1}, line=("red", "-"),
)  # fmt: skip
_EMLP = Row(
    "emlp", "EMLP", f"{METHODS}:sine_emlp", {"d": 8, "E": 10, "neurons": 1000},
    grid={
        "lr": LEARNING_RATES,
        "a": (0.02, 0.04, 0.08, 0.16, 0.32),
        "sigma_bias": (0.08, 0.16, 0.32, 0.64, 1.28),
    },
    paper={"mse": (0.0081, 0.0009)}, search=SEARCH, pictured={"stages": 1}, line=("blue", "-"),
)  # fmt: skip
_RIDGE = Row(
    "ridge-head", "ridge head, elephant", f"{METHODS}:sine_ridge",
    {"d": 8, "neurons": 1000, "ridge": 1e-4},
    grid={"a": (0.08, 0.32), "sigma_bias": (0.32, 1.28)},
    search=Search(seeds=1), line=("black", "--"), drawn=False, runs=5,
)  # fmt: skip


SINE = Table(
    "sine", "Streaming regression of a sine", "Table 1, Figure 2",
    metrics=(Metric("mse", "test MSE", "lower"),),
    rows=chosen("sine", (*map(_mlp, PAPER), _SR_NN, _EMLP, _RIDGE)),
    problem=f"{PROBLEMS}:sine",
    published_seeds=20,
    notes="The number of a run is the mean of its last five test errors. The ridge head is not in "
    "the paper: it solves the output layer over the same units, which do not learn.",
    figures=("sine_stages", "sine_curves"),
)  # fmt: skip

_SHARED: dict[str, Any] = {"lr": 3e-3, "edit_lr": 1e-3, "neurons": 1000}

EDIT = Table(
    "edit", "Editing one output: f(1.5) from -1 to -1.5", "Figure 3",
    metrics=(
        Metric("error_before", "error at 1.5 before", "lower"),
        Metric("error_after", "after", "lower"),
        *(Metric(f"{m}_change", f"{m} change outside", "lower") for m in ("mean", "max")),
    ),
    rows=(
        Row("mlp-relu", "MLP (relu)", f"{METHODS}:sine_mlp",
            {**_SHARED, "activation": "relu", "edit_steps": 10}),
        Row("emlp", "EMLP", f"{METHODS}:sine_emlp",
            {**_SHARED, "a": 0.08, "sigma_bias": 1.28, "d": 8, "edit_steps": 50}),
    ),
    problem=f"{PROBLEMS}:edit_sine",
    published_seeds=20,
    notes=f"Outside means farther than {EDIT_NEIGHBOURHOOD} from the edited input. The paper shows "
    "a figure of one run and gives no numbers.",
    figures=("edited",),
)  # fmt: skip


def _activation(name: str, value: float, slope: float, **settings: int) -> Row:
    paper = {"sparsity": (value, None), "slope_sparsity": (slope, None)}
    return Row(name, name, f"{METHODS}:{name}", settings, paper=paper)


ACTIVATIONS = Table(
    "activations", "Sparsity of activation functions and of their slopes",
    "Table 3, Figures 1 and 5",
    metrics=(
        Metric("sparsity", "function sparsity", "higher", digits=3),
        Metric("slope_sparsity", "slope sparsity", "higher", digits=3),
    ),
    rows=(
        _activation("relu", 0.5, 0.5), _activation("sigmoid", 0.5, 1.0),
        _activation("tanh", 0.0, 1.0), _activation("elu", 0.0, 0.5),
        _activation("elephant", 1.0, 1.0, d=8),
    ),
    problem=f"{PROBLEMS}:activations",
    seeds=1,
    notes="Measured on growing ranges at shrinking thresholds until the fraction stops changing; "
    "nothing is random.",
    figures=("elephant_functions", "classical_functions"),
)  # fmt: skip
