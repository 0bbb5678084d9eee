"""Split Embedding CIFAR10, CIFAR100 and Tiny ImageNet: Tables 7 to 9 of the paper."""

from dataclasses import replace
from typing import Any

from elephant_nn.experiments.spec import Paper, Row, Search, Table
from elephant_nn.experiments.tables import classes, ridge
from elephant_nn.experiments.tables.choices import chosen
from elephant_nn.experiments.tables.classes import ONE, row
from elephant_nn.runs.cells import Axes, Hyper

ENCODER = "efficientnet-lite0-128px"
CIFAR_EMBEDDING, TINY_EMBEDDING = f"{ENCODER}-256", f"{ENCODER}-768"

SHAPES: Axes = {"a": (0.02, 0.04, 0.08, 0.16, 0.32, 0.64),
                "sigma_bias": (0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24)}  # fmt: skip
"""The paper's grids for CIFAR and for Tiny ImageNet together, and two larger values: each grid ends
where networks still improve on our inputs, whose variance is 1."""
FEATURES: Axes = {"a": (0.32, 0.64, 1.28, 2.56, 5.12),
                  "sigma_bias": (0.16, 0.32, 0.64, 1.28, 2.56)}  # fmt: skip
RATES: Axes = {"lr": (1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7), "E": (1, 2, 4)}
TINY_RATES: Axes = {"lr": (3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7), "E": (1, 2, 4, 8)}
"""The paper's grid, larger rates, because tasks have four batches, and a smaller E."""
FLY: Axes = {"lr": (0.005, 0.01, 0.05, 0.2), "per_unit": (4, 8, 16, 32, 64, 128)}

NOTES = (
    "Inputs are embeddings of the images: the features of a frozen EfficientNet-Lite0, trained on "
    "ImageNet, for images resized to 128 pixels, reduced to {} numbers by a random projection. The "
    "paper's embeddings come from other encoders (ConvMixers), so its numbers are not directly "
    "comparable with ours: compare the rows of one column. Inputs are standardised by the first "
    "batch, for all methods alike. Accuracy is over the whole test set after the last batch; "
    "classes come in their natural order, two at a time."
)
TINY_NOTES = " The classes of Tiny ImageNet are among those the encoder was trained on."


def _protocol(embedding: str, batch: int) -> Hyper:
    return {"batch": batch, "embedding": embedding, "scaling": "first-batch"}


def _references(protocol: Hyper, features: Axes = FEATURES) -> list[Row]:
    """Chance, and class statistics of the embeddings and of random elephant features of them."""
    batch = int(protocol["batch"])
    rows = [one for one in classes.references(batch, ONE) if one.method != "naive-bayes/elephant"]
    return [
        replace(
            one, title=one.title.replace("pixels", "embeddings"),
            settings={**one.settings, **protocol}, grid=features if one.grid else {},
        )
        for one in rows
    ]  # fmt: skip


def _shuffled(rows: list[Row], axes: Axes, shapes: Axes, runs: int) -> list[Row]:
    """MLP and EMLP of the smaller width on the shuffled stream."""
    first = {row.method: row for row in reversed(rows) if row.method in ("mlp", "emlp")}
    return [
        replace(
            first[method], method=f"{method}/shuffled", title=f"{first[method].title}, shuffled",
            settings={**first[method].settings, "order": "shuffled"}, paper={}, drawn=False,
            grid={**axes, **(shapes if method == "emlp" else {})}, coarse={}, search=ONE,
            runs=runs, evaluations=1,
        )
        for method in ("mlp", "emlp")
    ]  # fmt: skip


def _table(
    name: str, title: str, source: str, data: str, rows: list[Row], protocol: Hyper
) -> Table:
    numbers = str(protocol["embedding"]).rpartition("-")[2]
    return classes.split_table(
        name, f"Split Embedding {title}, class-incremental", source, chosen(name, rows), data=data,
        notes=NOTES.format(numbers) + TINY_NOTES * (data == "tiny-imagenet"), defaults=protocol,
        evaluations=4 if data == "cifar10" else 1,
    )  # fmt: skip


def _cifar_width(
    neurons: int, papers: tuple[Paper, ...], passes: int, rates: Axes, elephant: Axes,
    grid: Axes = RATES, shapes: Axes = SHAPES, fly: Axes | None = None, finalists: int = 3,
) -> list[Row]:  # fmt: skip
    """The paper's four methods with this many units; `rates`, `elephant` and `fly` are coarse
    grids."""
    mlp, sdmlp, flymodel, emlp = papers
    settings: Hyper = {"neurons": neurons, **_protocol(CIFAR_EMBEDDING, 125)}
    more: dict[str, Any] = {
        "search": Search(1, coarse=True, finalists=finalists),
        "runs": 10 if neurons == 1000 else 5,
    }  # fmt: skip
    return [
        row("mlp", "MLP", settings, grid, coarse=rates, paper=mlp, **more),
        row(
            "sdmlp", f"SDMLP, {passes} passes",
            {**settings, "passes": passes, "k": 10, "lr": 0.5, "switch": 2.5e3 * passes},
            {"k": (1, 10), "lr": (0.05, 0.5), "switch": (5e3, 2.5e4, 5e4, 5e5)},
            coarse={"k": (10,), "lr": (0.05, 0.5), "switch": (5e4,)}, runs=1, evaluations=1,
            search=classes.COARSE if neurons == 1000 else None, paper=sdmlp,
        ),
        row("flymodel", "FlyModel", settings, FLY, coarse=fly or {},
            search=classes.COARSE if fly else ONE, paper=flymodel),
        row(
            "emlp", "EMLP", {**settings, "d": 4}, {**grid, **shapes},
            coarse=elephant, paper=emlp, **more,
        ),
    ]  # fmt: skip


def _cifar(name: str, data: str, source: str, rows: list[Row]) -> Table:
    protocol = _protocol(CIFAR_EMBEDDING, 125)
    rows = [*rows, *_references(protocol), *ridge.of_embeddings(protocol)]
    rates: Axes = {"lr": (1e-3, 3e-4, 1e-4), "E": (1, 2, 4)}
    rows += _shuffled(rows, rates, {"a": (0.32, 0.64), "sigma_bias": (0.64, 1.28)}, 3)
    return _table(name, data.upper(), source, data, rows, protocol)


def _cifar10() -> list[Row]:
    rates: Axes = {"lr": (1e-4, 3e-5, 1e-5, 3e-6), "E": (1, 2, 4)}
    wide: Axes = {"lr": (3e-6, 1e-6, 3e-7), "E": (1, 2, 4)}
    wide_elephant: Axes = {"lr": (1e-5, 3e-6), "E": (1, 2, 4), "a": (0.16, 0.32),
                           "sigma_bias": (2.56, 5.12, 10.24)}  # fmt: skip
    shapes: Axes = {"a": (0.16, 0.32, 0.64), "sigma_bias": (0.64, 1.28, 2.56)}
    narrow_papers: tuple[Paper, ...] = (0.662, 0.006), (0.56, None), (0.69, None), (0.726, 0.008)
    wide_papers: tuple[Paper, ...] = (0.697, 0.002), (0.77, None), (0.82, None), (0.755, 0.002)
    return [
        *_cifar_width(1000, narrow_papers, 20, rates, {**rates, **shapes}),
        *_cifar_width(10000, wide_papers, 10, wide, wide_elephant),
    ]


def _cifar100() -> list[Row]:
    """Tasks have eight batches, so rates are larger, up to ten times the paper's largest."""
    grid: Axes = {**RATES, "lr": (1e-3, 3e-4, *RATES["lr"])}
    more: Axes = {**SHAPES, "a": (*SHAPES["a"], 1.28)}
    rates: Axes = {"lr": (1e-3, 3e-4, 1e-4, 3e-5), "E": (1, 2, 4)}
    elephant: Axes = {"lr": (1e-3, 3e-4, 1e-4), "E": (1, 2, 4), "a": (0.32, 0.64, 1.28),
                      "sigma_bias": (0.32, 0.64, 1.28)}  # fmt: skip
    wide: Axes = {"lr": (1e-4, 3e-5, 1e-5, 3e-6), "E": (1, 2, 4)}
    wide_elephant: Axes = {"lr": (3e-5, 1e-5), "E": (2, 4), "a": (0.32, 0.64),
                           "sigma_bias": (1.28, 2.56, 5.12)}  # fmt: skip
    wide_fly: Axes = {"lr": (0.01, 0.05), "per_unit": (64, 128)}
    narrow_papers: tuple[Paper, ...] = (0.157, 0.001), (0.39, None), (0.36, None), (0.391, 0.003)
    wide_papers: tuple[Paper, ...] = (0.425, 0.001), (0.43, None), (0.58, None), (0.449, 0.002)
    return [
        *_cifar_width(1000, narrow_papers, 20, rates, elephant, grid, more),
        *_cifar_width(10000, wide_papers, 10, wide, wide_elephant, grid, more, wide_fly, 0),
    ]


EMBEDDING_CIFAR10 = _cifar("embedding-cifar10", "cifar10", "Table 7", _cifar10())
EMBEDDING_CIFAR100 = _cifar("embedding-cifar100", "cifar100", "Table 8", _cifar100())


def _tiny() -> Table:
    protocol = _protocol(TINY_EMBEDDING, 250)
    papers: dict[int, tuple[Paper, Paper]] = {
        10_000: ((0.249, 0.003), (0.241, 0.002)),
        100_000: ((0.264, 0.002), (0.350, 0.002)),
    }
    # A run with 100,000 units takes minutes on two cores: few settings, transferred from 10,000.
    # An update moves outputs by about the rate times the number of active units, which goes with
    # the number of units over sigma_bias: with ten times the units, rates fall or biases spread.
    rates: dict[int, Axes] = {
        10_000: {"lr": (3e-4, 1e-4, 3e-5), "E": (1,)},
        100_000: {"lr": (1e-5, 3e-6, 1e-6), "E": (1,)},
    }
    shapes: dict[int, Axes] = {
        10_000: {"lr": (3e-4, 1e-4), "a": (0.32, 0.64, 1.28), "sigma_bias": (1.28, 2.56, 5.12)},
        100_000: {"lr": (1e-4, 3e-5), "a": (0.64,), "sigma_bias": (5.12, 10.24)},
    }
    grid: Axes = {**SHAPES, "a": (*SHAPES["a"], 1.28)}
    rows = []
    for neurons, (mlp, emlp) in papers.items():
        settings: Hyper = {"neurons": neurons, **protocol}
        more = {"runs": 3, "search": classes.COARSE,
                "evaluations": 1 if neurons < 100_000 else 0.05}  # fmt: skip
        rows += [
            row("mlp", "MLP", settings, TINY_RATES, coarse=rates[neurons], paper=mlp, **more),
            row("emlp", "EMLP", {**settings, "d": 4}, {**TINY_RATES, **grid},
                coarse={**rates[neurons], **shapes[neurons]}, paper=emlp, **more),
        ]  # fmt: skip
    rows += _references(protocol, {"a": (0.64, 2.56, 5.12), "sigma_bias": (0.64, 2.56)})
    rows += ridge.of_embeddings(protocol)
    few: Axes = {"lr": (3e-4, 1e-4), "E": (1,)}
    rows += _shuffled(rows, few, {"a": (0.64,), "sigma_bias": (1.28,)}, 1)
    return _table(
        "embedding-tiny-imagenet", "Tiny ImageNet", "Table 9", "tiny-imagenet", rows, protocol
    )


EMBEDDING_TINY_IMAGENET = _tiny()

EMBEDDING = (EMBEDDING_CIFAR10, EMBEDDING_CIFAR100, EMBEDDING_TINY_IMAGENET)
