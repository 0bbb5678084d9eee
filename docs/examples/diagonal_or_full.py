"""The ridge head with part of the sums of products only: diagonal, low rank plus diagonal, all.

Local features are nearly uncorrelated, so the diagonal, which elastic weight consolidation keeps,
should lose less with them. Run, and show:

    elephant sweep split-mnist --rows docs/examples/diagonal_or_full.py --methods METHODS --seeds 3
    elephant show split-mnist --rows docs/examples/diagonal_or_full.py

where METHODS is the line that `python docs/examples/diagonal_or_full.py` prints.
"""

from elephant_nn.experiments import Row, Search

BUILDERS = "elephant_nn.experiments.methods"
UNITS = 1000
RANKS = {0: "diagonal", 30: "rank 30 + diagonal", 300: "rank 300 + diagonal", UNITS: "all"}
SHAPES = ((0.08, 0.32), (0.32, 0.32), (1.28, 0.64))
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def row(method, title, build, rank, settings):
    return Row(
        f"{method}-rank-{rank}", f"{title}, {RANKS[rank]}", f"{BUILDERS}:{build}",
        {"neurons": UNITS, "rank": rank, "ridge": 1e-3, **settings},
        grid={"ridge": RIDGES if rank < UNITS else (1e-3,)}, search=Search(seeds=1), evaluations=1,
    )  # fmt: skip


ROWS = [
    *(
        row(f"elephant-{a}", f"elephant, a = {a}", "ridge_rank", rank, {"a": a, "sigma_bias": b})
        for a, b in SHAPES
        for rank in RANKS
    ),
    *(row("relu", "ReLU", "ridge_rank_relu", rank, {}) for rank in RANKS),
]

if __name__ == "__main__":
    print(",".join(row.method for row in ROWS))
