"""A photograph learned scan line by scan line: does locality work in two dimensions?

The input is a position, the target its grey value; every pixel is seen once, from the top left to
the bottom right. Settings are chosen on another photograph. Run: python docs/examples/scan_lines.py
"""

from itertools import product
from pathlib import Path

import jax
import numpy as np
import optax
from sklearn.datasets import load_sample_image

from elephant_nn import (
    emlp,
    gradient,
    inject_hyperparams,
    learn,
    mlp,
    ridge_head,
    sample_stream,
    squared_error,
)
from elephant_nn.report.style import figure, save_figure

SIDE, BATCH, UNITS = 100, 10, 1000
SEEDS, CHOOSING = range(3), 1000


def photograph(name):
    """Grey values in [-1, 1], averaged to 100x100."""
    image = load_sample_image(name).mean(2) / 127.5 - 1
    side = min(image.shape) // SIDE
    cropped = image[: side * SIDE, : side * SIDE]
    return cropped.reshape(SIDE, side, SIDE, side).mean((1, 3)).astype(np.float32)


def relu(*, lr: float, sigma_bias: float, updates: int):
    return gradient(mlp((2, UNITS, 1), sigma_bias=sigma_bias), optax.adam(lr), updates=updates)


def elephant(*, lr: float, a: float, sigma_bias: float, updates: int):
    network = emlp((2, UNITS, 1), a=a, sigma_bias=sigma_bias)
    return gradient(network, optax.adam(lr), updates=updates)


def ridge(*, a: float, sigma_bias: float):
    return ridge_head(emlp((2, UNITS, 1), a=a, sigma_bias=sigma_bias), 1, regression=True)


METHODS = {
    "MLP (ReLU)": (relu, {
        "lr": (1e-3, 3e-4, 1e-4, 3e-5, 1e-5), "sigma_bias": (0.0, 0.5), "updates": (1, 10),
    }),
    "EMLP": (elephant, {
        "lr": (1e-4, 3e-5, 1e-5, 3e-6), "a": (0.02, 0.04, 0.08), "sigma_bias": (0.25, 0.5),
        "updates": (1, 10),
    }),
    "ridge head, elephant": (ridge, {
        "a": (0.02, 0.04, 0.08), "sigma_bias": (0.06, 0.12, 0.25, 0.5),
    }),
}  # fmt: skip


def stream_of(image):
    places = np.linspace(-1, 1, SIDE, dtype=np.float32)
    x = np.stack(np.meshgrid(places, places, indexing="ij"), -1).reshape(-1, 2)
    return sample_stream(x, image.reshape(-1, 1), batch_size=BATCH)


def run(build, settings, stream, seed):
    learner = inject_hyperparams(build)(**settings)
    state, errors = learn(learner, stream, jax.random.key(seed), squared_error)
    return float(errors[-1]), learner, state


def main():
    other, image = photograph("flower.jpg"), photograph("china.jpg")
    drawn, axes = figure(1, 4, 11, 3.2)
    axes[0].set_title("the photograph")
    axes[0].imshow(image, cmap="gray", vmin=-1, vmax=1)
    print(f"constant: mean squared error {image.var():.4f}")
    for ax, (name, (build, grid)) in zip(axes[1:], METHODS.items(), strict=True):
        candidates = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        scores = [run(build, one, stream_of(other), CHOOSING)[0] for one in candidates]
        best = candidates[int(np.nanargmin(scores))]
        found = [run(build, best, stream_of(image), seed) for seed in SEEDS]
        errors = np.array([error for error, *_ in found])
        se = errors.std(ddof=1) / len(errors) ** 0.5
        print(f"{name}: mean squared error {errors.mean():.4f} ± {se:.4f}, {best}", flush=True)
        _, learner, state = found[0]
        learned = np.asarray(learner.predict(state, stream_of(image).x)).reshape(SIDE, SIDE)
        ax.set_title(f"{name}\nmean squared error {errors.mean():.3f}")
        ax.imshow(learned, cmap="gray", vmin=-1, vmax=1)
    for ax in axes:
        ax.set(xticks=[], yticks=[])
        ax.grid(visible=False)
    save_figure(drawn, Path("docs/results/scan-lines"), "scan-lines")


if __name__ == "__main__":
    main()
