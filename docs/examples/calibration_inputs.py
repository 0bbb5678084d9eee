"""Samples of the inputs that the networks of the published sweeps see."""

import jax
import jax.numpy as jnp
import numpy as np

from elephant_nn import load
from elephant_nn.data.embedding import _encoded, make_projection
from elephant_nn.data.encoders import load_encoder
from elephant_nn.rl import make_environment

SIZE = 300


def images(name):
    """Spread over the training set, so that every class is there; pixels in [0, 1]."""
    x = load(name).x_train
    return x[:: len(x) // SIZE][:SIZE]


def unit(name):
    x = images(name).reshape(SIZE, -1)
    return x / 255


def standardised(x, by=None):
    """As `first_batch_scaling` does."""
    by = x if by is None else by
    deviation = by.std(0)
    floor = 0.1 * np.median(deviation[deviation > 1e-6])
    return (x - by.mean(0)) / np.maximum(deviation, floor)


def embedded(name):
    """Embeddings of some images, standardised by images of the first two classes."""
    data, encoder = load(name), load_encoder("efficientnet-lite0")
    first = data.x_train[np.isin(data.y_train, (0, 1))][:125]
    rows = np.concatenate([first, images(name)])
    x = np.concatenate(list(_encoded(encoder, rows, 128)))
    x = x @ make_projection(x.shape[1], 256, 0)
    return standardised(x[125:], x[:125])


def observations(name, steps=3000):
    """What an agent with random actions sees."""
    environment = make_environment(name)

    def step(state, key):
        act, move, again = jax.random.split(key, 3)
        after = environment.step(state, jax.random.randint(act, (), 0, environment.actions), move)
        over = after.terminated | after.truncated
        fresh = environment.reset(again)
        state = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, after.state)
        return state, after.observation

    start = environment.reset(jax.random.key(0))
    _, seen = jax.lax.scan(step, start, jax.random.split(jax.random.key(1), steps))
    return np.asarray(seen)[:: steps // SIZE]


INPUTS = {
    "sine": lambda: np.linspace(0, 2, 200)[:, None],
    "split-digits": lambda: unit("digits"),
    "split-digits, standardised": lambda: standardised(unit("digits")),
    "split-mnist": lambda: unit("mnist"),
    "split-cifar10": lambda: unit("cifar10"),
    "embedding-cifar10": lambda: embedded("cifar10"),
    "embedding-cifar100": lambda: embedded("cifar100"),
    "rl-mountain-car": lambda: observations("mountain-car"),
    "rl-acrobot": lambda: observations("acrobot"),
    "rl-catcher": lambda: observations("catcher"),
}
