"""Figures of the class-incremental experiments: accuracy along the stream, and task by task."""

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
    Dashes,
    band,
    figure,
)

LINES: dict[str, tuple[str, Dashes]] = {
    "mlp": (ORANGE, "-"),
    "mlp-ewc": (GREEN, "-"),
    "mlp-ewc/boundaries": (GREEN, ":"),
    "emlp": (BLUE, "-"),
    "cnn": (ORANGE, (0, (4, 4))),
    "cnn-ewc": (GREEN, (12, (4, 4))),
    "ecnn": (BLUE, "--"),
    "convmixer": (RED, ":"),
    "econvmixer": (SKY, ":"),
    "flymodel": (PINK, "-."),
}
"""Colour says what is done against forgetting, the dashes which network. Dashes of the CNNs fall
into one another's gaps: with a weak spring one is the other."""

Found = tuple[Entry, pl.DataFrame]


def _found(experiment: Experiment, rows: pl.DataFrame) -> dict[int, list[Found]]:
    """By width: the methods with finished runs of one pass, at their tuned settings."""
    widths: dict[int, list[Found]] = {}
    for entry in experiment.entries:
        if entry.method in LINES:
            mine = runs_of(rows, experiment, entry, entry.settings)
            mine = mine.filter(pl.col("status") == "ok") if mine.height else mine
            if mine.height:
                moments = mine["batches"].to_list()  # they may differ between versions
                mine = mine.filter(pl.Series([at == moments[0] for at in moments]))
                widths.setdefault(int(entry.settings["neurons"]), []).append((entry, mine))
    return widths


def curves(experiment: Experiment, rows: pl.DataFrame) -> Figure | None:
    """Test accuracy over all classes against batches seen, a panel for each width."""
    widths = _found(experiment, rows)
    if not widths:
        return None
    drawn, axes = figure(1, len(widths), 5.6 * len(widths), 5.6, sharey=True)
    highest = 0.0
    for ax, (neurons, found) in zip(axes, widths.items(), strict=True):
        for entry, mine in found:
            colour, dashes = LINES[entry.method]
            batches = np.array(mine["batches"][0])
            accuracies = np.array(mine["accuracy_curve"].to_list())
            highest = max(highest, accuracies.mean(0).max())
            beyond = ", class statistics" if mine["class_statistics"][0] else ""
            label = f"{entry.marked_label}{beyond} ({len(accuracies)})"
            band(ax, batches, accuracies, colour, label, dashes)
        _mark_tasks(ax, found[0][1])
        ax.set_title(f"{experiment.title.removesuffix(', class-incremental')}, {neurons:,} neurons")
        ax.set_xlabel("mini-batches seen")
        ax.set_xlim(0, None)
        guesses = "; * settings guessed" if any(entry.guessed for entry, _ in found) else ""
        ax.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, columnspacing=1.2,
            fontsize=8.5, title=f"method (runs){guesses}", title_fontsize=8.5, frameon=False,
            handlelength=3.2,
        )  # fmt: skip
    axes[0].set_ylim(0, min(1.0, 1.1 * highest))
    axes[0].set_ylabel("test accuracy, all classes")
    return drawn


def _mark_tasks(ax: Axes, mine: pl.DataFrame) -> None:
    batches, tasks = mine["batches"][0], len(mine["task_accuracy"][0][0])
    per_task = len(batches) // tasks
    for end in list(batches)[per_task - 1 : -1 : per_task]:
        ax.axvline(end, color=BLACK, lw=0.8, ls=":", zorder=0)


def tasks_over_time(experiment: Experiment, rows: pl.DataFrame) -> Figure | None:
    """For each method the accuracy of every task (rows) after every task (columns), as a map."""
    found = [pair for pairs in _found(experiment, rows).values() for pair in pairs]
    if not found:
        return None
    columns = min(4, len(found))
    lines = -(-len(found) // columns)
    drawn, axes = figure(lines, columns, 3.1 * columns, 3.1 * lines, sharex=True, sharey=True)
    for ax in axes[len(found) :]:
        ax.set_axis_off()
    for i, (ax, (entry, mine)) in enumerate(zip(axes, found, strict=False)):
        over_time = np.array(mine["task_accuracy"].to_list()).mean(0)
        per_task = len(over_time) // over_time.shape[1]
        matrix = over_time[per_task - 1 :: per_task].T
        ax.imshow(matrix, vmin=0, vmax=1, cmap="cividis", aspect="auto")
        for (task, moment), value in np.ndenumerate(matrix):
            shade = "white" if value < 0.5 else "black"
            ax.text(moment, task, f"{value:.2f}", ha="center", va="center", color=shade, fontsize=8)
        tasks = range(len(matrix))
        ax.set_xticks(tasks, [str(t + 1) for t in tasks])
        ax.set_yticks(tasks, [str(t + 1) for t in tasks])
        ax.grid(visible=False)
        ax.set_title(f"{entry.marked_label}, {int(entry.settings['neurons']):,}", fontsize=9.5)
        if i % columns == 0:
            ax.set_ylabel("accuracy on task")
        if i + columns >= len(found):
            ax.tick_params(labelbottom=True)
            ax.set_xlabel("after learning task")
    return drawn
