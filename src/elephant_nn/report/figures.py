"""The figures of each experiment, drawn from its rows."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.experiments.edit import NEIGHBOURHOOD, POINT, TARGET
from elephant_nn.experiments.sine import STAGES
from elephant_nn.experiments.spec import Entry, Experiment
from elephant_nn.report.rl_figures import against_memory, four_panels, returns
from elephant_nn.report.split_figures import curves, tasks_over_time
from elephant_nn.report.statistics import runs_of
from elephant_nn.report.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    RED,
    SKY,
    band,
    figure,
    legend_below,
    save_figure,
)
from elephant_nn.rl import TASKS
from elephant_nn.runs.store import read_rows, rows_folder

METHOD_COLOURS = {
    "mlp-relu": ORANGE,
    "mlp-sigmoid": SKY,
    "mlp-tanh": GREEN,
    "mlp-elu": PINK,
    "sr-nn": RED,
    "emlp": BLUE,
}


@dataclass(frozen=True)
class Drawn:
    """A figure on disk: PNG, SVG, and a sentence that says what it shows."""

    png: Path
    svg: Path
    caption: str


def draw_figures(experiment: str, rows: pl.DataFrame, folder: Path) -> list[Drawn]:
    """Draw what can be drawn from these rows, into `folder`."""
    drawn = []
    for name, caption, draw in _DRAWINGS.get(experiment, ()) if rows.height else ():
        picture = draw(EXPERIMENTS[experiment], rows)
        if picture is not None:
            png, svg = save_figure(picture, folder, name)
            drawn.append(Drawn(png, svg, caption))
    return drawn


def draw_returns(out: Path, folder: Path) -> list[Drawn]:
    """The return curves of all reinforcement-learning tasks in a store, side by side."""
    found = {}
    for name in (f"rl-{task}" for task in TASKS):
        rows = read_rows(rows_folder(out, name))
        if rows.height:
            found[name] = (EXPERIMENTS[name], rows)
    picture = four_panels(found)
    if picture is None:
        return []
    png, svg = save_figure(picture, folder, "rl-returns")
    return [Drawn(png, svg, _RETURNS)]


_RETURNS = (
    "Return while learning, a trailing mean over fifty episodes. Mean over runs; bands are one "
    "standard error."
)


def _first_run(
    experiment: Experiment, rows: pl.DataFrame, method: str
) -> tuple[Entry, dict[str, Any]] | None:
    """The stored run of the lowest reported seed, at the method's tuned settings."""
    entry = next(entry for entry in experiment.entries if entry.method == method)
    mine = runs_of(rows, experiment, entry, {**entry.settings, **(entry.pictured or {})})
    return (entry, mine.row(0, named=True)) if mine.height else None


def _sine_stages(experiment: Experiment, rows: pl.DataFrame) -> Figure | None:
    found = [run for m in ("emlp", "sr-nn") if (run := _first_run(experiment, rows, m))]
    if not found:
        return None
    drawn, axes = figure(len(found), 3, 10, 2.9 * len(found), sharex=True, sharey=True)
    for i, (entry, row) in enumerate(found):
        for j, stage in enumerate(STAGES):
            ax = axes[3 * i + j]
            x = np.linspace(0, 2, len(row["learned"][j]))
            x_t = (stage - 1) * 2 / (STAGES[-1] - 1)
            ax.axvline(x_t, color=BLACK, lw=0.8, ls=":")
            ax.plot(x, np.sin(np.pi * x), color=BLACK, lw=1.2, ls="--", label="true function")
            ax.plot(x, row["learned"][j], color=BLUE, label="learned function")
            ax.plot(x, row["kernel"][j], color=ORANGE, label="normalised kernel at $x_t$")
            ax.set_title(f"{entry.label}, t = {stage}")
            ax.set_ylim(-1.6, 1.6)
            ax.set_xlim(0, 2)
            ax.set_xticks([0, 0.5, 1, 1.5, 2])
            if i == len(found) - 1:
                ax.set_xlabel("x")
            if j == 0:
                ax.set_ylabel("f(x), normalised kernel")
    legend_below(drawn, axes[0])
    return drawn


def _sine_curves(experiment: Experiment, rows: pl.DataFrame) -> Figure | None:
    drawn, (ax,) = figure(1, 1, 7, 4.2)
    for entry in experiment.entries:
        mine = runs_of(rows, experiment, entry, entry.settings).filter(pl.col("status") == "ok")
        if mine.height:
            curves = np.array(mine["mse_curve"].to_list())
            band(
                ax,
                np.arange(1, curves.shape[1] + 1),
                curves,
                METHOD_COLOURS[entry.method],
                entry.label,
            )
    ax.set_yscale("log")
    ax.set_xlabel("samples seen")
    ax.set_ylabel("test MSE over the whole range")
    ax.legend(loc="lower left", frameon=False)
    return drawn


def _edit(experiment: Experiment, rows: pl.DataFrame) -> Figure | None:
    found = [run for m in ("emlp", "mlp-relu") if (run := _first_run(experiment, rows, m))]
    if not found:
        return None
    drawn, axes = figure(1, len(found), 4.8 * len(found), 3.6, sharey=True)
    for ax, (entry, row) in zip(axes, found, strict=True):
        x = np.linspace(0, 2, len(row["old"]))
        ax.axvspan(POINT - NEIGHBOURHOOD, POINT + NEIGHBOURHOOD, color="#F2F2F2", lw=0)
        ax.plot(x, np.sin(np.pi * x), color=BLACK, lw=1.2, ls="--", label="true function")
        ax.plot(x, row["old"], color=SKY, label="before the edit")
        ax.plot(x, row["new"], color=RED, label="after the edit")
        ax.plot([POINT], [TARGET], "o", color=BLACK, ms=5, label=f"f({POINT}) = {TARGET}")
        ax.set_title(entry.title)
        ax.set_xlabel("x")
        ax.set_xlim(0, 2)
        ax.set_xticks([0, 0.5, 1, 1.5, 2])
    axes[0].set_ylabel("f(x)")
    legend_below(drawn, axes[0])
    return drawn


def _elephant_functions(experiment: Experiment, rows: pl.DataFrame) -> Figure | None:
    from elephant_nn.nn.activations import elephant, elephant_slope

    drawn, axes = figure(1, 2, 9.6, 3.4)
    x = np.linspace(-6, 6, 1201)
    for d, colour in ((2, SKY), (4, ORANGE), (8, BLUE), (16, RED)):
        axes[0].plot(x, elephant(x, 2.0, d), color=colour, label=f"d = {d}")
        axes[1].plot(x, elephant_slope(x, 2.0, d), color=colour, label=f"d = {d}")
    for ax, title in zip(axes, ("elephant(x), a = 2", "slope of elephant(x), a = 2"), strict=True):
        ax.set_title(title)
        ax.set_xlabel("x")
        ax.legend(frameon=False)
    return drawn


def _classical_functions(experiment: Experiment, rows: pl.DataFrame) -> Figure | None:
    import jax.numpy as jnp

    from elephant_nn.nn.activations import CLASSICAL

    drawn, axes = figure(2, 2, 8, 5.6, sharex=True)
    x = jnp.linspace(-4, 4, 801)
    for ax, (name, activation) in zip(axes, CLASSICAL.items(), strict=True):
        ax.plot(x, activation(x), color=BLUE, label="value")
        ax.plot(x, activation.slope(x), color=ORANGE, ls="--", label="slope")
        ax.set_title(name)
        ax.set_ylim(-1.2, 2.2)
        ax.legend(loc="upper left", frameon=False)
    for ax in axes[2:]:
        ax.set_xlabel("x")
    return drawn


Drawings = tuple[tuple[str, str, Callable[[Experiment, pl.DataFrame], Figure | None]], ...]


def _split_drawings(name: str) -> Drawings:
    return (
        (
            f"{name}-curves",
            "Test accuracy over all classes while two classes at a time pass by once; dotted lines "
            "are where the classes change. Mean over runs; bands are one standard error.",
            curves,
        ),
        (
            f"{name}-tasks",
            "Accuracy on each task after each task. A method that does not forget keeps its rows "
            "bright to the right of the diagonal. Mean over runs.",
            tasks_over_time,
        ),
    )


_DRAWINGS: dict[str, Drawings] = {
    "sine": (
        (
            "sine-stages",
            "What has been learned when the stream has reached the dotted line, and how far an "
            "update there reaches (the kernel). First seed.",
            _sine_stages,
        ),
        (
            "sine-curves",
            "Error over the whole range while the samples pass by once, from left to right. "
            "Mean over seeds; bands are one standard error.",
            _sine_curves,
        ),
    ),
    "edit": (
        (
            "edit",
            "One output is taught a new value by gradient steps on that sample alone. Shaded: the "
            "neighbourhood that the table leaves out. First seed.",
            _edit,
        ),
    ),
    "activations": (
        ("elephant-functions", "The elephant and its slope, a = 2.", _elephant_functions),
        ("classical-functions", "The classical activations and slopes.", _classical_functions),
    ),
    **{f"rl-{task}": ((f"rl-{task}-returns", _RETURNS, returns),) for task in TASKS},
    "rl-buffers": (
        (
            "rl-buffers",
            "What a bigger memory of transitions is worth. Mean over runs; bars are one standard "
            "error.",
            against_memory,
        ),
    ),
    **{name: _split_drawings(name) for name in ("split-digits", "split-mnist", "split-cifar10")},
}
