"""A method of your own beside those of a table: softmax over the classes of the batch only.

Run it: elephant reproduce split-digits --rows docs/examples/my_rows.py --methods emlp,emlp-batch
"""

import math

import jax.numpy as jnp
import optax

from elephant_nn import Learner, emlp, gradient
from elephant_nn.experiments import Row, Search


def batch_cross_entropy(out, y):
    """Cross-entropy over the classes in the batch: other classes are not pushed down."""
    present = jnp.zeros(out.shape[1], bool).at[y].set(True)
    logits = jnp.where(present, out, -jnp.inf)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def emlp_batch(
    shape, classes, *, neurons: int, lr: float, a: float, sigma_bias: float, updates: int = 1
) -> Learner:
    network = emlp((math.prod(shape), neurons, classes), a=a, sigma_bias=sigma_bias)
    optimiser = optax.rmsprop(lr, decay=0.999)
    return gradient(network, optimiser, batch_cross_entropy, updates=updates)


ROWS = [
    Row(
        method="emlp-batch",
        title="EMLP, softmax over the batch",
        build=emlp_batch,
        settings={"neurons": 1000, "lr": 1e-4, "a": 0.08, "sigma_bias": 0.32},
        grid={"lr": (3e-4, 1e-4, 3e-5), "updates": (1, 2)},
        search=Search(seeds=5),
    )
]
