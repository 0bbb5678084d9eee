"""The figures of each experiment, drawn from its rows."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.experiments.edit import NEIGHBOURHOOD, POINT, TARGET
from elephant_nn.experiments.sine import STAGES
from elephant_nn.experiments.spec import Entry, Experiment
from elephant_nn.report.statistics import runs_of
from elephant_nn.report.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    RED,
    SKY,
    figure,
    save_figure,
)

METHOD_COLOURS = {
    "mlp-relu": ORANGE,
    "mlp-sigmoid": SKY,
    "mlp-tanh": GREEN,
    "mlp-elu": PINK,
    "sr-nn": RED,
    "emlp": BLUE,
}


def draw_figures(experiment: str, rows: pl.DataFrame, folder: Path) -> list[Path]:
    """Draw what can be drawn from these rows; returns the files written."""
    if not rows.height:
        return []
    drawings = _DRAWINGS.get(experiment, ())
    return [path for draw in drawings for path in draw(EXPERIMENTS[experiment], rows, folder)]


def _first_run(
    experiment: Experiment, rows: pl.DataFrame, method: str
) -> tuple[Entry, dict] | None:
    """The stored run of the lowest reported seed, at the method's tuned settings."""
    entry = next(entry for entry in experiment.entries if entry.method == method)
    mine = runs_of(rows, experiment, entry, {**entry.settings, **(entry.pictured or {})})
    return (entry, mine.row(0, named=True)) if mine.height else None


def _sine_stages(experiment: Experiment, rows: pl.DataFrame, folder: Path) -> list[Path]:
    found = [run for m in ("emlp", "sr-nn") if (run := _first_run(experiment, rows, m))]
    if not found:
        return []
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
            if i == len(found) - 1:
                ax.set_xlabel("x")
    drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return save_figure(drawn, folder, "sine-stages")


def _sine_curves(experiment: Experiment, rows: pl.DataFrame, folder: Path) -> list[Path]:
    drawn, (ax,) = figure(1, 1, 7, 4.2)
    for entry in experiment.entries:
        mine = runs_of(rows, experiment, entry, entry.settings).filter(pl.col("status") == "ok")
        if mine.height:
            curves = np.array(mine["mse_curve"].to_list())
            _band(
                ax,
                np.arange(1, curves.shape[1] + 1),
                curves,
                METHOD_COLOURS[entry.method],
                entry.label,
            )
    ax.set_yscale("log")
    ax.set_xlabel("samples seen")
    ax.set_ylabel("test MSE over the whole range")
    ax.legend(loc="lower left")
    return save_figure(drawn, folder, "sine-curves")


def _band(ax: Axes, x: np.ndarray, curves: np.ndarray, colour: str, label: str) -> None:
    """Mean over runs, with a band of one standard error."""
    mean = curves.mean(0)
    ax.plot(x, mean, color=colour, label=label)
    if len(curves) > 1:
        se = curves.std(0, ddof=1) / np.sqrt(len(curves))
        ax.fill_between(x, mean - se, mean + se, color=colour, alpha=0.25, lw=0)


def _edit(experiment: Experiment, rows: pl.DataFrame, folder: Path) -> list[Path]:
    found = [run for m in ("emlp", "mlp-relu") if (run := _first_run(experiment, rows, m))]
    if not found:
        return []
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
    drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return save_figure(drawn, folder, "edit")


def _elephant_functions(experiment: Experiment, rows: pl.DataFrame, folder: Path) -> list[Path]:
    from elephant_nn.activations import elephant, elephant_slope

    drawn, axes = figure(1, 2, 9.6, 3.4)
    x = np.linspace(-6, 6, 1201)
    for d, colour in ((2, SKY), (4, ORANGE), (8, BLUE), (16, RED)):
        axes[0].plot(x, elephant(x, 2.0, d), color=colour, label=f"d = {d}")
        axes[1].plot(x, elephant_slope(x, 2.0, d), color=colour, label=f"d = {d}")
    for ax, title in zip(axes, ("elephant(x), a = 2", "slope of elephant(x), a = 2"), strict=True):
        ax.set_title(title)
        ax.set_xlabel("x")
        ax.legend()
    return save_figure(drawn, folder, "elephant-functions")


def _classical_functions(experiment: Experiment, rows: pl.DataFrame, folder: Path) -> list[Path]:
    import jax.numpy as jnp

    from elephant_nn.activations import CLASSICAL

    drawn, axes = figure(2, 2, 8, 5.6, sharex=True)
    x = jnp.linspace(-4, 4, 801)
    for ax, (name, activation) in zip(axes, CLASSICAL.items(), strict=True):
        ax.plot(x, activation(x), color=BLUE, label="value")
        ax.plot(x, activation.slope(x), color=ORANGE, ls="--", label="slope")
        ax.set_title(name)
        ax.set_ylim(-1.2, 2.2)
        ax.legend(loc="upper left")
    for ax in axes[2:]:
        ax.set_xlabel("x")
    return save_figure(drawn, folder, "classical-functions")


Drawing = Callable[[Experiment, pl.DataFrame, Path], list[Path]]

_DRAWINGS: dict[str, tuple[Drawing, ...]] = {
    "sine": (_sine_stages, _sine_curves),
    "edit": (_edit,),
    "activations": (_elephant_functions, _classical_functions),
}
