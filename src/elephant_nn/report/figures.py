"""The figures of a table, drawn from its rows. A table names the functions here that it wants."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from elephant_nn.experiments.constants import (
    EDIT_NEIGHBOURHOOD,
    EDIT_POINT,
    EDIT_TARGET,
    SINE_STAGES,
    STEPS,
)
from elephant_nn.experiments.spec import Row, Table
from elephant_nn.experiments.summaries import runs_of, summarise
from elephant_nn.report.style import COLOURS, band, figure, legend_below, line_of, save_figure

Found = list[tuple[Row, pl.DataFrame]]
SINE_TICKS = [0, 0.5, 1, 1.5, 2]


@dataclass(frozen=True)
class Drawn:
    """A figure on disk: PNG, SVG, and a caption."""

    png: Path
    svg: Path
    caption: str


def draw_figures(table: Table, rows: pl.DataFrame, folder: Path) -> list[Drawn]:
    """Draw what can be drawn from these rows, into `folder`."""
    drawn = []
    for name in table.figures if rows.height else ():
        file, caption, draw = FIGURES[name]
        picture = draw(table, rows)
        if picture is not None:
            png, svg = save_figure(picture, folder, file.format(table=table.name))
            drawn.append(Drawn(png, svg, caption))
    return drawn


def _found(table: Table, rows: pl.DataFrame, curve: str) -> Found:
    """The rows that figures show, with their finished runs that have this curve."""
    if curve not in rows.columns:
        return []
    ended = rows.filter((pl.col("status") == "ok") & pl.col(curve).is_not_null())
    pairs = ((row, runs_of(ended, table, row, row.settings)) for row in table.rows if row.drawn)
    return [(row, runs) for row, runs in pairs if runs.height]


def sine_stages(table: Table, rows: pl.DataFrame) -> Figure | None:
    pictured = [
        replace(row, settings={**row.settings, **row.pictured})
        for row in reversed(table.rows)
        if row.pictured
    ]
    runs = _found(replace(table, rows=tuple(pictured)), rows, "learned")
    found = [(row, mine.row(0, named=True)) for row, mine in runs]
    if not found:
        return None
    drawn, axes = figure(len(found), 3, 10, 2.9 * len(found), sharex=True, sharey=True)
    for i, (row, run) in enumerate(found):
        for j, stage in enumerate(SINE_STAGES):
            ax = axes[3 * i + j]
            x_t = (stage - 1) * 2 / (SINE_STAGES[-1] - 1)
            ax.axvline(x_t, color="black", lw=0.8, ls=":")
            x = _plot_sine(ax, len(run["learned"][j]))
            ax.plot(x, run["learned"][j], color=COLOURS["blue"], label="learned function")
            if run.get("kernel") is not None:
                label = "normalised kernel at $x_t$"
                ax.plot(x, run["kernel"][j], color=COLOURS["orange"], label=label)
            ax.set(title=f"{row.label}, t = {stage}", ylim=(-1.6, 1.6))
            ax.set(xlim=(0, 2), xticks=SINE_TICKS, xlabel="x" if i == len(found) - 1 else "")
        axes[3 * i].set_ylabel("f(x), normalised kernel")
    legend_below(drawn, axes[0])
    return drawn


def _plot_sine(ax: Axes, points: int) -> np.ndarray:
    x = np.linspace(0, 2, points)
    ax.plot(x, np.sin(np.pi * x), color="black", lw=1.2, ls="--", label="true function")
    return x


def sine_curves(table: Table, rows: pl.DataFrame) -> Figure | None:
    found = _found(table, rows, "mse_curve")
    if not found:
        return None
    drawn, (ax,) = figure(1, 1, 7, 4.2)
    for row, runs in found:
        curves = np.array(runs["mse_curve"].to_list())
        samples = np.arange(1, curves.shape[1] + 1)
        band(ax, samples, curves, *line_of(table, row), row.label)
    ax.set(yscale="log", xlabel="samples seen", ylabel="test MSE over the whole range")
    ax.legend(loc="lower left", frameon=False)
    return drawn


def edited(table: Table, rows: pl.DataFrame) -> Figure | None:
    found = list(reversed(_found(table, rows, "new")))
    if not found:
        return None
    drawn, axes = figure(1, len(found), 4.8 * len(found), 3.6, sharey=True)
    for ax, (row, runs) in zip(axes, found, strict=True):
        run = runs.row(0, named=True)
        low, high = EDIT_POINT - EDIT_NEIGHBOURHOOD, EDIT_POINT + EDIT_NEIGHBOURHOOD
        ax.axvspan(low, high, color="#F2F2F2", lw=0)
        x = _plot_sine(ax, len(run["old"]))
        ax.plot(x, run["old"], color=COLOURS["sky"], label="before the edit")
        ax.plot(x, run["new"], color=COLOURS["red"], label="after the edit")
        label = f"f({EDIT_POINT}) = {EDIT_TARGET}"
        ax.plot([EDIT_POINT], [EDIT_TARGET], "o", color="black", ms=5, label=label)
        ax.set(title=row.title, xlabel="x", xlim=(0, 2), xticks=SINE_TICKS)
    axes[0].set_ylabel("f(x)")
    legend_below(drawn, axes[0])
    return drawn


def elephant_functions(table: Table, rows: pl.DataFrame) -> Figure | None:
    from elephant_nn.nn.activations import elephant, elephant_slope

    drawn, axes = figure(1, 2, 9.6, 3.4)
    x = np.linspace(-6, 6, 1201)
    for d, colour in ((2, "sky"), (4, "orange"), (8, "blue"), (16, "red")):
        axes[0].plot(x, elephant(x, 2.0, d), color=COLOURS[colour], label=f"d = {d}")
        axes[1].plot(x, elephant_slope(x, 2.0, d), color=COLOURS[colour], label=f"d = {d}")
    for ax, title in zip(axes, ("elephant(x), a = 2", "slope of elephant(x), a = 2"), strict=True):
        ax.set(title=title, xlabel="x")
        ax.legend(frameon=False)
    return drawn


def classical_functions(table: Table, rows: pl.DataFrame) -> Figure | None:
    import jax.numpy as jnp

    from elephant_nn.nn.activations import CLASSICAL

    drawn, axes = figure(2, 2, 8, 5.6, sharex=True)
    x = jnp.linspace(-4, 4, 801)
    for ax, (name, activation) in zip(axes, CLASSICAL.items(), strict=True):
        ax.plot(x, activation(x), color=COLOURS["blue"], label="value")
        ax.plot(x, activation.slope(x), color=COLOURS["orange"], ls="--", label="slope")
        ax.set(title=name, ylim=(-1.2, 2.2))
        ax.legend(loc="upper left", frameon=False)
    for ax in axes[2:]:
        ax.set_xlabel("x")
    return drawn


def _by_width(table: Table, rows: pl.DataFrame) -> dict[int, Found]:
    """By width: the drawn rows, with the runs that were evaluated after the same batches."""
    widths: dict[int, Found] = {}
    for row, runs in _found(table, rows, "accuracy_curve"):
        moments = runs["batches"].to_list()  # they may differ between versions
        same = runs.filter(pl.Series([at == moments[0] for at in moments]))
        widths.setdefault(int(row.settings.get("neurons", 0)), []).append((row, same))
    return widths


def accuracy_curves(table: Table, rows: pl.DataFrame) -> Figure | None:
    """Test accuracy over all classes against batches seen, one panel per width."""
    widths = _by_width(table, rows)
    if not widths:
        return None
    drawn, axes = figure(1, len(widths), 5.6 * len(widths), 5.6, sharey=True)
    highest = 0.0
    for ax, (neurons, found) in zip(axes, widths.items(), strict=True):
        for row, runs in found:
            accuracies = np.array(runs["accuracy_curve"].to_list())
            highest = max(highest, accuracies.mean(0).max())
            beyond = ", class statistics" if runs["class_statistics"][0] else ""
            label = f"{row.marked_label}{beyond} ({len(accuracies)})"
            band(ax, np.array(runs["batches"][0]), accuracies, *line_of(table, row), label)
        _mark_tasks(ax, [runs for _, runs in found])
        title = table.title.removesuffix(", class-incremental")
        title = f"{title}, {neurons:,} neurons" if neurons else title
        ax.set(title=title, xlabel="mini-batches seen", xlim=(0, None))
        guesses = "; * settings guessed" if any(row.guessed for row, _ in found) else ""
        ax.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, columnspacing=1.2,
            fontsize=8.5, title=f"method (runs){guesses}", title_fontsize=8.5, frameon=False,
            handlelength=3.2,
        )  # fmt: skip
    axes[0].set(ylim=(0, min(1.0, 1.1 * highest)), ylabel="test accuracy, all classes")
    return drawn


def _task_ends(runs: pl.DataFrame) -> list[int]:
    """Which evaluations are at the ends of tasks; none if the ends were not evaluated."""
    if "task_accuracy" not in runs.columns or runs["task_accuracy"][0] is None:
        return []
    moments, tasks = len(runs["batches"][0]), len(runs["task_accuracy"][0][0])
    return list(range(moments // tasks - 1, moments, moments // tasks))


def _mark_tasks(ax: Axes, found: Sequence[pl.DataFrame]) -> None:
    for runs in found:
        ends = [runs["batches"][0][i] for i in _task_ends(runs)]
        if 1 < len(ends) <= 20:
            for end in ends[:-1]:
                ax.axvline(end, color="black", lw=0.8, ls=":", zorder=0)
            return


def task_maps(table: Table, rows: pl.DataFrame) -> Figure | None:
    """For each method the accuracy of every task (rows) after every task (columns), as a map."""
    pairs = [pair for pairs in _by_width(table, rows).values() for pair in pairs]
    found = [(row, runs) for row, runs in pairs if _task_ends(runs)]
    if not found:
        return None
    columns = min(4, len(found))
    lines = -(-len(found) // columns)
    drawn, axes = figure(lines, columns, 3.1 * columns, 3.1 * lines, sharex=True, sharey=True)
    for ax in axes[len(found) :]:
        ax.set_axis_off()
    for i, (ax, (row, runs)) in enumerate(zip(axes, found, strict=False)):
        over_time = np.array(runs["task_accuracy"].to_list()).mean(0)
        matrix = over_time[_task_ends(runs)].T
        image = ax.imshow(matrix, vmin=0, vmax=1, cmap="cividis", aspect="auto")
        if len(matrix) <= 10:
            for (task, moment), value in np.ndenumerate(matrix):
                shade = "white" if value < 0.5 else "black"
                ax.text(moment, task, f"{value:.2f}", ha="center", va="center", color=shade, size=8)
        tasks = range(0, len(matrix), max(1, len(matrix) // 10))
        for set_ticks in (ax.set_xticks, ax.set_yticks):
            set_ticks(tasks, [str(t + 1) for t in tasks])
        ax.grid(visible=False)
        width = f", {row.settings['neurons']:,}" if "neurons" in row.settings else ""
        ax.set_title(f"{row.marked_label}{width}", fontsize=9.5)
        if i % columns == 0:
            ax.set_ylabel("accuracy on task")
        if i + columns >= len(found):
            ax.tick_params(labelbottom=True)
            ax.set_xlabel("after learning task")
    if not axes[0].texts:  # too many tasks for numbers
        drawn.colorbar(image, ax=axes, label="accuracy", shrink=0.8, aspect=30)
    return drawn


def return_curves(table: Table, rows: pl.DataFrame) -> Figure | None:
    """Return against steps, every row of the table that has runs."""
    drawn, (ax,) = figure(1, 1, 6.4, 4.2)
    if not _returns(ax, table, _found(table, rows, "return_curve")):
        return None
    ax.set_title(table.title)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=9)
    return drawn


def _returns(ax: Axes, table: Table, found: Found) -> bool:
    steps = STEPS[table.name.removeprefix("rl-")]
    for row, runs in found:
        curves = np.array(runs["return_curve"].to_list(), float)
        x = np.linspace(0, steps, curves.shape[1] + 1)[1:]
        label = f"{row.title} *" if row.guessed else row.title
        band(ax, x / 1000, curves, *line_of(table, row), label)
    ax.set(xlim=(0, steps / 1000), xlabel="thousand steps", ylabel="return, mean of 50 episodes")
    return bool(found)


def draw_returns(tables: Mapping[str, tuple[Table, pl.DataFrame]], folder: Path) -> list[Drawn]:
    """The paper's figure: its rows in all four tasks side by side; nothing if a task is missing."""
    of_paper = lambda found: [(row, runs) for row, runs in found if row.method in ("emlp", "mlp")]
    every = [(t, of_paper(_found(t, rows, "return_curve"))) for t, rows in tables.values()]
    panels = [(table, found) for table, found in every if found]
    if len(panels) < len(STEPS):
        return []
    drawn, axes = figure(1, len(panels), 3.6 * len(panels), 3.6)
    for ax, (table, found) in zip(axes, panels, strict=True):
        _returns(ax, table, found)
        ax.set_title(table.title.removesuffix(", DQN"))
    for ax in axes[1:]:
        ax.set_ylabel("")
    legend_below(drawn, *axes)
    png, svg = save_figure(drawn, folder, "rl-returns")
    return [Drawn(png, svg, RETURNS)]


def buffer_sizes(table: Table, rows: pl.DataFrame) -> Figure | None:
    """Return against bytes of replay memory, one panel per task."""
    points: dict[str, dict[str, list[tuple[int, float, float, Row]]]] = {}
    for row, runs in _found(table, rows, "return"):
        score = summarise(runs, "return")
        if score.mean is not None:
            lines = points.setdefault(str(row.settings["task"]), {})
            point = (runs["buffer_bytes"][0], score.mean, score.se or 0.0, row)
            lines.setdefault(row.method, []).append(point)
    if not points:
        return None
    drawn, axes = figure(1, len(points), 5 * len(points), 3.8)
    for ax, (task, lines) in zip(axes, points.items(), strict=True):
        for marker, (method, line) in zip("osD^v<>", lines.items(), strict=False):
            size, mean, se, drawn_rows = zip(*sorted(line, key=lambda p: p[0]), strict=True)
            colour, label = line_of(table, drawn_rows[0])[0], method.upper()
            ax.errorbar(size, mean, se, color=colour, marker=marker, label=label, capsize=3)
        title = task.title().replace("-", "")
        ax.set(xscale="log", title=title, xlabel="bytes of replay memory")
    axes[0].set_ylabel("return, last tenth of episodes")
    legend_below(drawn, axes[0])
    return drawn


RETURNS = (
    "Return during training, a trailing mean over fifty episodes. Mean over runs; bands are one "
    "standard error."
)

FIGURES: dict[str, tuple[str, str, Callable[[Table, pl.DataFrame], Figure | None]]] = {
    "sine_stages": ("sine-stages",
        "The learned function when the stream has reached the dotted line, and how far an update "
        "there reaches (the kernel). First seed.", sine_stages),
    "sine_curves": ("sine-curves",
        "Error over the whole range while the samples are shown once, from left to right. Mean "
        "over seeds; bands are one standard error.", sine_curves),
    "edited": ("edit",
        "Gradient steps on one sample change one output. Shaded: the neighbourhood that the table "
        "leaves out. First seed.", edited),
    "elephant_functions": ("elephant-functions",
        "The elephant function and its slope, a = 2.", elephant_functions),
    "classical_functions": ("classical-functions",
        "The classical activations and their slopes.", classical_functions),
    "accuracy_curves": ("{table}-curves",
        "Test accuracy over all classes while a few classes at a time are shown once; dotted lines "
        "are where the classes change. Mean over runs; bands are one standard error.",
        accuracy_curves),
    "task_maps": ("{table}-tasks",
        "Accuracy on each task after each task. A method that does not forget keeps its rows "
        "bright to the right of the diagonal. Mean over runs.", task_maps),
    "return_curves": ("{table}-returns", RETURNS, return_curves),
    "buffer_sizes": ("{table}",
        "Return against the memory of the replay buffer. Mean over runs; bars are one standard "
        "error.", buffer_sizes),
}  # fmt: skip
