"""What the scaling of embeddings and the order of classes are worth, with 1,000 units."""

from dataclasses import replace

from elephant_nn.experiments.spec import Row, Search
from elephant_nn.experiments.tables.choices import chosen
from elephant_nn.experiments.tables.embedding import EMBEDDING_CIFAR10
from elephant_nn.experiments.tables.split_protocols import other
from elephant_nn.runs.cells import Axes

SCALINGS = {
    "none": "as stored", "unit": "divided by the largest magnitude",
    "standard": "standardised by all training data",
}  # fmt: skip
LEGACY_ORDERS = (3, 15, 27, 97)
RATES: Axes = {"lr": (1e-4, 3e-5, 1e-5, 3e-6), "E": (1, 2, 4)}
GRIDS: dict[str, Axes] = {
    "mlp": RATES,
    "emlp": {"lr": (3e-5, 1e-5), "E": (2, 4), "a": (0.08, 0.16, 0.32, 0.64),
             "sigma_bias": (0.32, 0.64, 1.28, 2.56)},
}  # fmt: skip

_NOTES = (
    "1,000 units on the embeddings of embedding-cifar10. One thing at a time differs from that "
    "table: the scaling of inputs, with sweeps of its own, or the order of classes, with the same "
    "settings. The orders are those over which the published numbers of SDMLP and FlyModel are "
    "means, besides the natural one; they are named by their seed."
)


def _rows(base: Row) -> list[Row]:
    as_published = [other(base, "as in the table", {})]
    scaled = [
        other(base, what, {"scaling": scaling}, GRIDS[base.method], Search(1, finalists=3))
        for scaling, what in SCALINGS.items()
    ]
    ordered = [other(base, f"order of classes {n}", {"legacy_order": n}) for n in LEGACY_ORDERS]
    return as_published + scaled + ordered


def _all_rows() -> tuple[Row, ...]:
    narrow = [row for row in EMBEDDING_CIFAR10.rows if row.settings.get("neurons") == 1000]
    rows = [row for base in narrow if base.method in GRIDS for row in _rows(base)]
    return chosen("embedding-protocols", rows)


EMBEDDING_PROTOCOLS = replace(
    EMBEDDING_CIFAR10, name="embedding-protocols", source="beyond the paper", rows=_all_rows(),
    title="Split Embedding CIFAR10, other protocols", notes=_NOTES, columns=(), test_metric=None,
    figures=(),
)  # fmt: skip
