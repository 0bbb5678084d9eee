"""Tables, ours beside the paper's, in every form people want them."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from elephant_nn.experiments.spec import Entry, Experiment, Metric
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
    """Cells of text, ready to be drawn as text, Markdown or HTML.

    `dispensable` are the columns that a narrow terminal does without.
    """

    title: str
    header: Sequence[str]
    lines: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    dispensable: Sequence[int] = ()

    def narrowed(self, width: int) -> "Grid":
        """Without the dispensable columns, and saying so, if the whole is wider than `width`."""
        cells = zip(self.header, *self.lines, strict=True)
        widest = [max(len(text) for text in (*head.split(), *texts)) for head, *texts in cells]
        if not self.dispensable or sum(widest) + 3 * len(widest) <= width:
            return self
        kept = [i for i in range(len(self.header)) if i not in self.dispensable]
        left_out = ", ".join(self.header[i] for i in self.dispensable)
        return Grid(
            self.title,
            [self.header[i] for i in kept],
            [[line[i] for i in kept] for line in self.lines],
            [*self.notes, f"Left out for want of room: {left_out}."],
        )


def number(mean: float | None, se: float | None, digits: int) -> str:
    if mean is None:
        return "-"
    return f"{mean:.{digits}f}" if se is None else f"{mean:.{digits}f} ± {se:.{digits}f}"


def ours(summary: Summary, metric: Metric) -> str:
    text = number(summary.mean, summary.se, metric.digits)
    return f"{text} ({summary.diverged} diverged)" if summary.diverged else text


def comparison(experiment: Experiment, rows: pl.DataFrame) -> Grid:
    """One line a row: for each metric our number and, where it has one, the paper's."""
    found = [row for row in table(experiment, rows) if not row.metric.detail]
    shown = [metric for metric in experiment.metrics if not metric.detail]
    in_paper = {row.metric.name for row in found if row.paper}
    header = ["method", *(column.replace("_", " ") for column in experiment.columns)]
    for metric in shown:
        compared = metric.name in in_paper
        header += [f"{metric.title}, ours", "paper"] if compared else [metric.title]
        header += ["95% interval"] if experiment.intervals else []
    lines = []
    for first in range(0, len(found), len(shown)):
        columns = found[first : first + len(shown)]
        title = f"{columns[0].title} *" if columns[0].guessed else columns[0].title
        line = [title, *_settings_and_rules(columns[0], experiment.columns)]
        for row in columns:
            line.append(ours(row.ours, row.metric))
            if row.metric.name in in_paper:
                line.append(number(*row.paper, row.metric.digits) if row.paper else "-")
            if experiment.intervals:
                line.append(_interval(row.ours, row.metric))
        lines.append([*line, str(columns[0].ours.runs)])
    notes = [experiment.notes] if experiment.notes else []
    if any(row.guessed for row in found):
        notes.append("* The settings of these rows are guesses; no sweep has chosen them yet.")
    notes += [_about_rivals(row) for row in found if row.rivals and row.metric.name in in_paper]
    title = f"{experiment.title} ({experiment.source})"
    dispensable = [i for i, column in enumerate(experiment.columns, start=1) if column != "neurons"]
    return Grid(title, [*header, "runs"], lines, notes, dispensable)


def _interval(summary: Summary, metric: Metric) -> str:
    if summary.interval is None:
        return "-"
    return "[{:.{d}f}, {:.{d}f}]".format(*summary.interval, d=metric.digits)


def _settings_and_rules(row: TableRow, columns: Sequence[str]) -> list[str]:
    values = [row.rules.get(column, row.hyper.get(column)) for column in columns]
    words = {True: "yes", False: "no", None: "-"}
    plain = lambda v: v if isinstance(v, str) else f"{v:,}"
    return [words[v] if v is None or isinstance(v, bool) else plain(v) for v in values]


def _about_rivals(row: TableRow) -> str:
    others = ", ".join(
        f"{name} {ours(rival, row.metric)} ({rival.runs})" for name, rival in row.rivals
    )
    return (
        f"{row.title} is the best of its kind on the seeds used for choosing; on the "
        f"reported seeds the others give (runs): {others}."
    )


def choices(experiment: Experiment, rows: pl.DataFrame) -> Grid:
    """What the sweep chose, on which numbers, and what the choice gives on fresh seeds."""
    metric, found = experiment.metrics[0], selection(experiment, rows)
    in_paper = any(metric.name in entry.paper for entry in experiment.entries)
    lines = []
    for row in found:
        choice, grid = row.choice, row.entry.grid
        lines.append(
            [
                _name(row.entry, experiment),
                ", ".join(f"{axis}={choice.hyper[axis]}" for axis in grid),
                _compared(experiment, rows, row.entry, choice.coarse),
                f"{ours(choice.summary, metric)} ({choice.summary.runs})",
                *([_peeked(choice.peeked, metric)] if experiment.peeked else []),
                f"{ours(row.fresh, metric)} ({row.fresh.runs})",
                *([number(*row.paper, metric.digits) if row.paper else "-"] if in_paper else []),
            ]
        )
    chosen_on = "held-out data, seeds for choosing" if experiment.choosing else "seeds for choosing"
    return Grid(
        f"{experiment.title}: settings chosen by sweep, {metric.title} (runs)",
        [
            "method",
            "chosen setting",
            "settings compared",
            chosen_on,
            *(["best on the test set itself"] if experiment.peeked else []),
            "fresh seeds",
            *(["paper"] if in_paper else []),
        ],
        lines,
        [
            *_incomplete(experiment, rows, [row.entry for row in found]),
            *([_how_the_paper_chose(experiment)] * in_paper),
        ],
    )


def _compared(experiment: Experiment, rows: pl.DataFrame, entry: Entry, coarse: bool) -> str:
    """How many settings the choice was made among, and whether others were tried besides."""
    compared, tried = len(entry.candidates(coarse=coarse)), tried_settings(rows, experiment, entry)
    besides = f" ({tried} tried)" if tried > compared else ""
    return f"{compared} of {len(entry.candidates())}{besides}"


def _name(entry: Entry, experiment: Experiment) -> str:
    several = sum(other.title == entry.title for other in experiment.entries) > 1
    return f"{entry.title}, {entry.settings['neurons']:,}" if several else entry.title


def _peeked(summary: Summary | None, metric: Metric) -> str:
    return f"{ours(summary, metric)} ({summary.runs})" if summary else "-"


def _how_the_paper_chose(experiment: Experiment) -> str:
    if experiment.peeked:
        return (
            "The paper mentions no held-out data and seems to choose by test accuracy; the fifth "
            "column is the best mean test accuracy of the choosing runs, on the seeds that all "
            "settings have, for that comparison only. Errors of held-out data are over seeds; the "
            "samples kept back are the same few for all of them."
        )
    return (
        "The paper chooses and reports on the same runs, which flatters every row: compare its "
        "numbers with the fourth column, and believe the fifth."
    )


def _incomplete(experiment: Experiment, rows: pl.DataFrame, chosen: Sequence[Entry]) -> list[str]:
    """A sentence for each method whose grid has been begun but not finished."""
    sentences = []
    for entry in experiment.entries:
        done = tried_settings(rows, experiment, entry) if entry.grid else 0
        if done and entry not in chosen:
            name = _name(entry, experiment)
            width = f" --neurons {entry.settings['neurons']}" if name != entry.title else ""
            few = " --coarse" if entry.coarse else ""
            sentences.append(
                f"{name}: {done} of {len(entry.candidates())} settings have runs. Nothing is "
                "chosen before all of a grid have runs on the same seeds; with the --seeds it was "
                f"begun with: elephant sweep {experiment.name} --methods {entry.method}{width}{few}"
            )
    return sentences


def as_text(grid: Grid) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = min(160, shutil.get_terminal_size((160, 24)).columns)
    grid = grid.narrowed(width)
    drawn = Table(title=grid.title, box=box.SIMPLE_HEAD, title_justify="left")
    for i, name in enumerate(grid.header):
        widest = max((len(line[i]) for line in grid.lines), default=0)
        head = name.replace(" ", "\n") if widest < 22 else name
        side: Literal["left", "right"] = "left" if i == 0 else "right"
        drawn.add_column(head, justify=side, no_wrap=i == 0, overflow="fold")
    for line in grid.lines:
        drawn.add_row(*map(Text, line))
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
