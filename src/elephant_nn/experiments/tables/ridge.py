"""Rows beyond the paper: heads solved from running sums, over random features and over patches."""

from elephant_nn.experiments.spec import Row, Search
from elephant_nn.experiments.tables.classes import COARSE, ONE, row
from elephant_nn.runs.cells import Axes, Hyper

SHAPES: Axes = {"a": (0.16, 0.32, 0.64, 1.28), "sigma_bias": (0.16, 0.32, 0.64, 1.28)}
RELU: Axes = {"sigma_bias": (0.0, *SHAPES["sigma_bias"])}
GAMMAS: Axes = {"gamma": (0.25, 0.5, 1.0, 2.0, 4.0)}
RIDGES: Axes = {"ridge": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)}
BELLS: Axes = {"a": (0.5, 1.0, 2.0), "centre": (1.0, 1.5, 2.0)}
THRESHOLDS: Axes = {"threshold": (0.1, 0.25, 0.5, 1.0)}
AT_END = 1e-9
"""Evaluate after the last batch only."""


def random_features(
    protocol: Hyper, neurons: int, shapes: Axes = SHAPES, relu: Axes = RELU,
    coarse: tuple[Axes, Axes] = ({}, {}),
) -> list[Row]:  # fmt: skip
    """Ridge regression on elephant and on ReLU features."""
    settings: Hyper = {**protocol, "neurons": neurons}
    search = COARSE if coarse[0] else ONE
    return [
        row("ridge-head", "ridge head, elephant", {**settings, "d": 4}, shapes, coarse=coarse[0],
            search=search, evaluations=1),
        row("ridge-head/relu", "ridge head, ReLU", settings, relu, coarse=coarse[1],
            search=search, evaluations=1),
    ]  # fmt: skip


def of_pixels(batch: int, numbers: tuple[int, ...], mirrored: tuple[int, ...] = ()) -> list[Row]:
    """Rows of a table of images, `numbers` per image for patch features.

    With few numbers all settings are searched; those of many have the settings chosen there,
    confirmed or not by a small search.
    """
    protocol: Hyper = {"batch": batch}
    few: tuple[Axes, Axes] = (
        {"a": (0.32, 0.64), "sigma_bias": (0.32, 0.64)},
        {"sigma_bias": (0.0, 0.32)},
    )
    rows = [
        *random_features(protocol, 1000),
        *random_features(protocol, 10_000, coarse=few),
        row("randumb", "RanDumb", {**protocol, "neurons": 1000}, GAMMAS, search=ONE,
            evaluations=1),
    ]  # fmt: skip
    for many in numbers:
        settings: Hyper = {**protocol, "neurons": many}
        first = many == numbers[0]
        search = ONE if first else COARSE
        runs = 5 if first else 3
        evaluations = 1 if first else AT_END
        bells: Axes = {} if first else {"a": (1.0,), "centre": (1.5,)}
        soft: Axes = {} if first else {"threshold": (0.25,)}
        rows += [
            row("patches", "ridge head, patches, elephant", settings, BELLS, coarse=bells,
                search=search, evaluations=evaluations, runs=runs),
            row("patches/soft", "ridge head, patches, soft threshold", settings, THRESHOLDS,
                coarse=soft, search=search, evaluations=evaluations, runs=runs),
        ]  # fmt: skip
    return rows + [
        row("patches", "ridge head, patches and mirrored copies, elephant",
            {**protocol, "neurons": many, "mirrored": 1}, BELLS,
            coarse={"a": (1.0,), "centre": (1.5,)}, search=Search(1, coarse=True),
            evaluations=AT_END, runs=3)
        for many in mirrored
    ]  # fmt: skip


def of_embeddings(protocol: Hyper) -> list[Row]:
    """Rows of a table of embeddings."""
    shapes: Axes = {"a": (0.64, 1.28, 2.56, 5.12), "sigma_bias": (0.64, 1.28, 2.56)}
    relu: Axes = {"sigma_bias": (0.0, *shapes["sigma_bias"])}
    few: tuple[Axes, Axes] = (
        {"a": (1.28, 2.56, 5.12), "sigma_bias": (1.28,)},
        {"sigma_bias": (0.0, 1.28)},
    )
    return [
        *random_features(protocol, 1000, shapes, relu),
        *random_features(protocol, 10_000, shapes, relu, few),
        row("ranpac", "RanPAC, fixed ridge", {**protocol, "neurons": 10_000}, RIDGES, search=ONE,
            evaluations=1),
    ]  # fmt: skip
