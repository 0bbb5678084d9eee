"""Figures of reinforcement learning: return curves, and return against the buffer's memory."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from elephant_nn.experiments.rl import STEPS
from elephant_nn.experiments.spec import Entry, Experiment
from elephant_nn.report.statistics import runs_of, summarise
from elephant_nn.report.style import (
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    RED,
    SKY,
    band,
    figure,
    legend_below,
)

LINES = {
    ("emlp", 32): (BLUE, "-"),
    ("mlp", 32): (ORANGE, "-"),
    ("mlp", 10_000): (ORANGE, "--"),
    ("later-emlp", 32): (SKY, "-."),
    ("fta", 32): (GREEN, ":"),
    ("lwta", 32): (PINK, ":"),
    ("maxout", 32): (RED, ":"),
}
IN_THE_PAPER = ("emlp", "mlp")


def returns(experiment: Experiment, rows: pl.DataFrame) -> Figure | None:
    """Return against steps, every row of the table that has runs."""
    drawn, axes = figure(1, 1, 6.4, 4.2)
    if not _panel(axes[0], experiment, rows, tuple(method for method, _ in LINES)):
        return None
    axes[0].set_title(experiment.title)
    axes[0].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=9)
    return drawn


def four_panels(found: Mapping[str, tuple[Experiment, pl.DataFrame]]) -> Figure | None:
    """The paper's figure: a panel for each task that has runs."""
    shown = [
        (experiment, rows)
        for experiment, rows in found.values()
        if any(
            _finished(experiment, entry, rows).height
            for entry in experiment.entries
            if entry.method in IN_THE_PAPER
        )
    ]
    if not shown:
        return None
    drawn, axes = figure(1, len(shown), 3.6 * len(shown), 3.6)
    for ax, (experiment, rows) in zip(axes, shown, strict=True):
        _panel(ax, experiment, rows, IN_THE_PAPER)
        ax.set_title(experiment.title.removesuffix(", DQN"))
    for ax in axes[1:]:
        ax.set_ylabel("")
    legend_below(drawn, *axes)
    return drawn


def _panel(ax: Axes, experiment: Experiment, rows: pl.DataFrame, methods: tuple[str, ...]) -> bool:
    steps = STEPS[experiment.name.removeprefix("rl-")]
    some = False
    for entry in experiment.entries:
        mine = _finished(experiment, entry, rows)
        if entry.method not in methods or not mine.height:
            continue
        curves = np.array(mine["return_curve"].to_list(), float)
        colour, dashes = LINES[entry.method, int(entry.settings["buffer"])]
        x = np.linspace(0, steps, curves.shape[1] + 1)[1:]
        band(ax, x / 1000, curves, colour, entry.title, dashes)
        some = True
    ax.set_xlim(0, steps / 1000)
    ax.set_xlabel("thousand steps")
    ax.set_ylabel("return, mean of 50 episodes")
    return some


def _finished(experiment: Experiment, entry: Entry, rows: pl.DataFrame) -> pl.DataFrame:
    mine = runs_of(rows, experiment, entry, entry.settings)
    return mine.filter(pl.col("status") == "ok") if mine.height else mine


def against_memory(experiment: Experiment, rows: pl.DataFrame) -> Figure | None:
    """Return against bytes of replay memory, a panel for each task."""
    tasks = dict.fromkeys(str(entry.settings["task"]) for entry in experiment.entries)
    points: dict[str, dict[str, list[tuple[int, float, float]]]] = {task: {} for task in tasks}
    for entry in experiment.entries:
        mine = _finished(experiment, entry, rows)
        if mine.height:
            score = summarise(mine, "return")
            if score.mean is None:
                continue
            line = points[str(entry.settings["task"])].setdefault(entry.method, [])
            line.append((mine["buffer_bytes"][0], score.mean, score.se or 0.0))
    points = {task: lines for task, lines in points.items() if lines}
    if not points:
        return None
    drawn, axes = figure(1, len(points), 5 * len(points), 3.8)
    looks = {"emlp": (BLUE, "o", "EMLP"), "mlp": (ORANGE, "s", "MLP")}
    for ax, (task, lines) in zip(axes, points.items(), strict=True):
        for method, line in lines.items():
            size, mean, se = map(np.array, zip(*sorted(line), strict=True))
            colour, mark, label = looks[method]
            ax.errorbar(size, mean, se, color=colour, marker=mark, label=label, capsize=3)
        ax.set_xscale("log")
        ax.set_title(task.title().replace("-", ""))
        ax.set_xlabel("bytes of replay memory")
    axes[0].set_ylabel("return, last tenth of episodes")
    legend_below(drawn, axes[0])
    return drawn
