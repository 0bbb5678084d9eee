"""Classifiers from running sums per class, without gradients.

They need one pass and no boundaries, and the order of samples does not matter; but they keep
statistics of every class, which the paper's strict setting excludes. They put its numbers into
perspective. Features are summed as differences from the mean of the first batch, so that a large
common offset costs no precision.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from elephant_nn.learners.learner import Batch, Contract, Learner, outside
from elephant_nn.nn.networks import Network, Params

KEEPS = Contract(class_statistics=True)

RAW_INPUTS = Network(lambda key: (), lambda params, x: x.reshape(len(x), -1), lambda params, h: h)
"""The inputs themselves as features."""


class ClassSums(NamedTuple):
    """Per class: the number of samples, and the sums of features and of squared features."""

    params: Params
    origin: Float[Array, " width"]
    samples: Float[Array, " classes"]
    total: Float[Array, "classes width"]
    squares: Float[Array, "classes width"]


class Covariance(NamedTuple):
    """Per class: the number of samples and the sums of features; overall: the sums of products."""

    params: Params
    origin: Float[Array, " width"]
    samples: Float[Array, " classes"]
    total: Float[Array, "classes width"]
    products: Float[Array, "width width"]


def nearest_class_mean(network: Network, width: int, classes: int) -> Learner:
    """Predict the class whose mean is nearest, over the features of `network` as initialised."""

    def predict(state: ClassSums, x: Array) -> Array:
        h, mean = network.features(state.params, x) - state.origin, _means(state)
        return _mask_unseen(state.samples, 2 * h @ mean.T - jnp.sum(mean**2, 1))

    return Learner(_init(network, width, classes), _make_update(network), predict, KEEPS)


def naive_bayes(network: Network, width: int, classes: int, floor: float = 1e-2) -> Learner:
    """Gaussian naive Bayes over the features of `network` as initialised.

    `floor`, times the mean variance of the classes seen so far, is added to every variance.
    """
    if outside(floor, 0):
        raise ValueError(f"naive_bayes: floor must be 0 or more, got {floor}")

    def predict(state: ClassSums, x: Array) -> Array:
        h, mean = network.features(state.params, x) - state.origin, _means(state)
        n = jnp.maximum(state.samples, 1)[:, None]
        variance = jnp.maximum(state.squares / n - mean**2, 0.0)
        seen = jnp.maximum(jnp.sum(state.samples > 0), 1)
        variance = variance + floor * jnp.sum(variance) / (seen * width) + 1e-6
        score = h**2 @ (1 / variance).T - 2 * h @ (mean / variance).T
        score += jnp.sum(mean**2 / variance + jnp.log(variance), 1)
        return _mask_unseen(state.samples, jnp.log(n[:, 0]) - score / 2)

    return Learner(_init(network, width, classes), _make_update(network), predict, KEEPS)


def streaming_lda(
    network: Network, width: int, classes: int, shrinkage: float | None = 1e-2
) -> Learner:
    """Linear discriminant analysis from running means and one running covariance.

    Over the features of `network` as initialised. The covariance is mixed with `shrinkage` of its
    mean diagonal before it is inverted; with None by the OAS formula (Chen et al., 2010), which
    follows from the covariance and the number of samples.
    """
    if shrinkage is not None and outside(shrinkage, 0, 1):
        raise ValueError(f"streaming_lda: shrinkage must be between 0 and 1, got {shrinkage}")

    def init(key: Array, x: Array) -> Covariance:
        start = _init(network, width, classes)(key, x)
        return Covariance(*start[:-1], jnp.zeros((width, width)))

    def update(state: Covariance, batch: Batch) -> Covariance:
        origin, h, labels = _centred(network, state, batch)
        samples, total = state.samples + labels.sum(0), state.total + labels.T @ h
        return Covariance(state.params, origin, samples, total, state.products + h.T @ h)

    def predict(state: Covariance, x: Array) -> Array:
        h, mean = network.features(state.params, x) - state.origin, _means(state)
        seen = jnp.maximum(state.samples.sum(), 1)
        within = (state.products - (mean.T * state.samples) @ mean) / seen
        rounding = 1e-5 * jnp.mean(jnp.diag(state.products)) / seen  # keeps it invertible
        share = _oas(within, seen) if shrinkage is None else shrinkage
        even = share * jnp.mean(jnp.diag(within)) + rounding + 1e-6
        within = (1 - share) * within + even * jnp.eye(width)
        directions = jax.scipy.linalg.solve(within, mean.T, assume_a="pos")
        prior = jnp.log(jnp.maximum(state.samples, 1))
        return _mask_unseen(
            state.samples, h @ directions - jnp.sum(mean.T * directions, 0) / 2 + prior
        )

    return Learner(init, update, predict, KEEPS)


def _oas(covariance: Array, samples: Array) -> Array:
    """The shrinkage that OAS chooses for a covariance of so many samples."""
    width = len(covariance)
    squares, mean = jnp.mean(covariance**2), jnp.mean(jnp.diag(covariance))
    excess = (samples + 1) * (squares - mean**2 / width)
    return jnp.where(excess > 0, jnp.minimum((squares + mean**2) / excess, 1.0), 1.0)


def _init(network: Network, width: int, classes: int) -> Callable[[Array, Array], ClassSums]:
    def init(key: Array, x: Array) -> ClassSums:
        zeros = jnp.zeros((classes, width))
        return ClassSums(network.start(key, x), jnp.zeros(width), jnp.zeros(classes), zeros, zeros)

    return init


def _make_update(network: Network) -> Callable[[ClassSums, Batch], ClassSums]:
    def update(state: ClassSums, batch: Batch) -> ClassSums:
        origin, h, labels = _centred(network, state, batch)
        samples, total = state.samples + labels.sum(0), state.total + labels.T @ h
        return ClassSums(state.params, origin, samples, total, state.squares + labels.T @ h**2)

    return update


def _centred(
    network: Network, state: ClassSums | Covariance, batch: Batch
) -> tuple[Array, Array, Array]:
    """The origin of the features, the batch's features relative to it, and its one-hot labels."""
    h = network.features(state.params, batch[0])
    if h.shape[1:] != state.origin.shape:
        raise ValueError(
            f"class statistics: expected features of width {len(state.origin)}, but the network's "
            f"have shape {h.shape[1:]}"
        )
    origin = jnp.where(state.samples.sum() > 0, state.origin, h.mean(0))
    return origin, h - origin, jax.nn.one_hot(batch[1], len(state.samples))


def _means(state: ClassSums | Covariance) -> Array:
    return state.total / jnp.maximum(state.samples, 1)[:, None]


def _mask_unseen(samples: Array, scores: Array) -> Array:
    """Scores with unseen classes below all others."""
    return jnp.where(samples > 0, scores, scores.min(1, keepdims=True) - 1)
