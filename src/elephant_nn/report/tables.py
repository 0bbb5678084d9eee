"""Tables, ours beside the paper's, in every form people want them."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from elephant_nn.experiments.spec import Experiment, Metric
from elephant_nn.report.statistics import (
    SelectionRow,
    Summary,
    TableRow,
    selection,
    table,
    tried_settings,
)


@dataclass(frozen=True)
class Grid:
    """Cells of text, ready to be drawn as text, Markdown or HTML."""

    title: str
    header: Sequence[str]
    lines: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def number(mean: float | None, se: float | None, digits: int) -> str:
    if mean is None:
        return "-"
    return f"{mean:.{digits}f}" if se is None else f"{mean:.{digits}f} ± {se:.{digits}f}"


def ours(summary: Summary, metric: Metric) -> str:
    text = number(summary.mean, summary.se, metric.digits)
    return f"{text} ({summary.diverged} diverged)" if summary.diverged else text


def comparison(experiment: Experiment, rows: pl.DataFrame) -> Grid:
    """One line a method: for each metric our number and, where it has one, the paper's."""
    found = table(experiment, rows)
    by_method: dict[str, list[TableRow]] = {}
    for row in found:
        by_method.setdefault(row.title, []).append(row)
    in_paper = {row.metric.name for row in found if row.paper}
    header, lines = ["method"], []
    for metric in experiment.metrics:
        header += [f"{metric.title}, ours"] + ["paper"] * (metric.name in in_paper)
    header.append("runs")
    for title, columns in by_method.items():
        line = [title]
        for row in columns:
            line.append(ours(row.ours, row.metric))
            if row.metric.name in in_paper:
                line.append(number(*row.paper, row.metric.digits) if row.paper else "-")
        lines.append([*line, str(columns[0].ours.runs)])
    notes = [experiment.notes] if experiment.notes else []
    for row in found:
        if row.rivals:
            others = ", ".join(
                f"{name} {ours(rival, row.metric)} ({rival.runs})" for name, rival in row.rivals
            )
            notes.append(
                f"{row.title} is the best of its kind on the seeds used for choosing; on the "
                f"reported seeds the others give (runs): {others}."
            )
    return Grid(f"{experiment.title} ({experiment.source})", header, lines, notes)


def choices(experiment: Experiment, rows: pl.DataFrame) -> Grid:
    """What the sweep chose, on which numbers, and what the choice gives on fresh seeds."""
    metric = experiment.metrics[0]
    lines = [
        [
            row.title,
            ", ".join(f"{axis}={row.hyper[axis]}" for axis in row.swept),
            f"{ours(row.chosen_on, metric)} ({row.chosen_on.runs})",
            f"{ours(row.fresh, metric)} ({row.fresh.runs})",
            number(*row.paper, metric.digits) if row.paper else "-",
        ]
        for row in selection(experiment, rows)
    ]
    return Grid(
        f"{experiment.title}: settings chosen by sweep, {metric.title} (runs)",
        ["method", "chosen setting", "seeds it was chosen on", "fresh seeds", "paper"],
        lines,
        [
            *_incomplete(experiment, rows),
            "The paper chooses and reports on the same runs, which flatters every row: compare its "
            "numbers with the third column, and believe the fourth.",
        ],
    )


def _incomplete(experiment: Experiment, rows: pl.DataFrame) -> list[str]:
    """A sentence for each method whose grid has been begun but not finished."""
    chosen = {row.method for row in selection(experiment, rows)}
    sentences = []
    for entry in experiment.entries:
        done = tried_settings(rows, experiment, entry) if entry.grid else 0
        if done and entry.method not in chosen:
            sentences.append(
                f"{entry.title}: {done} of {len(entry.candidates())} settings have runs, or they "
                f"share no seed; nothing is chosen before elephant sweep {experiment.name} is done."
            )
    return sentences


def as_text(grid: Grid) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=grid.title, box=box.SIMPLE_HEAD, title_justify="left")
    for i, name in enumerate(grid.header):
        drawn.add_column(name, justify="left" if i == 0 else "right")
    for line in grid.lines:
        drawn.add_row(*map(Text, line))
    width = min(110, shutil.get_terminal_size((110, 24)).columns)
    console = Console(file=io.StringIO(), width=width)
    console.print(drawn)
    for note in grid.notes:
        console.print(Text(note))
    return console.file.getvalue().rstrip()  # type: ignore[attr-defined]


def as_markdown(grid: Grid) -> str:
    lines = [f"**{grid.title}**", "", _pipes(grid.header), _pipes(["---"] * len(grid.header))]
    lines += [_pipes(line) for line in grid.lines]
    for note in grid.notes:
        lines += ["", note]
    return "\n".join(lines)


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def as_json(rows: Sequence[TableRow | SelectionRow]) -> str:
    return json.dumps([row.as_record() for row in rows], indent=2)


def as_csv(rows: Sequence[TableRow | SelectionRow]) -> str:
    records = [{**row.as_record(), "hyper": json.dumps(dict(row.hyper))} for row in rows]
    text = io.StringIO()
    if records:
        writer = csv.DictWriter(text, records[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
    return text.getvalue().rstrip()


Format = Callable[[Experiment, pl.DataFrame], str]

FORMATS: dict[str, Format] = {
    "table": lambda experiment, rows: as_text(comparison(experiment, rows)),
    "markdown": lambda experiment, rows: as_markdown(comparison(experiment, rows)),
    "json": lambda experiment, rows: as_json(table(experiment, rows)),
    "csv": lambda experiment, rows: as_csv(table(experiment, rows)),
}
SWEEP_FORMATS: dict[str, Format] = {
    "table": lambda experiment, rows: as_text(choices(experiment, rows)),
    "markdown": lambda experiment, rows: as_markdown(choices(experiment, rows)),
    "json": lambda experiment, rows: as_json(selection(experiment, rows)),
    "csv": lambda experiment, rows: as_csv(selection(experiment, rows)),
}
