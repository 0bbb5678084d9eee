"""One style for all figures: a palette that colour-blind people can read, PNG and SVG."""

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from elephant_nn.experiments.spec import Dashes, Row, Table
from elephant_nn.files import write_whole

# Okabe and Ito's palette: distinct for every common form of colour blindness, and in grey.
BLACK = "#000000"
COLOURS = {
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "blue": "#0072B2",
    "red": "#D55E00",
    "pink": "#CC79A7",
    "yellow": "#F0E442",
    "black": BLACK,
}

STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "svg.fonttype": "none",
    "svg.hashsalt": "elephant-nn",
}


def figure(
    rows: int, columns: int, width: float, height: float, **shared: Any
) -> tuple[Figure, list[Axes]]:
    """A figure and its axes in reading order."""
    with mpl.rc_context(STYLE):
        drawn = Figure(figsize=(width, height), layout="constrained")
        drawn.get_layout_engine().set(w_pad=0.1, h_pad=0.06)  # type: ignore[union-attr,call-arg]
        axes = drawn.subplots(rows, columns, squeeze=False, **shared)
    return drawn, list(axes.flat)


def band(
    ax: Axes, x: np.ndarray, curves: np.ndarray, colour: str, dashes: Dashes, label: str
) -> None:
    """Mean over runs, with a band of one standard error; dots where there are few points."""
    mean = curves.mean(0)
    dots = "o" if len(x) <= 10 else ""
    ax.plot(x, mean, color=colour, ls=dashes, label=label, marker=dots, markersize=4)
    if len(curves) > 1:
        se = curves.std(0, ddof=1) / np.sqrt(len(curves))
        ax.fill_between(x, mean - se, mean + se, color=colour, alpha=0.25, lw=0)


def line_of(table: Table, row: Row) -> tuple[str, Dashes]:
    """Colour and dashes of a row; rows without any take the next colours, dash-dotted."""
    if row.line is not None:
        return COLOURS[row.line[0]], row.line[1]
    others = [other.key for other in table.rows if other.line is None and other.drawn]
    colours = list(COLOURS.values())
    return colours[others.index(row.key) % len(colours)], (0, (5, 1, 1, 1))


def legend_below(drawn: Figure, *axes: Axes) -> None:
    """One legend for all panels, under them: each name once."""
    found: dict[str, Any] = {}
    for ax in axes:
        handles, names = ax.get_legend_handles_labels()
        found |= dict(zip(names, handles, strict=True))
    style: Any = {"loc": "outside lower center", "frameon": False, "fontsize": 10}
    drawn.legend(list(found.values()), list(found), ncols=len(found), **style)


def save_figure(drawn: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name.png` and `name.svg`, whole or not at all; the same picture, the same bytes."""
    paths = []
    for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
        buffer = io.BytesIO()
        with mpl.rc_context(STYLE):
            drawn.savefig(buffer, format=suffix[1:], metadata=metadata)
        paths.append(write_whole(folder / f"{name}{suffix}", buffer.getvalue()))
    return paths
