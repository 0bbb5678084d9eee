"""One self-contained page: every table and figure that the store can give."""

import base64
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path

import polars as pl

from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.experiments.spec import Experiment
from elephant_nn.files import write_whole
from elephant_nn.report.figures import Drawn, draw_figures, draw_returns
from elephant_nn.report.statistics import selection, table
from elephant_nn.report.tables import Grid, choices, comparison
from elephant_nn.runs.store import read_rows, rows_folder

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
h3 { font-size: 1rem; }
.wide { overflow-x: auto; width: max-content; max-width: calc(100vw - 2rem); position: relative;
  left: 50%; transform: translateX(-50%); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; }
td { white-space: nowrap; } td.long { white-space: normal; min-width: 14rem; text-align: left; }
pre { background: var(--soft); padding: .6rem .8rem; border-radius: 6px; white-space: pre-wrap;
  overflow-wrap: anywhere; }
img { max-width: 100%; height: auto; background: white; border-radius: 6px; }
figure { margin: 1rem 0; } figcaption, .note { font-size: .85rem; opacity: .8; }
nav a { margin-right: 1rem; }
@media (max-width: 480px) { table { font-size: .75rem; } th, td { padding: .25rem .3rem; } }
"""


def write_page(out: Path) -> Path:
    """Write `report.html` into the store's folder from whatever the store holds."""
    sections = []
    for experiment in EXPERIMENTS.values():
        rows = read_rows(rows_folder(out, experiment.name))
        if rows.height:
            sections.append((experiment, _section(experiment, rows, out)))
    together = "\n".join(map(_figure, draw_returns(out, out / "figures")))
    return write_whole(out / "report.html", _page(sections, together).encode())


def _page(sections: list[tuple[Experiment, str]], together: str) -> str:
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    versions = f"elephant-nn {version('elephant-nn')}"
    links = "".join(f'<a href="#{e.name}">{escape(e.name)}</a>' for e, _ in sections)
    if together:
        together = f"<section>\n<h2>Return curves of all tasks</h2>\n{together}\n</section>"
    body = "\n".join([*(html for _, html in sections), together]).strip() or (
        "<p>The store is empty. Run <code>elephant reproduce sine</code> first.</p>"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Elephant networks: ours beside the paper's</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Elephant networks: ours beside the paper's</h1>
<p>Numbers are means over runs with different seeds, ± one standard error. The paper is
<i>Elephant Neural Networks: Born to Be a Continual Learner</i> (Lan and Mahmood, 2023).</p>
<nav>{links}</nav>
{body}
<p class="note">Made {made} with {escape(versions)}, Python {platform.python_version()},
{escape(platform.system())} {escape(platform.machine())}.</p>
</body>
</html>
"""


def _section(experiment: Experiment, rows: pl.DataFrame, out: Path) -> str:
    grids = [comparison(experiment, rows)]
    if any(entry.grid for entry in experiment.entries):
        grids.append(choices(experiment, rows))
    commands = [
        *_command("reproduce", experiment, [row.method for row in table(experiment, rows)]),
        *_command("sweep", experiment, [row.method for row in selection(experiment, rows)]),
    ]
    figures = draw_figures(experiment.name, rows, out / experiment.name / "figures")
    return "\n".join(
        [
            f'<section id="{experiment.name}">',
            f"<h2>{escape(experiment.title)} <small>({escape(experiment.source)})</small></h2>",
            f"<pre>{escape(chr(10).join(commands))}</pre>",
            *(_table(grid) for grid in grids if grid.lines),
            *map(_figure, figures),
            f'<p class="note">Run with {escape("; ".join(sorted(set(rows["versions"]))))}.</p>',
            "</section>",
        ]
    )


def _command(verb: str, experiment: Experiment, found: Sequence[str]) -> list[str]:
    """What gives these rows; methods are named where some are missing."""
    every = [e.method for e in experiment.entries if verb == "reproduce" or e.grid]
    some = f" --methods {','.join(dict.fromkeys(found))}" if {*found} != {*every} else ""
    return [f"elephant {verb} {experiment.name}{some}"] if found else []


def _table(grid: Grid) -> str:
    cell = lambda text: (
        f'<td class="long">{escape(text)}</td>' if len(text) > 40 else f"<td>{escape(text)}</td>"
    )
    head = "".join(f"<th>{escape(name)}</th>" for name in grid.header)
    lines = "".join(f"<tr>{''.join(map(cell, line))}</tr>" for line in grid.lines)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in grid.notes)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
    return f'<div class="wide">{table}</div>{notes}'


def _figure(drawn: Drawn) -> str:
    picture = base64.b64encode(drawn.png.read_bytes()).decode()
    return (
        f'<figure><img alt="{escape(drawn.png.stem)}" src="data:image/png;base64,{picture}">'
        f"<figcaption>{escape(drawn.caption)}</figcaption></figure>"
    )
