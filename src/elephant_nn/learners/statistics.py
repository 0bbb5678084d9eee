"""Classifiers made of running sums by class: what a stream gives without any gradient.

They need one pass and no boundaries and cannot forget, but they keep statistics of every class,
which the strict setting of the paper has no place for. They tell what its numbers are worth.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from elephant_nn.learners.learner import Batch, Contract, Learner
from elephant_nn.networks import Network

KEEPS = Contract(class_statistics=True)

RAW = Network(lambda key: (), lambda params, x: x.reshape(len(x), -1), lambda params, h: h)
"""The inputs themselves as features."""


class ClassSums(NamedTuple):
    """Fixed parameters of the features; by class: samples, sum and sum of squares of features."""

    params: Any
    count: Float[Array, " classes"]
    total: Float[Array, "classes width"]
    squares: Float[Array, "classes width"]


class Covariance(NamedTuple):
    """As `ClassSums`, with the sum of products of features over all classes."""

    params: Any
    count: Float[Array, " classes"]
    total: Float[Array, "classes width"]
    products: Float[Array, "width width"]


def nearest_class_mean(network: Network, width: int, classes: int) -> Learner:
    """Predict the class whose mean is nearest, over the features of `network` as initialised."""

    def predict(state: ClassSums, x: Array) -> Array:
        h, mean = network.features(state.params, x), _means(state)
        return _of_seen(state.count, 2 * h @ mean.T - jnp.sum(mean**2, 1))

    return Learner(_init(network, width, classes), _adder(network, classes), predict, KEEPS)


def naive_bayes(network: Network, width: int, classes: int, floor: float = 1e-2) -> Learner:
    """Gaussian naive Bayes over the features of `network` as initialised.

    `floor`, times the mean variance of all features, is added to every variance.
    """

    def predict(state: ClassSums, x: Array) -> Array:
        h, mean = network.features(state.params, x), _means(state)
        n = jnp.maximum(state.count, 1)[:, None]
        variance = jnp.maximum(state.squares / n - mean**2, 0.0)
        variance = variance + floor * jnp.mean(variance) + 1e-6
        score = h**2 @ (1 / variance).T - 2 * h @ (mean / variance).T
        score += jnp.sum(mean**2 / variance + jnp.log(variance), 1)
        return _of_seen(state.count, jnp.log(n[:, 0]) - score / 2)

    return Learner(_init(network, width, classes), _adder(network, classes), predict, KEEPS)


def streaming_lda(network: Network, width: int, classes: int, shrinkage: float = 1e-2) -> Learner:
    """Linear discriminant analysis from running means and one running covariance.

    Over the features of `network` as initialised. The covariance is mixed with `shrinkage` of its
    mean diagonal before it is inverted.
    """

    def init(key: Array) -> Covariance:
        start = _init(network, width, classes)(key)
        return Covariance(start.params, start.count, start.total, jnp.zeros((width, width)))

    def update(state: Covariance, batch: Batch) -> Covariance:
        h, labels = network.features(state.params, batch[0]), jax.nn.one_hot(batch[1], classes)
        count, total = state.count + labels.sum(0), state.total + labels.T @ h
        return Covariance(state.params, count, total, state.products + h.T @ h)

    def predict(state: Covariance, x: Array) -> Array:
        h, mean = network.features(state.params, x), _means(state)
        seen = jnp.maximum(state.count.sum(), 1)
        within = (state.products - (mean.T * state.count) @ mean) / seen
        even = shrinkage * jnp.mean(jnp.diag(within)) + 1e-6
        within = (1 - shrinkage) * within + even * jnp.eye(width)
        directions = jax.scipy.linalg.solve(within, mean.T, assume_a="pos")
        prior = jnp.log(jnp.maximum(state.count, 1))
        return _of_seen(state.count, h @ directions - jnp.sum(mean.T * directions, 0) / 2 + prior)

    return Learner(init, update, predict, KEEPS)


def _init(network: Network, width: int, classes: int):
    def init(key: Array) -> ClassSums:
        zeros = jnp.zeros((classes, width))
        return ClassSums(network.init(key), jnp.zeros(classes), zeros, zeros)

    return init


def _adder(network: Network, classes: int):
    def update(state: ClassSums, batch: Batch) -> ClassSums:
        h, labels = network.features(state.params, batch[0]), jax.nn.one_hot(batch[1], classes)
        return ClassSums(
            state.params,
            state.count + labels.sum(0),
            state.total + labels.T @ h,
            state.squares + labels.T @ h**2,
        )

    return update


def _means(state: ClassSums | Covariance) -> Array:
    return state.total / jnp.maximum(state.count, 1)[:, None]


def _of_seen(count: Array, scores: Array) -> Array:
    """Scores with classes that never came below all others."""
    return jnp.where(count > 0, scores, scores.min(1, keepdims=True) - 1)
