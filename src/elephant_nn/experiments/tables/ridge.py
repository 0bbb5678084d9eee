"""Rows beyond the paper: heads solved from running sums, over random features and over patches."""

from dataclasses import replace

from elephant_nn.experiments.spec import Row
from elephant_nn.experiments.tables.choices import chosen
from elephant_nn.experiments.tables.classes import COARSE, ONE, row
from elephant_nn.runs.cells import Axes, Hyper

SHAPES: Axes = {"a": (0.16, 0.32, 0.64, 1.28), "sigma_bias": (0.16, 0.32, 0.64, 1.28)}
RELU: Axes = {"sigma_bias": (0.0, *SHAPES["sigma_bias"])}
GAMMAS: Axes = {"gamma": (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)}
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


def of_pixels(table: str, numbers: tuple[int, ...], mirrored: int = 0) -> list[Row]:
    """Rows of a table of images, with `numbers` per image of patch features.

    The settings of patch features are searched with the smallest number, and are the same for the
    larger ones.
    """
    protocol: Hyper = {"batch": 125}
    few: tuple[Axes, Axes] = (
        {"a": (0.32, 0.64), "sigma_bias": (0.32, 0.64)},
        {"sigma_bias": (0.0, 0.32)},
    )
    least, *more = numbers
    searched = chosen(table, [
        row("patches", "ridge head, patches, elephant", {**protocol, "neurons": least}, BELLS,
            search=ONE, evaluations=1),
        row("patches/soft", "ridge head, patches, soft threshold", {**protocol, "neurons": least},
            THRESHOLDS, search=ONE, evaluations=1),
    ])  # fmt: skip
    return [
        *random_features(protocol, 1000),
        *random_features(protocol, 10_000, coarse=few),
        row("randumb", "RanDumb", {**protocol, "neurons": 1000}, GAMMAS, search=ONE,
            evaluations=1),
        *searched,
        *(_wider(one, {"neurons": many}) for many in more for one in searched),
        *(_wider(one, {"neurons": mirrored, "mirrored": 1}) for one in searched[:1] if mirrored),
    ]  # fmt: skip


def _wider(searched: Row, settings: Hyper) -> Row:
    title = searched.title + ", mirrored copies" * ("mirrored" in settings)
    return replace(
        searched, title=title, settings={**searched.settings, **settings}, grid={}, search=None,
        runs=3, evaluations=AT_END,
    )  # fmt: skip


def of_embeddings(protocol: Hyper) -> list[Row]:
    """Rows of a table of embeddings."""
    shapes: Axes = {"a": (0.64, 1.28, 2.56, 5.12), "sigma_bias": (0.64, 1.28, 2.56)}
    return random_features(protocol, 1000, shapes, {"sigma_bias": (0.0, *shapes["sigma_bias"])})
