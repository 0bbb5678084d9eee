"""Streaming regression of a sine, editing one of its outputs, and the activations themselves."""

from typing import Any

from elephant_nn.experiments.constants import EDIT_NEIGHBOURHOOD
from elephant_nn.experiments.spec import Metric, Row, Search, Table
from elephant_nn.experiments.tables.choices import chosen

METHODS = "elephant_nn.experiments.methods"
PROBLEMS = "elephant_nn.experiments.problems"
LEARNING_RATES = (3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
SEARCH = Search(seeds=20)
LINES = {"relu": "orange", "sigmoid": "sky", "tanh": "green", "elu": "pink"}
PAPER = {
    "relu": (0.4729, 0.0110),
    "sigmoid": (0.4583, 0.0008),
    "tanh": (0.4461, 0.0013),
    "elu": (0.4521, 0.0019),
}


def _mlp(activation: str) -> Row:
    return Row(
        method=f"mlp-{activation}",
        title=f"MLP ({activation})",
        build=f"{METHODS}:sine_mlp",
        settings={"activation": activation, "E": 10, "neurons": 1000},
        grid={"lr": LEARNING_RATES},
        paper={"mse": PAPER[activation]},
        search=SEARCH,
        line=(LINES[activation], "-"),
    )


SINE = Table(
    name="sine",
    title="Streaming regression of a sine",
    source="Table 1, Figure 2",
    metrics=(Metric("mse", "test MSE", "lower"),),
    rows=chosen(
        "sine",
        (
            *map(_mlp, PAPER),
            Row(
                method="sr-nn",
                title="SR-NN",
                build=f"{METHODS}:sine_sr_nn",
                settings={"E": 10, "neurons": 1000},
                grid={
                    "activation": ("relu", "sigmoid", "tanh", "elu"),
                    "lr": LEARNING_RATES,
                    "lambda": (0.1, 0.01, 0.001),
                    "beta": (0.05, 0.1, 0.2),
                },
                paper={"mse": (0.4061, 0.0036)},
                search=SEARCH,
                variant="activation",
                compare_variants=True,
                pictured={"stages": 1},
                line=("red", "-"),
            ),
            Row(
                method="emlp",
                title="EMLP",
                build=f"{METHODS}:sine_emlp",
                settings={"d": 8, "E": 10, "neurons": 1000},
                grid={
                    "lr": LEARNING_RATES,
                    "a": (0.02, 0.04, 0.08, 0.16, 0.32),
                    "sigma_bias": (0.08, 0.16, 0.32, 0.64, 1.28),
                },
                paper={"mse": (0.0081, 0.0009)},
                search=SEARCH,
                pictured={"stages": 1},
                line=("blue", "-"),
            ),
        ),
    ),
    problem=f"{PROBLEMS}:sine",
    published_seeds=20,
    notes="The number of a run is the mean of its last five test errors.",
    figures=("sine_stages", "sine_curves"),
)

_SHARED: dict[str, Any] = {"lr": 3e-3, "edit_lr": 1e-3, "neurons": 1000}

EDIT = Table(
    name="edit",
    title="Editing one output: f(1.5) from -1 to -1.5",
    source="Figure 3",
    metrics=(
        Metric("error_before", "error at 1.5 before", "lower"),
        Metric("error_after", "after", "lower"),
        Metric("mean_change", "mean change outside", "lower"),
        Metric("max_change", "max change outside", "lower"),
    ),
    rows=(
        Row(
            method="mlp-relu",
            title="MLP (relu)",
            build=f"{METHODS}:sine_mlp",
            settings={**_SHARED, "activation": "relu", "edit_steps": 10},
        ),
        Row(
            method="emlp",
            title="EMLP",
            build=f"{METHODS}:sine_emlp",
            settings={**_SHARED, "a": 0.08, "sigma_bias": 1.28, "d": 8, "edit_steps": 50},
        ),
    ),
    problem=f"{PROBLEMS}:edit_sine",
    published_seeds=20,
    notes=f"Outside means farther than {EDIT_NEIGHBOURHOOD} from the edited input. The paper shows "
    "a figure of one run and gives no numbers.",
    figures=("edited",),
)


def _activation(name: str, value: float, slope: float, **settings: int) -> Row:
    return Row(
        method=name,
        title=name,
        build=f"{METHODS}:{name}",
        settings=settings,
        paper={"sparsity": (value, None), "slope_sparsity": (slope, None)},
    )


ACTIVATIONS = Table(
    name="activations",
    title="Sparsity of activation functions and of their slopes",
    source="Table 3, Figures 1 and 5",
    metrics=(
        Metric("sparsity", "function sparsity", "higher", digits=3),
        Metric("slope_sparsity", "slope sparsity", "higher", digits=3),
    ),
    rows=(
        _activation("relu", 0.5, 0.5),
        _activation("sigmoid", 0.5, 1.0),
        _activation("tanh", 0.0, 1.0),
        _activation("elu", 0.0, 0.5),
        _activation("elephant", 1.0, 1.0, d=8),
    ),
    problem=f"{PROBLEMS}:activations",
    seeds=1,
    notes="Measured on growing ranges at shrinking thresholds until the fraction stops changing; "
    "nothing is random.",
    figures=("elephant_functions", "classical_functions"),
)
