"""What `calibrate` chooses, beside the published sweeps: a table and a figure.

Run: python docs/examples/calibration.py
"""

import json
from pathlib import Path

import polars as pl
from calibration_inputs import INPUTS

from elephant_nn import calibrate
from elephant_nn.report.style import COLOURS, figure

RESULTS = Path("docs/results")
KEYS = ("a", "sigma_bias", "lr", "E")
FIRST_SEED = 1000  # seeds from here on were used to choose settings


def swept(name, metric, methods, neurons):
    """Mean score of every setting of a sweep; more is better."""
    table, _, scaled = name.partition(", ")
    rows = pl.read_parquet(RESULTS / table / "rows.parquet")
    rows = rows.filter((pl.col("seed") >= FIRST_SEED) & pl.col("method").is_in(methods))
    hyper = [json.loads(text) for text in rows["hyper"]]
    more = {key: [h.get(key) for h in hyper] for key in (*KEYS, "neurons", "scaling")}
    rows = rows.with_columns(
        pl.Series(key, values, strict=False) for key, values in more.items()
    ).filter(pl.col("neurons") == neurons)
    if table == "split-digits":
        wanted = pl.col("scaling") == "features" if scaled else pl.col("scaling").is_null()
        rows = rows.filter(wanted)
    sign = -1 if metric == "mse" else 1
    return rows.group_by(KEYS).agg(score=sign * pl.col(metric).mean())


def near(rows, **values):
    """The rows whose setting is nearest to these values, on a logarithmic scale."""
    apart = sum((pl.col(key) / value).log() ** 2 for key, value in values.items())
    rows = rows.with_columns(apart=apart)
    return rows.filter(pl.col("apart") < rows["apart"].min() + 1e-9)


def setting(row):
    return f"{row['a']:g}, {row['sigma_bias']:g}, {row['lr']:.0e}".replace("e-0", "e-")


def compare(name, x, neurons):
    metric = "mse" if name == "sine" else "return" if name.startswith("rl") else "accuracy"
    ours = swept(name, metric, ["emlp"], neurons)
    if not len(ours):
        return None
    relu = swept(name, metric, ["mlp", "mlp-relu"], neurons)["score"].max()
    best = ours.sort("score", descending=True).row(0, named=True)
    found = calibrate(x, neurons)
    shape = near(ours, a=found.a, sigma_bias=found.sigma_bias)
    rate = near(shape, lr=found.lr)
    share = lambda score: (score - relu) / (best["score"] - relu)
    by_shape, by_rate = (part.sort("score", descending=True).row(0, named=True)
                         for part in (shape, rate))  # fmt: skip
    shown = [abs(score) for score in (relu, best["score"], by_shape["score"], by_rate["score"])]
    if best["score"] > relu:
        shares = [f"{max(share(row['score']), -9.99):.2f}" for row in (by_shape, by_rate)]
    else:
        shares = ["-", "-"]
    digits = 0 if metric == "return" and shown[0] > 100 else 3
    texts = [f"{score:.{digits}f}" for score in shown]
    chosen = f"{found.a:.2g}, {found.sigma_bias:.2g}, {found.lr:.0e}".replace("e-0", "e-")
    print(f"| {name} | {neurons:,} | {chosen} | {setting(by_shape)} | {setting(best)} | "
          f"{' | '.join(texts)} | {' | '.join(shares)} |", flush=True)  # fmt: skip
    return ours.with_columns(share=share(pl.col("score"))), found


def draw(ax, name, ours, found):
    """The share of the way from the best ReLU network to the best setting, per shape."""
    best = ours.group_by("a", "sigma_bias").agg(pl.col("share").max())
    colours = ax.scatter(
        best["sigma_bias"], best["a"], c=best["share"], s=220, marker="s", cmap="viridis",
        vmin=0, vmax=1,
    )  # fmt: skip
    ax.plot(found.sigma_bias, found.a, "X", ms=11, mfc=COLOURS["red"], mec="white")
    ax.set(xscale="log", yscale="log", title=name, xlabel="sigma_bias", ylabel="a")
    for axis, key in ((ax.xaxis, "sigma_bias"), (ax.yaxis, "a")):
        axis.set_ticks(sorted(set(ours[key]))[::2], [f"{v:g}" for v in sorted(set(ours[key]))[::2]])
        axis.set_ticks([], minor=True)
    ax.margins(0.2)
    return colours


def main():
    print("| sweep | units | rule | nearest in the sweep | best of the sweep | ReLU | best | "
          "rule's shape | and rate | way: shape | and rate |")  # fmt: skip
    print("| --- |" + " --- |" * 10)
    drawn, axes = figure(2, 5, 15, 6)
    panels = iter(axes)
    for name, inputs in INPUTS.items():
        x = inputs()
        for neurons in (1000, 10_000):
            found = compare(name, x, neurons)
            if found and neurons == 1000:
                colours = draw(next(panels), name, *found)
    drawn.colorbar(colours, ax=axes, label="way from ReLU to the best", shrink=0.6)
    path = RESULTS / "calibration" / "calibration.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn.savefig(path, dpi=80)


if __name__ == "__main__":
    main()
