"""What the class-incremental tables share: the paper's grids and the kinds of rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from elephant_nn.experiments.spec import Dashes, Metric, Row, Search, Table
from elephant_nn.experiments.tables.choices import METHODS, PROBLEMS, chosen
from elephant_nn.runs.cells import Axes, Hyper

NARROW: Hyper = {"neurons": 1000, "batch": 125}
WIDE: Hyper = {"neurons": 10000, "batch": 125}
ONE = Search(seeds=1)
COARSE = Search(seeds=1, coarse=True)

RATES: Axes = {"lr": (3e-6, 1e-6, 3e-7, 1e-7, 3e-8, 1e-8), "E": (1, 2)}
SHAPES: Axes = {"a": (0.02, 0.04, 0.08, 0.16, 0.32), "sigma_bias": (0.04, 0.08, 0.16, 0.32, 0.64)}
PENALTIES: Axes = {
    "anchor": ("fisher", "average", "previous"),
    "lambda": (1e1, 1e2, 1e3, 1e4, 1e5),
    "gamma": (0.5, 0.8, 0.9, 0.95, 0.99, 0.999),
}
"""The paper's grid of EWC. The paper does not describe the anchor, so it is one more axis."""
EWC: Axes = {**PENALTIES, **RATES}
ELEPHANT: Axes = {**RATES, **SHAPES}

FEW_PENALTIES: Axes = {
    "anchor": ("average",), "lr": (3e-6, 1e-6), "E": (2,),
    "lambda": (1e1, 1e3, 1e5), "gamma": (0.9, 0.999),
}  # fmt: skip
"""For runs that take minutes: anchor and E that won on Split MNIST with 1,000 units, of all."""

LARGE_PENALTY: Axes = {
    "anchor": ("average",), "E": (1, 2), "lr": (3e-6, 1e-6, 3e-7),
    "lambda": (1e5,), "gamma": (0.9,),
}  # fmt: skip
"""For runs that take longer still: the penalty that won for the MLP with 10,000 units on Split
MNIST, at all rates that it allows."""

ONLINE_EWC_RATES: Axes = {"lr": (1e-5, 3e-6, 1e-6, 3e-7), "E": (1, 2)}
"""Not in the paper. Large penalties want large rates."""

METRICS = (
    Metric("accuracy", "test accuracy", "higher", 3),
    Metric("forgetting", "forgetting", "lower", 3),
    Metric("learning_accuracy", "learning accuracy", "higher", 3),
    Metric("backward_transfer", "backward transfer", "higher", 3, detail=True),
)
COLUMNS = ("neurons", "passes", "task_boundary", "class_statistics")
FIGURES = ("accuracy_curves", "task_maps")
CHOOSING: Hyper = {"held_out": 50}
"""Hold out every 50th sample, no more: the best rate depends on the length of the stream."""

NOTES = (
    "Accuracy is over the whole test set after the last batch. Pixels are in [0, 1], classes in "
    "their natural order, and incomplete batches of a task are dropped. EWC is Streaming EWC, with "
    "its anchor in brackets. Three kinds of rows are outside the paper's strict setting and put "
    "its numbers into perspective: rows that keep class statistics (of pixels or of random "
    "elephant features), EWC with known task boundaries, and networks on the shuffled stream."
)

# Colours show the remedy against forgetting, dashes the network. The dashes of one CNN fill the
# gaps of the other: with a small penalty both curves are the same.
LINES: Mapping[str, tuple[str, Dashes]] = {
    "mlp": ("orange", "-"), "cnn": ("orange", (0, (4, 4))),
    "mlp-ewc": ("green", "-"), "cnn-ewc": ("green", (12, (4, 4))),
    "mlp-ewc/boundaries": ("green", ":"),
    "emlp": ("blue", "-"), "ecnn": ("blue", "--"),
    "convmixer": ("red", ":"), "econvmixer": ("sky", ":"), "flymodel": ("pink", "-."),
}  # fmt: skip
BUILDERS = {"sdmlp/one-pass": "sdmlp", "mlp-ewc/boundaries": "mlp_online_ewc"}


def row(
    method: str, title: str, settings: Hyper, grid: Axes | None = None,
    *, paper: tuple[float, float | None] | None = None, **more: Any,
) -> Row:  # fmt: skip
    """A row whose builder has the method's name."""
    builder = BUILDERS.get(method, method.replace("-", "_").replace("/", "_"))
    return Row(
        method, title, f"{METHODS}:{builder}", settings, grid or {},
        paper={"accuracy": paper} if paper else {},
        line=LINES.get(method), drawn=method in LINES, **more,
    )  # fmt: skip


def mixers(
    neurons: int, batch: int, paper: tuple[float, float], elephant_paper: tuple[float, float]
) -> list[Row]:
    """ConvMixer and EConvMixer: settings are guesses and the coarse grid is small, because a run
    takes more than half an hour on a core."""
    guess: Hyper = {"neurons": neurons, "batch": batch, "lr": 1e-6, "E": 1}
    rates: Axes = {"lr": (3e-6, 1e-6, 3e-7), "E": (1,)}
    return [
        row("convmixer", "ConvMixer", guess, RATES, coarse=rates, paper=paper, runs=1,
            evaluations=1),
        row("econvmixer", "EConvMixer", {**guess, "a": 0.08, "sigma_bias": 0.08, "d": 4},
            {**RATES, **SHAPES}, coarse={**rates, "a": (0.08,), "sigma_bias": (0.08,)},
            paper=elephant_paper, runs=1, evaluations=1),
    ]  # fmt: skip


def wide_cnn_ewc(paper: tuple[float, float]) -> Row:
    """EWC on the CNN with 10,000 units: one run with guessed settings, until a sweep chooses."""
    guess: Hyper = {"lr": 3e-7, "E": 1, "anchor": "average", "lambda": 1e1, "gamma": 0.9}
    return row(
        "cnn-ewc", "CNN + EWC", {**WIDE, **guess}, EWC, paper=paper, variant="anchor",
        coarse=LARGE_PENALTY, runs=1, evaluations=1,
    )  # fmt: skip


def online_ewc(batch: int, rates: Axes, **more: Any) -> Row:
    """EWC on an MLP that knows where tasks end."""
    settings = {"neurons": 1000, "batch": batch, "gamma": 1.0, "task_boundary": 1}
    grid: Axes = {**rates, "lambda": PENALTIES["lambda"]}
    return row("mlp-ewc/boundaries", "MLP + Online EWC, known boundaries", settings, grid, **more)


def sdmlp_one_pass(batch: int, switches: tuple[float, ...], **more: Any) -> Row:
    """SDMLP under the rules of the others: one pass, with rates that suit it."""
    settings = {"neurons": 1000, "batch": batch, "passes": 1}
    grid: Axes = {"k": (1, 3, 10, 30), "switch": switches, "lr": (0.05, 0.2, 0.5, 1.0, 2.0)}
    return row("sdmlp/one-pass", "SDMLP, one pass", settings, grid, **more)


def references(batch: int, search: Search, wide: tuple[str, ...] = (), **more: Any) -> list[Row]:
    """Rows that put the paper's numbers into perspective: chance, and class statistics.

    Statistics are over pixels, and over random elephant features; for the methods in `wide`, also
    over features of 10,000 units.
    """
    titles = {"nearest-mean": "nearest mean", "naive-bayes": "naive Bayes", "lda": "LDA"}
    features = [(method, 1000) for method in titles] + [(method, 10000) for method in wide]
    return [
        row("chance", "untrained (chance)", {"neurons": 1000, "batch": batch}, **more),
        row("nearest-mean", "nearest mean, pixels", {"batch": batch}, **more),
        row("lda", "LDA, pixels", {"batch": batch}, **more),
        *(
            row(f"{method}/elephant", f"{titles[method]}, elephant",
                {"neurons": neurons, "batch": batch, "d": 4}, SHAPES, search=search, **more)
            for method, neurons in features
        ),
    ]  # fmt: skip


def closing_rows(
    mixer: tuple[float, float], elephant_mixer: tuple[float, float], wide: tuple[str, ...] = ()
) -> list[Row]:
    """The last rows of Split MNIST and CIFAR10: wide ConvMixers, then what the paper lacks."""
    return [
        *mixers(10000, 125, mixer, elephant_mixer),
        *references(125, ONE, wide),
        online_ewc(125, ONLINE_EWC_RATES, search=Search(1, finalists=3)),
    ]


def with_shuffled(
    table: str, rows: Sequence[Row], rates: tuple[float, ...], search: Search, **more: Any
) -> tuple[Row, ...]:
    """The chosen rows, and MLP and EMLP on the shuffled stream: what one pass can teach them."""
    settled = chosen(table, rows)
    narrow = {row.method: row for row in reversed(settled) if row.method in ("mlp", "emlp")}
    shuffled = [
        replace(
            narrow[method], method=f"{method}/shuffled", title=f"{narrow[method].title}, shuffled",
            settings={**narrow[method].settings, "order": "shuffled"},
            grid={"lr": rates, "E": (1, 2)}, coarse={}, paper={}, search=search,
            drawn=False, chosen=False, **more,
        )
        for method in ("mlp", "emlp")
    ]  # fmt: skip
    return (*settled, *chosen(table, shuffled))


def split_table(name: str, title: str, source: str, rows: tuple[Row, ...], **more: Any) -> Table:
    """A class-incremental table; its problem has the table's name."""
    usual: dict[str, Any] = {
        "defaults": {"batch": 125}, "choosing": CHOOSING, "notes": NOTES, "evaluations": 4,
    }  # fmt: skip
    return Table(
        name, title, source, METRICS, rows, f"{PROBLEMS}:{name.replace('-', '_')}",
        columns=COLUMNS, test_metric="test_accuracy", figures=FIGURES,
        **(usual | more),
    )  # fmt: skip
