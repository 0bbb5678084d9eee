"""Tables, ours beside the paper's, as text, Markdown, JSON and CSV."""

import csv
import io
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from elephant_nn.experiments.choosing import ChoiceRow, choices, tried_settings
from elephant_nn.experiments.spec import Metric, Row, Table
from elephant_nn.experiments.summaries import Summary, TableRow, summarise_table


@dataclass(frozen=True)
class Text:
    """A table of text, ready to be printed or written as Markdown or HTML.

    `optional` columns are hidden on a narrow terminal; `marks` has what each line's first column
    says instead.
    """

    title: str
    header: Sequence[str]
    lines: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    optional: Sequence[int] = ()
    marks: Sequence[str] = ()

    def narrowed(self, width: int) -> "Text":
        """Without the optional columns, and saying so, if the table is wider than `width`."""
        columns = zip(self.header, *self.lines, strict=True)
        widest = [max(len(text) for text in (*head.split(), *texts)) for head, *texts in columns]
        if not self.optional or sum(widest) + 3 * len(widest) <= width:
            return self
        kept = [i for i in range(len(self.header)) if i not in self.optional]
        hidden = ", ".join(self.header[i] for i in self.optional)
        lines = [
            [f"{line[0]}{mark}", *(line[i] for i in kept[1:])]
            for line, mark in zip(self.lines, self.marks, strict=True)
        ]
        note = f"Hidden: the terminal is too narrow for {hidden}."
        for mark, meaning in MARKS.items():
            note += f" [{mark}]: {meaning}." if any(f"[{mark}]" in m for m in self.marks) else ""
        header = [self.header[i] for i in kept]
        return Text(self.title, header, lines, [*self.notes, note])


def number(mean: float | None, se: float | None, digits: int) -> str:
    if mean is None:
        return "-"
    tiny = 0 < abs(mean) < 0.5 * 10**-digits
    style = ".1e" if tiny else f".{digits}f"
    return f"{mean:{style}}" if se is None else f"{mean:{style}} ± {se:{style}}"


def ours(summary: Summary, metric: Metric) -> str:
    text = number(summary.mean, summary.se, metric.digits)
    return f"{text} ({summary.diverged} diverged)" if summary.diverged else text


def comparison(table: Table, rows: pl.DataFrame) -> Text:
    """One line per row: for each metric our number and the paper's, if it has one."""
    found = [row for row in summarise_table(table, rows) if not row.metric.detail]
    shown = [metric for metric in table.metrics if not metric.detail]
    in_paper = {row.metric.name for row in found if row.paper}
    header = ["method", *(column.replace("_", " ") for column in table.columns)]
    for metric in shown:
        header += [f"{metric.title}, ours", "paper"] if metric.name in in_paper else [metric.title]
        header += ["95% interval"] if table.intervals else []
    lines, marks = [], []
    for first in range(0, len(found), len(shown)):
        columns = found[first : first + len(shown)]
        title = f"{columns[0].title} *" if columns[0].guessed else columns[0].title
        line = [title, *_settings_and_rules(columns[0], table.columns)]
        for row in columns:
            line.append(ours(row.ours, row.metric))
            if row.metric.name in in_paper:
                line.append(number(*row.paper, row.metric.digits) if row.paper else "-")
            if table.intervals:
                line.append(_interval(row.ours, row.metric))
        lines.append([*line, str(columns[0].ours.runs)])
        marks.append(_mark(columns[0]))
    notes = [table.notes] if table.notes else []
    if any(row.guessed for row in found):
        notes.append("* The settings of these rows are guesses; no sweep has chosen them yet.")
    notes += [_about_variants(row) for row in found if row.variants and row.metric.name in in_paper]
    optional = [i for i, column in enumerate(table.columns, start=1) if column != "neurons"]
    title = f"{table.title} ({table.source})"
    return Text(title, [*header, "runs"], lines, notes, optional, marks)


MARKS = {
    "p": "sees each task several times",
    "b": "knows task boundaries",
    "c": "keeps class statistics",
}


def _mark(row: TableRow) -> str:
    """What a row is granted beyond the strict setting, for tables without these columns."""
    granted = {
        "p": (row.rules.get("passes") or 1) > 1,
        "b": bool(row.rules.get("task_boundary")),
        "c": bool(row.rules.get("class_statistics")),
    }
    return "".join(f" [{mark}]" for mark, given in granted.items() if given)


def _interval(summary: Summary, metric: Metric) -> str:
    if summary.interval is None:
        return "-"
    return "[{:.{d}f}, {:.{d}f}]".format(*summary.interval, d=metric.digits)


def _settings_and_rules(row: TableRow, columns: Sequence[str]) -> list[str]:
    values = [row.rules.get(column, row.hyper.get(column)) for column in columns]
    words = {True: "yes", False: "no", None: "-"}
    plain = lambda v: v if isinstance(v, str) else f"{v:,}"
    return [words[v] if v is None or isinstance(v, bool) else plain(v) for v in values]


def _about_variants(row: TableRow) -> str:
    others = ", ".join(
        f"{name} {ours(other, row.metric)} ({other.runs})" for name, other in row.variants
    )
    return (
        f"{row.title} is the best variant on the seeds used for choosing; on the reported seeds "
        f"the others give (runs): {others}."
    )


def chosen_settings(table: Table, rows: pl.DataFrame) -> Text:
    """What sweeps chose, on which numbers, and what the choice gives on other seeds."""
    metric, found = table.metrics[0], choices(table, rows)
    in_paper = any(metric.name in row.paper for row in table.rows)
    counted = lambda summary: f"{ours(summary, metric)} ({summary.runs})" if summary else "-"
    lines = [
        [
            _name(one.row, table),
            ", ".join(f"{axis}={one.hyper[axis]}" for axis in one.row.grid),
            _compared(one, tried_settings(rows, table, one.row)),
            counted(one.choice.summary),
            *([counted(one.choice.on_test)] if table.test_metric else []),
            counted(one.reported),
            *([number(*one.paper, metric.digits) if one.paper else "-"] if in_paper else []),
        ]
        for one in found
    ]
    header = [
        "method", "chosen setting", "settings compared",
        "held-out data, seeds for choosing" if table.choosing else "seeds for choosing",
        *(["best on the test set itself"] if table.test_metric else []), "reported seeds",
        *(["paper"] if in_paper else []),
    ]  # fmt: skip
    notes = _incomplete(table, rows, [one.row for one in found])
    notes += [_how_the_paper_chose(table)] * in_paper
    title = f"{table.title}: settings chosen by sweep, {metric.title} (runs)"
    return Text(title, header, lines, notes)


def _compared(one: ChoiceRow, tried: int) -> str:
    """The number of settings compared, and whether others were tried besides."""
    compared = one.choice.compared
    besides = f" ({tried} tried)" if tried > compared else ""
    return f"{compared} of {len(one.row.candidates())}{besides}"


def _name(row: Row, table: Table) -> str:
    several = sum(other.title == row.title for other in table.rows) > 1
    return f"{row.title}, {row.settings['neurons']:,}" if several else row.title


def _how_the_paper_chose(table: Table) -> str:
    if table.test_metric:
        return (
            "The paper mentions no held-out data and seems to choose by test accuracy; the fifth "
            "column is the best mean test accuracy of the choosing runs, on the seeds that all "
            "settings have, for that comparison only. Standard errors of held-out data are over "
            "seeds; the held-out samples are the same for all of them."
        )
    return (
        "The paper chooses and reports on the same runs, which favours every row: compare its "
        "numbers with the fourth column; the fifth is the honest one."
    )


def _incomplete(table: Table, rows: pl.DataFrame, chosen: Sequence[Row]) -> list[str]:
    """A sentence for each row whose grid has been started but not finished."""
    sentences = []
    for row in table.rows:
        done = tried_settings(rows, table, row) if row.grid else 0
        if done and row not in chosen:
            name = _name(row, table)
            width = f" --neurons {row.settings['neurons']}" if name != row.title else ""
            few = " --coarse" if row.coarse else ""
            sentences.append(
                f"{name}: {done} of {len(row.candidates())} settings have runs. A setting is "
                "chosen when all settings of a grid have runs on the same seeds; with the --seeds "
                f"of the first call: elephant sweep {table.name} --methods {row.method}{width}{few}"
            )
    return sentences


def as_text(table: Text) -> str:
    from rich import box, table as rich_table
    from rich.console import Console
    from rich.text import Text as RichText

    width = max(80, min(160, shutil.get_terminal_size((160, 24)).columns))  # never cut numbers
    table = table.narrowed(width)
    drawn = rich_table.Table(title=table.title, box=box.SIMPLE_HEAD, title_justify="left")
    for i, name in enumerate(table.header):
        widest = max((len(line[i]) for line in table.lines), default=0)
        head = name.replace(" ", "\n") if widest < 22 else name
        side: Literal["left", "right"] = "left" if i == 0 else "right"
        short = widest < 22  # numbers never wrap; names and lists of settings do
        drawn.add_column(head, justify=side, no_wrap=short, overflow="fold")
    for line in table.lines:
        drawn.add_row(*map(RichText, line))
    text = io.StringIO()
    console = Console(file=text, width=width)
    console.print(drawn)
    for note in table.notes:
        console.print(RichText(note))
    return text.getvalue().rstrip()


def as_markdown(table: Text) -> str:
    lines = [f"**{table.title}**", "", _pipes(table.header), _pipes(["---"] * len(table.header))]
    lines += [_pipes(line) for line in table.lines]
    for note in table.notes:
        lines += ["", note]
    return "\n".join(lines)


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def as_csv(records: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    if records:
        writer = csv.DictWriter(text, records[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows({**r, "hyper": json.dumps(r["hyper"])} for r in records)
    return text.getvalue().rstrip()


def render(table: Table, rows: pl.DataFrame, form: str, *, sweep: bool = False) -> str:
    """What `elephant show` prints, as "table", "markdown", "json" or "csv"."""
    if form in ("table", "markdown"):
        text = chosen_settings(table, rows) if sweep else comparison(table, rows)
        return (as_text if form == "table" else as_markdown)(text)
    found: Sequence[Any] = choices(table, rows) if sweep else summarise_table(table, rows)
    records = [row.as_record() for row in found]
    return json.dumps(records, indent=2) if form == "json" else as_csv(records)
