"""Labels change their meaning half-way: what a forgetting factor is for.

Handwritten digits in random order, twice; from the second time on every digit is called by the next
one's name. Each batch is predicted before it is learned. Run: python docs/examples/drift.py
"""

import jax
import numpy as np
from sklearn.datasets import load_digits

from elephant_nn import emlp, ridge_head

BATCH, UNITS, SEEDS = 10, 300, range(5)
FACTORS = (1.0, 0.995, 0.98, 0.95)


def drifting(seed):
    x, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    parts = [rng.permutation(len(x))[: len(x) // BATCH * BATCH] for _ in range(2)]
    inputs = np.concatenate([x[part] for part in parts]) / 16
    labels = np.concatenate([y[parts[0]], (y[parts[1]] + 1) % 10])
    return inputs.astype(np.float32).reshape(-1, BATCH, 64), labels.reshape(-1, BATCH)


def learner(forgetting):
    network = emlp((64, UNITS, 10), a=0.32, sigma_bias=0.32)
    return ridge_head(network, 10, ridge=1e-3, forgetting=forgetting)


@jax.jit
def right(factor, key, x, y):
    """The number of right predictions in each batch, before it is learned."""
    model = learner(factor)

    def step(state, batch):
        found = model.predict(state, batch[0]).argmax(1)
        return model.update(state, batch), (found == batch[1]).sum()

    return jax.lax.scan(step, model.init(key, x[0]), (x, y))[1]


def main():
    header = ("forgetting", "before", "first 200 after", "last 500")
    print(" | ".join(header))
    for factor in FACTORS:
        found = []
        for seed in SEEDS:
            counts = np.asarray(right(factor, jax.random.key(seed), *drifting(seed))) / BATCH
            half = len(counts) // 2
            found.append([counts[half - 50 : half].mean(), counts[half : half + 20].mean(),
                          counts[-50:].mean()])  # fmt: skip
        mean, se = np.mean(found, 0), np.std(found, 0, ddof=1) / len(found) ** 0.5
        cells = [f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, se, strict=True)]
        print(" | ".join([str(factor), *cells]), flush=True)


if __name__ == "__main__":
    main()
