"""Tables 2, 5 and 6 and Figure 6 of the paper: Split MNIST and Split CIFAR10, and digits.

The grids are the paper's. The tuned settings are what `elephant sweep` chose on training data kept
back and on seeds that no table reports; docs/classes.md says which grids were run whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from elephant_nn.experiments.spec import Entry, Experiment, Metric
from elephant_nn.experiments.split import cifar10_program, digits_program, mnist_program
from elephant_nn.runs.cells import Hyper, Value

Grid = Mapping[str, tuple[Value, ...]]
Paper = tuple[float, float | None]

RATES: Grid = {"lr": (3e-6, 1e-6, 3e-7, 1e-7, 3e-8, 1e-8), "E": (1, 2)}
SHAPES: Grid = {"a": (0.02, 0.04, 0.08, 0.16, 0.32), "sigma_bias": (0.04, 0.08, 0.16, 0.32, 0.64)}
SPRINGS: Grid = {
    "anchor": ("fisher", "average", "previous"),
    "lambda": (1e1, 1e2, 1e3, 1e4, 1e5),
    "gamma": (0.5, 0.8, 0.9, 0.95, 0.99, 0.999),
}
"""The paper's grid, with the anchor that it does not describe as one more axis."""

METRICS = (
    Metric("accuracy", "test accuracy", "higher", 3),
    Metric("forgetting", "forgetting", "lower", 3),
    Metric("learning_accuracy", "learning accuracy", "higher", 3, detail=True),
    Metric("backward_transfer", "backward transfer", "higher", 3, detail=True),
)
CHOOSING: Hyper = {"held_out": 50}
"""Keep back every 50th sample: not more, because the best rate depends on the stream's length."""

COLUMNS = ("neurons", "passes", "task_boundary", "class_statistics")


class Rows:
    """Builds the rows of one table: what all of them share is said once."""

    def __init__(self, batch: int):
        self.batch = batch

    def entry(
        self,
        method: str,
        title: str,
        settings: Hyper,
        grid: Grid | None = None,
        coarse: Grid | None = None,
        paper: Paper | None = None,
        **more: Any,
    ) -> Entry:
        return Entry(
            method,
            title,
            {**settings, "batch": self.batch},
            grid or {},
            {"accuracy": paper} if paper else {},
            coarse=coarse or {},
            **more,
        )

    def plain(
        self, method: str, title: str, neurons: int, lr: float, updates: int, **kw: Any
    ) -> Entry:
        """A ReLU network."""
        settings = {"neurons": neurons, "lr": lr, "E": updates}
        return self.entry(method, title, settings, RATES, **kw)

    def elephant(
        self, method: str, title: str, neurons: int, lr: float, updates: int, a: float,
        sigma_bias: float, **kw: Any,
    ) -> Entry:  # fmt: skip
        """An elephant twin, d = 4."""
        settings: Hyper = {
            "neurons": neurons, "lr": lr, "E": updates, "a": a, "sigma_bias": sigma_bias, "d": 4,
        }  # fmt: skip
        return self.entry(method, title, settings, {**RATES, **SHAPES}, **kw)

    def spring(
        self, method: str, title: str, neurons: int, lr: float, updates: int, anchor: str,
        weight: float, decay: float, **kw: Any,
    ) -> Entry:  # fmt: skip
        """A ReLU network with Streaming EWC."""
        settings: Hyper = {
            "neurons": neurons, "lr": lr, "E": updates, "anchor": anchor, "lambda": weight,
            "gamma": decay,
        }  # fmt: skip
        return self.entry(method, title, settings, {**SPRINGS, **RATES}, variant="anchor", **kw)

    def features(self, method: str, title: str, neurons: int, a: float, sigma_bias: float) -> Entry:
        """A classifier of class statistics over random elephant features."""
        settings = {"neurons": neurons, "a": a, "sigma_bias": sigma_bias, "d": 4}
        return self.entry(f"{method}/elephant", title, settings, SHAPES)


Shape = tuple[float, float]


def references(rows: Rows, features: Mapping[tuple[str, int], Shape]) -> list[Entry]:
    """What a number is worth: rows that the paper lacks.

    `features`: by classifier and width, a and sigma_bias of the random elephant features under it.
    """
    titles = {"nearest-mean": "nearest mean", "naive-bayes": "naive Bayes", "lda": "LDA"}
    return [
        rows.entry("chance", "untrained (chance)", {"neurons": 1000}),
        rows.entry("nearest-mean", "nearest mean, pixels", {}),
        rows.entry("lda", "LDA, pixels", {}),
        *(
            rows.features(method, f"{titles[method]}, elephant", neurons, a, sigma_bias)
            for (method, neurons), (a, sigma_bias) in features.items()
        ),
    ]


def shuffled(entry: Entry, lr: float, rates: tuple[float, ...]) -> Entry:
    """The same network with the whole stream shuffled: what it can learn in one pass at all."""
    settings = {**entry.settings, "order": "shuffled", "lr": lr}
    title = f"{entry.title}, shuffled"
    return Entry(f"{entry.method}/shuffled", title, settings, {"lr": rates})


_mnist = Rows(125)
_MNIST_COARSE_1K: Grid = {
    "lr": (3e-6, 1e-6),
    "a": (0.04, 0.08, 0.16, 0.32),
    "sigma_bias": (0.04, 0.08, 0.16, 0.32),
}
_MNIST_COARSE_10K: Grid = {
    "lr": (3e-6, 1e-6, 3e-7),
    "a": (0.08, 0.16),
    "sigma_bias": (0.16, 0.32, 0.64),
}
_SPRINGS_COARSE: Grid = {
    "lr": (3e-6, 1e-6),
    "lambda": (1e1, 1e2, 1e3, 1e4, 1e5),
    "gamma": (0.5, 0.9, 0.999),
}
_SPRINGS_FEW: Grid = {
    "anchor": ("fisher", "previous"),
    "lr": (3e-6, 1e-6),
    "lambda": (1e1, 1e3, 1e5),
    "gamma": (0.9, 0.999),
}
_CNN_COARSE: Grid = {
    "lr": (1e-6, 3e-7),
    "a": (0.08, 0.16),
    "sigma_bias": (0.08, 0.16, 0.32),
}


def _mnist_entries() -> tuple[Entry, ...]:
    new = _mnist
    mlp = new.plain("mlp", "MLP", 1000, 3e-6, 2, paper=(0.665, 0.014))
    wide_mlp = new.plain("mlp", "MLP", 10000, 1e-6, 2, paper=(0.621, 0.010))
    emlp = new.elephant(
        "emlp", "EMLP", 1000, 3e-6, 1, 0.08, 0.04, coarse=_MNIST_COARSE_1K, paper=(0.723, 0.006)
    )
    wide_emlp = new.elephant(
        "emlp", "EMLP", 10000, 1e-6, 2, 0.08, 0.32, coarse=_MNIST_COARSE_10K, paper=(0.802, 0.002)
    )
    return (
        mlp,
        new.spring(
            "mlp-ewc", "MLP + EWC", 1000, 3e-6, 2, "average", 1e1, 0.999,
            coarse=_SPRINGS_COARSE, paper=(0.708, 0.008),
        ),
        new.entry(
            "sdmlp", "SDMLP", {"neurons": 1000, "k": 1, "lr": 0.05, "passes": 500, "switch": 5e6},
            paper=(0.69, None),
        ),
        new.entry(
            "flymodel", "FlyModel", {"neurons": 1000, "lr": 0.005, "per_unit": 64},
            paper=(0.77, None),
        ),
        emlp,
        new.plain("cnn", "CNN", 1000, 1e-6, 2, paper=(0.659, 0.016)),
        new.spring(
            "cnn-ewc", "CNN + EWC", 1000, 1e-6, 2, "average", 1e1, 0.999,
            coarse=_SPRINGS_FEW, paper=(0.716, 0.024),
        ),
        new.elephant(
            "ecnn", "ECNN", 1000, 1e-6, 1, 0.16, 0.16, coarse=_CNN_COARSE, paper=(0.732, 0.007)
        ),
        new.plain("convmixer", "ConvMixer", 1000, 1e-6, 1, paper=(0.110, 0.003)),
        new.elephant("econvmixer", "EConvMixer", 1000, 1e-6, 1, 0.08, 0.08, paper=(0.105, 0.003)),
        wide_mlp,
        new.spring(
            "mlp-ewc", "MLP + EWC", 10000, 1e-6, 2, "average", 1e1, 0.999,
            coarse=_SPRINGS_FEW, paper=(0.609, 0.013),
        ),
        new.entry(
            "sdmlp", "SDMLP", {"neurons": 10000, "k": 10, "lr": 0.05, "passes": 500, "switch": 5e6},
            paper=(0.53, None),
        ),
        new.entry(
            "flymodel", "FlyModel", {"neurons": 10000, "lr": 0.01, "per_unit": 32},
            paper=(0.91, None),
        ),
        wide_emlp,
        new.plain("cnn", "CNN", 10000, 3e-7, 2, paper=(0.769, 0.011)),
        new.spring(
            "cnn-ewc", "CNN + EWC", 10000, 3e-7, 2, "average", 1e1, 0.999,
            paper=(0.780, 0.010),
        ),
        new.elephant("ecnn", "ECNN", 10000, 3e-7, 1, 0.16, 0.32, paper=(0.850, 0.004)),
        new.plain("convmixer", "ConvMixer", 10000, 1e-6, 1, paper=(0.107, 0.003)),
        new.elephant("econvmixer", "EConvMixer", 10000, 1e-6, 1, 0.08, 0.08, paper=(0.104, 0.003)),
        *references(
            new,
            {
                ("nearest-mean", 1000): (0.16, 0.16),
                ("naive-bayes", 1000): (0.32, 0.64),
                ("lda", 1000): (0.32, 0.08),
                ("nearest-mean", 10000): (0.16, 0.16),
                ("naive-bayes", 10000): (0.32, 0.64),
            },
        ),
        *(shuffled(entry, 1e-4, (1e-4, 3e-5, 1e-5, 3e-6)) for entry in (mlp, emlp)),
    )  # fmt: skip


_CIFAR_COARSE: Grid = {
    "lr": (1e-6, 3e-7, 1e-7),
    "a": (0.08, 0.16),
    "sigma_bias": (0.16, 0.32, 0.64),
}

NOTES = (
    "Accuracy is over the whole test set after the last batch. Pixels in [0, 1], classes in their "
    "natural order, incomplete batches of a task dropped. EWC is Streaming EWC, with its anchor in "
    "brackets. Not in the paper's strict setting, but what its numbers are to be held against: "
    "rows that keep class statistics (of pixels or of random elephant features), and networks on "
    "the shuffled stream."
)

SPLIT_MNIST = Experiment(
    name="split-mnist",
    title="Split MNIST, class-incremental",
    source="Tables 2 and 5, Figure 6",
    metrics=METRICS,
    entries=_mnist_entries(),
    program=mnist_program,
    lanes=lambda cell: 1,
    notes=NOTES,
    data="mnist",
    columns=COLUMNS,
    choosing=CHOOSING,
    peeked="test_accuracy",
)


def _cifar_entries() -> tuple[Entry, ...]:
    new = Rows(125)
    mlp = new.plain("mlp", "MLP", 1000, 3e-7, 1, paper=(0.151, 0.008))
    emlp = new.elephant(
        "emlp", "EMLP", 1000, 3e-7, 1, 0.08, 0.16, coarse=_CIFAR_COARSE, paper=(0.197, 0.003)
    )
    return (
        mlp,
        new.spring(
            "mlp-ewc", "MLP + EWC", 1000, 3e-7, 2, "average", 1e1, 0.999,
            coarse={**_SPRINGS_FEW, "lr": (1e-6, 3e-7)}, paper=(0.158, 0.005),
        ),
        new.entry("flymodel", "FlyModel", {"neurons": 1000, "lr": 0.005, "per_unit": 64}),
        emlp,
        new.plain("cnn", "CNN", 1000, 3e-7, 1, paper=(0.151, 0.001)),
        new.spring(
            "cnn-ewc", "CNN + EWC", 1000, 3e-7, 2, "average", 1e1, 0.999,
            coarse={**_SPRINGS_FEW, "lr": (3e-7,)}, paper=(0.147, 0.010),
        ),
        new.elephant(
            "ecnn", "ECNN", 1000, 1e-7, 1, 0.16, 0.32, coarse=_CIFAR_COARSE, paper=(0.192, 0.004)
        ),
        new.plain("convmixer", "ConvMixer", 1000, 1e-6, 1, paper=(0.100, 0.0027)),
        new.elephant("econvmixer", "EConvMixer", 1000, 1e-6, 1, 0.08, 0.08, paper=(0.100, 0.0001)),
        new.plain("mlp", "MLP", 10000, 1e-7, 1, paper=(0.173, 0.004)),
        new.spring(
            "mlp-ewc", "MLP + EWC", 10000, 1e-7, 2, "average", 1e1, 0.999,
            paper=(0.169, 0.003),
        ),
        new.entry("flymodel", "FlyModel", {"neurons": 10000, "lr": 0.01, "per_unit": 32}),
        new.elephant("emlp", "EMLP", 10000, 1e-7, 1, 0.08, 0.64, paper=(0.239, 0.002)),
        new.plain("cnn", "CNN", 10000, 1e-7, 1, paper=(0.151, 0.001)),
        new.spring(
            "cnn-ewc", "CNN + EWC", 10000, 1e-7, 2, "average", 1e1, 0.999,
            paper=(0.179, 0.007),
        ),
        new.elephant("ecnn", "ECNN", 10000, 3e-8, 1, 0.16, 0.64, paper=(0.243, 0.002)),
        new.plain("convmixer", "ConvMixer", 10000, 1e-6, 1, paper=(0.102, 0.0015)),
        new.elephant("econvmixer", "EConvMixer", 10000, 1e-6, 1, 0.08, 0.08, paper=(0.100, 0.0001)),
        *references(
            new,
            {
                ("nearest-mean", 1000): (0.16, 0.32),
                ("naive-bayes", 1000): (0.32, 0.64),
                ("lda", 1000): (0.32, 0.64),
            },
        ),
        *(shuffled(entry, 3e-5, (1e-4, 3e-5, 1e-5, 3e-6)) for entry in (mlp, emlp)),
    )  # fmt: skip


SPLIT_CIFAR10 = Experiment(
    name="split-cifar10",
    title="Split CIFAR10, class-incremental",
    source="Table 6, Figure 6",
    metrics=METRICS,
    entries=_cifar_entries(),
    program=cifar10_program,
    lanes=lambda cell: 1,
    notes=NOTES,
    data="cifar10",
    columns=COLUMNS,
    choosing=CHOOSING,
    peeked="test_accuracy",
)

_DIGIT_RATES: Grid = {"lr": (3e-4, 1e-4, 3e-5, 1e-5, 3e-6), "E": (1, 2)}


def _digits_entries() -> tuple[Entry, ...]:
    new = Rows(10)
    mlp = replace(new.plain("mlp", "MLP", 1000, 3e-5, 2), grid=_DIGIT_RATES)
    emlp = replace(
        new.elephant("emlp", "EMLP", 1000, 3e-5, 2, 0.08, 0.32), grid={**_DIGIT_RATES, **SHAPES}
    )
    return (
        mlp,
        replace(
            new.spring("mlp-ewc", "MLP + EWC", 1000, 3e-5, 2, "previous", 1e3, 0.999),
            grid={**_DIGIT_RATES, **SPRINGS},
            coarse={"lr": (1e-4, 3e-5), "lambda": (1e1, 1e3, 1e5), "gamma": (0.5, 0.9, 0.999)},
        ),
        new.entry(
            "sdmlp", "SDMLP", {"neurons": 1000, "k": 10, "lr": 0.05, "passes": 20, "switch": 1e4},
            {"k": (1, 3, 10, 30), "switch": (3e2, 1e3, 3e3, 1e4, 3e4)},
        ),
        new.entry(
            "flymodel", "FlyModel", {"neurons": 1000, "lr": 0.2, "per_unit": 16},
            {"lr": (0.005, 0.01, 0.05, 0.2), "per_unit": (4, 8, 16, 32)},
        ),
        emlp,
        replace(new.plain("cnn", "CNN", 1000, 3e-6, 2), grid=_DIGIT_RATES),
        replace(
            new.elephant("ecnn", "ECNN", 1000, 3e-6, 1, 0.04, 0.16),
            grid={**_DIGIT_RATES, **SHAPES},
        ),
        *references(
            new,
            {
                ("nearest-mean", 1000): (0.04, 0.04),
                ("naive-bayes", 1000): (0.32, 0.04),
                ("lda", 1000): (0.16, 0.04),
            },
        ),
        shuffled(mlp, 1e-3, (1e-3, 3e-4, 1e-4, 3e-5)),
        shuffled(emlp, 3e-4, (1e-3, 3e-4, 1e-4, 3e-5)),
    )  # fmt: skip


SPLIT_DIGITS = Experiment(
    name="split-digits",
    title="Split digits (8x8, built in), class-incremental",
    source="not in the paper; needs no download",
    metrics=METRICS,
    entries=_digits_entries(),
    program=digits_program,
    lanes=lambda cell: 5,
    notes=NOTES,
    columns=COLUMNS,
    choosing={"held_out": 10},
    peeked="test_accuracy",
)
