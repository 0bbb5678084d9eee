"""Accuracy along the strict stream of Split MNIST, for learners that forget and one that cannot.

Draws published rows. Run: python docs/examples/where_it_forgets.py
"""

from pathlib import Path

import numpy as np

from elephant_nn.experiments.summaries import runs_of, summarise
from elephant_nn.experiments.tables import TABLES
from elephant_nn.report.publishing import published_rows
from elephant_nn.report.style import COLOURS, band, figure, save_figure

KEPT = Path("docs/results")
LINES = {
    "mlp": ("black", "-", "MLP, gradient steps"),
    "emlp": ("orange", "-", "EMLP, gradient steps"),
    "flymodel": ("green", "-", "FlyModel, 1,000 units"),
    "ridge-head": ("blue", "-", "ridge head on untrained elephants"),
    "randumb": ("pink", "-", "RanDumb"),
    "patches": ("red", "-", "ridge head on patches of the first batch"),
}


def main():
    tables = [TABLES["split-mnist"]]
    drawn, axes = figure(1, len(tables), 7, 4.6)
    for ax, table in zip(axes, tables, strict=True):
        rows = published_rows(KEPT, table.name)
        for method, (colour, style, label) in LINES.items():
            for row in [row for row in table.rows if row.method == method][:1]:
                runs = runs_of(rows, table, row, row.settings)
                if not runs.height:
                    continue
                curves = np.array(runs["accuracy_curve"].to_list())
                batches, final = np.array(runs["batches"][0]), curves[:, -1].mean()
                start = np.zeros((len(curves), 1))
                band(ax, np.append(0, batches), np.hstack([start, curves]), COLOURS[colour], style,
                     f"{label} ({final:.2f})")  # fmt: skip
        last = batches[-1]
        ax.plot([0, last], [0, 1], color="black", lw=0.8, ls=":", label="all seen classes, right")
        for row in [row for row in table.rows if row.method == "emlp/shuffled"]:
            bound = summarise(runs_of(rows, table, row, row.settings), "accuracy").mean
            if bound is not None:
                ax.axhline(bound, color=COLOURS["orange"], lw=1, ls="--")
                ax.annotate("EMLP, shuffled stream", (0, bound), (2, 2), textcoords="offset points",
                            fontsize=8.5)  # fmt: skip
        title = table.title.removesuffix(", class-incremental")
        ax.set(title=title, xlabel="mini-batches seen, two classes at a time", ylim=(0, 1))
        ax.set_xlim(0, last)
        ax.legend(fontsize=8.5, frameon=False, loc="upper left", bbox_to_anchor=(0, 0.9))
    axes[0].set_ylabel("test accuracy over all ten classes")
    save_figure(drawn, KEPT / "forgetting", "where-it-forgets")


if __name__ == "__main__":
    main()
