"""One self-contained page: every table and figure from what the store holds."""

import base64
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path

import polars as pl

from elephant_nn.experiments.choosing import choices
from elephant_nn.experiments.spec import Table
from elephant_nn.experiments.summaries import summarise_table
from elephant_nn.experiments.tables import TABLES
from elephant_nn.files import StorageError, write_whole
from elephant_nn.report.figures import Drawn, draw_figures, draw_returns
from elephant_nn.report.tables import Text, chosen_settings, comparison
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
    """Write `report.html` into the store's folder from what the store holds."""
    stored = {name: (t, read_rows(rows_folder(out, name))) for name, t in TABLES.items()}
    stored = {name: pair for name, pair in stored.items() if pair[1].height}
    if not stored:
        raise StorageError(
            f"there are no results in {out}; run: elephant reproduce sine --out {out}"
        )
    sections = [(table, _section(table, rows, out)) for table, rows in stored.values()]
    tasks = {name: pair for name, pair in stored.items() if "return_curves" in pair[0].figures}
    together = "\n".join(map(_figure, draw_returns(tasks, out / "figures")))
    return write_whole(out / "report.html", _page(sections, together).encode())


def _page(sections: list[tuple[Table, str]], together: str) -> str:
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    versions = f"elephant-nn {version('elephant-nn')}"
    links = "".join(f'<a href="#{e.name}">{escape(e.name)}</a>' for e, _ in sections)
    if together:
        together = f"<section>\n<h2>Return curves of all tasks</h2>\n{together}\n</section>"
    body = "\n".join([*(html for _, html in sections), together]).strip()
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


def _section(table: Table, rows: pl.DataFrame, out: Path) -> str:
    texts = [comparison(table, rows)]
    if any(row.grid for row in table.rows):
        texts.append(chosen_settings(table, rows))
    commands = [
        *_command("reproduce", table, [row.method for row in summarise_table(table, rows)]),
        *_command("sweep", table, [choice.row.method for choice in choices(table, rows)]),
    ]
    figures = draw_figures(table, rows, out / table.name / "figures")
    machines = sorted({" on ".join(filter(None, pair)) for pair in _machines(rows)})
    return "\n".join(
        [
            f'<section id="{table.name}">',
            f"<h2>{escape(table.title)} <small>({escape(table.source)})</small></h2>",
            f"<pre>{escape(chr(10).join(commands))}</pre>",
            *(_table(text) for text in texts if text.lines),
            *map(_figure, figures),
            f'<p class="note">Run with {escape("; ".join(machines))}.</p>',
            "</section>",
        ]
    )


def _machines(rows: pl.DataFrame) -> list[tuple[str, str | None]]:
    columns = [name for name in ("versions", "processor") if name in rows.columns]
    return [(*pair, None)[:2] for pair in rows.select(columns).unique().iter_rows()]


def _command(verb: str, table: Table, found: Sequence[str]) -> list[str]:
    """The command behind these rows; methods are named if some are missing."""
    every = [row.method for row in table.rows if verb == "reproduce" or row.grid]
    some = f" --methods {','.join(dict.fromkeys(found))}" if {*found} != {*every} else ""
    return [f"elephant {verb} {table.name}{some}"] if found else []


def _table(text: Text) -> str:
    cell = lambda value: (
        f'<td class="long">{escape(value)}</td>' if len(value) > 40 else f"<td>{escape(value)}</td>"
    )
    head = "".join(f"<th>{escape(name)}</th>" for name in text.header)
    lines = "".join(f"<tr>{''.join(map(cell, line))}</tr>" for line in text.lines)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in text.notes)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
    return f'<div class="wide">{table}</div>{notes}'


def _figure(drawn: Drawn) -> str:
    picture = base64.b64encode(drawn.png.read_bytes()).decode()
    return (
        f'<figure><img alt="{escape(drawn.png.stem)}" src="data:image/png;base64,{picture}">'
        f"<figcaption>{escape(drawn.caption)}</figcaption></figure>"
    )
