"""What the class-incremental tables share: the paper's grids, the kinds of rows, the columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elephant_nn.experiments.spec import Entry, Metric
from elephant_nn.runs.cells import Hyper, Value

Grid = Mapping[str, tuple[Value, ...]]
Paper = tuple[float, float | None]

RATES: Grid = {"lr": (3e-6, 1e-6, 3e-7, 1e-7, 3e-8, 1e-8), "E": (1, 2)}
SHAPES: Grid = {"a": (0.02, 0.04, 0.08, 0.16, 0.32), "sigma_bias": (0.04, 0.08, 0.16, 0.32, 0.64)}
SPRINGS: Grid = {
    "anchor": ("fisher", "average", "previous"),
    "lambda": (1e1, 1e2, 1e3, 1e4, 1e5),
    "gamma": (0.5, 0.8, 0.9, 0.95, 0.99, 0.999),
}
"""The paper's grid, with the anchor that it does not describe as one more axis."""

METRICS = (
    Metric("accuracy", "test accuracy", "higher", 3),
    Metric("forgetting", "forgetting", "lower", 3),
    Metric("learning_accuracy", "learning accuracy", "higher", 3),
    Metric("backward_transfer", "backward transfer", "higher", 3, detail=True),
)
CHOOSING: Hyper = {"held_out": 50}
"""Keep back every 50th sample: not more, because the best rate depends on the stream's length."""

FEW_SPRINGS: Grid = {
    "anchor": ("average",),
    "lr": (3e-6, 1e-6),
    "E": (2,),
    "lambda": (1e1, 1e3, 1e5),
    "gamma": (0.9, 0.999),
}
"""Of EWC's grid, where a run takes minutes: the anchor and E that won on Split MNIST with 1,000
units, where all were tried."""

STIFF_SPRINGS: Grid = {
    "anchor": ("average",),
    "E": (1, 2),
    "lr": (3e-6, 1e-6, 3e-7),
    "lambda": (1e5,),
    "gamma": (0.9,),
}
"""Of EWC's grid, where a run takes longer still: the spring that won for the MLP with 10,000 units
on Split MNIST, at all rates that it allows."""

TOLD_RATES: Grid = {"lr": (1e-5, 3e-6, 1e-6, 3e-7), "E": (1, 2)}
"""For EWC that is told boundaries, which is not in the paper: stiff springs like large rates."""

COLUMNS = ("neurons", "passes", "task_boundary", "class_statistics")


class Rows:
    """Builds the rows of one table: what all of them share is said once."""

    def __init__(self, batch: int):
        self.batch = batch

    def entry(
        self,
        method: str,
        title: str,
        settings: Hyper,
        grid: Grid | None = None,
        coarse: Grid | None = None,
        paper: Paper | None = None,
        **more: Any,
    ) -> Entry:
        return Entry(
            method,
            title,
            {**settings, "batch": self.batch},
            grid or {},
            {"accuracy": paper} if paper else {},
            coarse=coarse or {},
            **more,
        )

    def plain(
        self, method: str, title: str, neurons: int, lr: float, updates: int, **kw: Any
    ) -> Entry:
        """A ReLU network."""
        settings = {"neurons": neurons, "lr": lr, "E": updates}
        return self.entry(method, title, settings, RATES, **kw)

    def elephant(
        self, method: str, title: str, neurons: int, lr: float, updates: int, a: float,
        sigma_bias: float, **kw: Any,
    ) -> Entry:  # fmt: skip
        """An elephant twin, d = 4."""
        settings: Hyper = {
            "neurons": neurons, "lr": lr, "E": updates, "a": a, "sigma_bias": sigma_bias, "d": 4,
        }  # fmt: skip
        return self.entry(method, title, settings, {**RATES, **SHAPES}, **kw)

    def spring(
        self, method: str, title: str, neurons: int, lr: float, updates: int, anchor: str,
        weight: float, decay: float, **kw: Any,
    ) -> Entry:  # fmt: skip
        """A ReLU network with Streaming EWC."""
        settings: Hyper = {
            "neurons": neurons, "lr": lr, "E": updates, "anchor": anchor, "lambda": weight,
            "gamma": decay,
        }  # fmt: skip
        return self.entry(method, title, settings, {**SPRINGS, **RATES}, variant="anchor", **kw)

    def mixers(self, neurons: int, paper: Paper, elephant_paper: Paper) -> list[Entry]:
        """ConvMixer and its twin. A run takes more than half an hour on a core: settings are
        guesses, and the coarse grid is small."""
        rates: Grid = {"lr": (3e-6, 1e-6, 3e-7), "E": (1,)}
        shape: Grid = {"a": (0.08,), "sigma_bias": (0.08,)}
        return [
            self.plain(
                "convmixer", "ConvMixer", neurons, 1e-6, 1,
                coarse=rates, paper=paper, guessed=True,
            ),
            self.elephant(
                "econvmixer", "EConvMixer", neurons, 1e-6, 1, 0.08, 0.08,
                coarse={**rates, **shape}, paper=elephant_paper, guessed=True,
            ),
        ]  # fmt: skip

    def told(self, lr: float, updates: int, weight: float, rates: Grid) -> Entry:
        """EWC on an MLP, told where tasks end."""
        settings: Hyper = {
            "neurons": 1000, "lr": lr, "E": updates, "lambda": weight, "gamma": 1.0,
            "task_boundary": 1,
        }  # fmt: skip
        grid: Grid = {**rates, "lambda": SPRINGS["lambda"]}
        return self.entry("mlp-ewc/boundaries", "MLP + EWC, told boundaries", settings, grid)

    def sdmlp_once(self, k: int, switch: float, lr: float, switches: tuple[float, ...]) -> Entry:
        """SDMLP under the rules of the others: one pass, with rates that suit it."""
        settings: Hyper = {"neurons": 1000, "k": k, "lr": lr, "passes": 1, "switch": switch}
        grid: Grid = {"k": (1, 3, 10, 30), "switch": switches, "lr": (0.05, 0.2, 0.5, 1.0, 2.0)}
        return self.entry("sdmlp/one-pass", "SDMLP, one pass", settings, grid)

    def features(self, method: str, title: str, neurons: int, a: float, sigma_bias: float) -> Entry:
        """A classifier of class statistics over random elephant features."""
        settings = {"neurons": neurons, "a": a, "sigma_bias": sigma_bias, "d": 4}
        return self.entry(f"{method}/elephant", title, settings, SHAPES)


Shape = tuple[float, float]


def references(rows: Rows, features: Mapping[tuple[str, int], Shape]) -> list[Entry]:
    """What a number is worth: rows that the paper lacks.

    `features`: by classifier and width, a and sigma_bias of the random elephant features under it.
    """
    titles = {"nearest-mean": "nearest mean", "naive-bayes": "naive Bayes", "lda": "LDA"}
    return [
        rows.entry("chance", "untrained (chance)", {"neurons": 1000}),
        rows.entry("nearest-mean", "nearest mean, pixels", {}),
        rows.entry("lda", "LDA, pixels", {}),
        *(
            rows.features(method, f"{titles[method]}, elephant", neurons, a, sigma_bias)
            for (method, neurons), (a, sigma_bias) in features.items()
        ),
    ]


def shuffled(entry: Entry, lr: float, updates: int, rates: tuple[float, ...]) -> Entry:
    """The same network with the whole stream shuffled: what it can learn in one pass at all."""
    settings = {**entry.settings, "order": "shuffled", "lr": lr, "E": updates}
    grid: Grid = {"lr": rates, "E": (1, 2)}
    return Entry(f"{entry.method}/shuffled", f"{entry.title}, shuffled", settings, grid)


NOTES = (
    "Accuracy is over the whole test set after the last batch. Pixels in [0, 1], classes in their "
    "natural order, incomplete batches of a task dropped. EWC is Streaming EWC, with its anchor in "
    "brackets. Not in the paper's strict setting, but what its numbers are to be held against: "
    "rows that keep class statistics (of pixels or of random elephant features), EWC that is told "
    "where tasks end, and networks on the shuffled stream."
)
