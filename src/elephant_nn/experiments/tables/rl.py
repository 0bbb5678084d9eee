"""Reinforcement learning with a tiny replay buffer: Figure 4 of the paper, four tasks.

An elephant network with a buffer of 32 transitions, against ReLU networks with 32 and 10,000.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from elephant_nn.experiments.spec import Dashes, Metric, Row, Search, Table
from elephant_nn.experiments.tables.choices import METHODS, PROBLEMS, chosen
from elephant_nn.runs.cells import Axes, Hyper

RATES = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6)
SHAPES: Axes = {"a": (0.08, 0.16, 0.32, 0.64), "sigma_bias": (0.08, 0.16, 0.32, 0.64, 1.28)}
BUFFERS = (32, 100, 300, 1_000, 3_000, 10_000)
"""The sizes of the authors' code; the paper shows the first for EMLP, first and last for MLP."""
BUFFER_RATES = RATES[:6]
"""Without the two smallest rates: they are best for no row in the sweeps of the tasks."""

LINES: Mapping[tuple[str, int], tuple[str, Dashes]] = {
    ("emlp", 32): ("blue", "-"), ("later-emlp", 32): ("sky", "-."),
    ("mlp", 32): ("orange", "-"), ("mlp", 10_000): ("orange", "--"),
    ("fta", 32): ("green", ":"), ("lwta", 32): ("pink", ":"), ("maxout", 32): ("red", ":"),
}  # fmt: skip

# Where a run takes a minute. Pixelcopter's observations are raw pixels, so its widths are larger.
COARSE: Mapping[str, Axes] = {
    "catcher": {"lr": (1e-4, 3e-5, 1e-5), "a": (0.08, 0.16, 0.32), "sigma_bias": (0.16, 0.64),
                "E": (1,)},
    "pixelcopter": {"lr": (1e-4, 3e-5, 1e-5), "a": (0.16, 0.32, 0.64), "sigma_bias": (0.32, 1.28),
                    "E": (1,)},
}  # fmt: skip
PAPER_SEARCH = {
    "mountain-car": Search(2, finalists=8),
    "acrobot": Search(2, finalists=8),
    "catcher": Search(1, coarse=True, finalists=2),
    "pixelcopter": Search(1, coarse=True),
}
MLP_SEARCH = {**PAPER_SEARCH, "mountain-car": Search(10, finalists=2)}
SPARSE_SEARCH = {"mountain-car": Search(1, finalists=2), "acrobot": Search(2, coarse=True)}
RUNS = {"mountain-car": 100, "acrobot": 50, "catcher": 10, "pixelcopter": 10}
"""Ten are too few for the first two: a rare bad run decides the mean."""

METRICS = (Metric("return", "return", "higher", 1),)
NOTES = (
    "The mean return of the last tenth of a run's training episodes, exploration included; 95% "
    "percentile bootstrap interval of the mean over runs. FTA, LWTA, maxout and the normalised "
    "EMLP are not in the paper."
)
PIXEL_NOTES = f"{NOTES} Positions are rounded to pixels as in pygame since 2.3."


def _row(
    method: str, title: str, build: str, buffer: int, settings: Hyper, grid: Axes, coarse: Axes,
    **more: Any,
) -> Row:  # fmt: skip
    return Row(
        method, f"{title}, buffer {buffer:,}", f"{METHODS}:{build}",
        {"neurons": 1000, "buffer": buffer, **settings}, grid, coarse,
        line=LINES[method, buffer], **more,
    )  # fmt: skip


def _paper_rows(task: str) -> list[Row]:
    grid: Axes = {"lr": RATES, "E": (1, 2)}
    coarse: Axes = {"lr": RATES[2:], "E": (1,)}
    return [
        _row("emlp", "EMLP", "q_emlp", 32, {"d": 4}, {**grid, **SHAPES}, COARSE.get(task, {}),
             search=PAPER_SEARCH[task], runs=RUNS[task]),
        *(
            _row("mlp", "MLP", "q_mlp", buffer, {}, grid, coarse, search=MLP_SEARCH[task],
                 runs=RUNS[task])
            for buffer in (32, 10_000)
        ),
    ]  # fmt: skip


def _sparse_rows(task: str) -> list[Row]:
    """Activations of the authors' later work, with the tiny buffer. The guesses are for the tasks
    where no sweep has been run."""
    guess: Hyper = {"lr": 1e-4, "E": 1}
    rates: Axes = {"lr": (1e-3, 3e-4, 1e-4, 3e-5)}
    groups: Axes = {"lr": RATES, "group": (2, 5, 10)}
    shapes: Axes = {"a": (0.1, 0.2, 0.4), "sigma_bias": (0.2, 0.4, 0.8)}
    search = SPARSE_SEARCH.get(task)
    more: Any = {"search": search, "runs": 10 if search else 0}
    return [
        _row("fta", "FTA", "q_fta", 32, {**guess, "bound": 2.0, "tiles": 20},
             {"lr": RATES, "bound": (0.5, 1.0, 2.0, 4.0, 20.0)}, {**rates, "bound": (2.0, 20.0)},
             **more),
        _row("lwta", "LWTA", "q_lwta", 32, {**guess, "group": 5}, groups, {**rates, "group": (5,)},
             **more),
        _row("maxout", "maxout", "q_maxout", 32, {**guess, "group": 5}, groups,
             {**rates, "group": (5,)}, **more),
        _row("later-emlp", "normalised EMLP", "q_normalised_emlp", 32,
             {**guess, "a": 0.2, "sigma_bias": 0.4, "d": 4}, {"lr": RATES, **shapes},
             {**rates, "a": (0.2,), "sigma_bias": (0.4,)}, **more),
    ]  # fmt: skip


def _table(task: str, title: str, notes: str) -> Table:
    rows = chosen(f"rl-{task}", [*_paper_rows(task), *_sparse_rows(task)])
    return Table(
        f"rl-{task}", title, "Figure 4", METRICS, rows, f"{PROBLEMS}:{task.replace('-', '_')}",
        seeds=10, notes=notes, columns=("buffer_bytes",), defaults={"buffer": 32, "E": 1},
        intervals=True, figures=("return_curves",),
    )  # fmt: skip


TABLES = {
    "mountain-car": _table("mountain-car", "MountainCar, DQN", NOTES),
    "acrobot": _table("acrobot", "Acrobot, DQN", NOTES),
    "catcher": _table("catcher", "Catcher, DQN", PIXEL_NOTES),
    "pixelcopter": _table("pixelcopter", "Pixelcopter, DQN", PIXEL_NOTES),
}


def _buffer_rows(task: str, method: str) -> list[Row]:
    """A method with every size of buffer.

    Sizes of the task's table keep the settings chosen there; for others rate and E are searched.
    """
    known = {r.settings["buffer"]: r for r in TABLES[task].rows if r.method == method}
    search = Search(2, finalists=3 * (method == "mlp"))
    return [
        replace(
            base, title=f"{method.upper()}, {task}, buffer {buffer:,}",
            settings={**base.settings, "task": task, "buffer": buffer},
            grid={} if buffer in known else {"lr": BUFFER_RATES, "E": (1, 2)}, coarse={},
            search=None if buffer in known else search, runs=20 if method == "mlp" else 10,
            line=LINES[method, 32], chosen=False,
        )
        for buffer in BUFFERS
        for base in [known.get(buffer, known[32])]
    ]  # fmt: skip


RL_BUFFERS = Table(
    "rl-buffers", "Return against the size of the buffer, DQN", "beyond the paper",
    metrics=METRICS,
    rows=chosen("rl-buffers", [
        row
        for task in ("mountain-car", "acrobot")
        for method in ("emlp", "mlp")
        for row in _buffer_rows(task, method)
    ]),
    problem=f"{PROBLEMS}:any_task",
    seeds=10,
    notes="Sizes in the tables of the tasks have the settings chosen there, but runs of their own. "
    "For others rate and E are chosen here, on other seeds; width and bias of the EMLP are those "
    "of the buffer of 32.",
    columns=("task", "buffer", "buffer_bytes"),
    intervals=True,
    figures=("buffer_sizes",),
)  # fmt: skip

RL = (*TABLES.values(), RL_BUFFERS)
