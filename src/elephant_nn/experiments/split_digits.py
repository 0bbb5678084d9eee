"""The same with the 8x8 digits of scikit-learn: no download, and small enough for whole grids."""

from __future__ import annotations

from dataclasses import replace

from elephant_nn.experiments.spec import Entry, Experiment
from elephant_nn.experiments.split import digits_program
from elephant_nn.experiments.split_rows import (
    COLUMNS,
    METRICS,
    NOTES,
    SHAPES,
    SPRINGS,
    Grid,
    Rows,
    references,
    shuffled,
)

_DIGIT_RATES: Grid = {"lr": (3e-4, 1e-4, 5e-5, 3e-5, 2e-5, 1e-5, 3e-6), "E": (1, 2)}
_CNN_RATES: Grid = {"lr": (1e-4, 3e-5, 1e-5, 5e-6, 3e-6, 2e-6, 1e-6, 3e-7), "E": (1, 2)}
"""The best rates of ReLU networks stand on a cliff, so there are more of them than in the paper."""


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
            coarse={
                "lr": (1e-4, 5e-5, 3e-5, 2e-5),
                "lambda": (1e1, 1e3, 1e5),
                "gamma": (0.5, 0.9, 0.999),
            },
        ),
        new.entry(
            "sdmlp", "SDMLP", {"neurons": 1000, "k": 3, "lr": 1.0, "passes": 20, "switch": 3e3},
            {
                "k": (1, 3, 10, 30),
                "switch": (3e2, 1e3, 3e3, 1e4, 3e4),
                "lr": (0.05, 0.2, 0.5, 1.0, 2.0),
            },
        ),
        new.sdmlp_once(3, 3e2, 2.0, (1e2, 3e2, 1e3, 3e3)),
        new.entry(
            "flymodel", "FlyModel", {"neurons": 1000, "lr": 0.2, "per_unit": 16},
            {"lr": (0.005, 0.01, 0.05, 0.2), "per_unit": (4, 8, 16, 32)},
        ),
        emlp,
        replace(new.plain("cnn", "CNN", 1000, 5e-6, 1), grid=_CNN_RATES),
        replace(
            new.elephant("ecnn", "ECNN", 1000, 2e-6, 1, 0.08, 0.04),
            grid={**_CNN_RATES, **SHAPES},
        ),
        *references(
            new,
            {
                ("nearest-mean", 1000): (0.04, 0.04),
                ("naive-bayes", 1000): (0.32, 0.04),
                ("lda", 1000): (0.16, 0.04),
            },
        ),
        new.told(3e-5, 2, 1e1, _DIGIT_RATES),
        shuffled(mlp, 1e-3, 2, (1e-3, 3e-4, 1e-4, 3e-5)),
        shuffled(emlp, 3e-4, 2, (1e-3, 3e-4, 1e-4, 3e-5)),
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
