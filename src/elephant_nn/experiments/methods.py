"""Builders of the methods in the tables. A builder's signature declares its settings.

`float` parameters are traced, so one compiled program serves a whole grid; `int` and `str` are
static. Settings may use the paper's symbols: E for `updates`, lambda for `weight` and gamma for
`decay`.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import optax
from jaxtyping import Array

from elephant_nn.learners import ewc, statistics
from elephant_nn.learners.augmentation import with_mirrored
from elephant_nn.learners.flymodel import flymodel as make_flymodel
from elephant_nn.learners.gradient import cross_entropy, gradient
from elephant_nn.learners.learner import Learner
from elephant_nn.learners.ridge import ridge_head as make_ridge_head
from elephant_nn.learners.sdmlp import sdmlp as make_sdmlp
from elephant_nn.learners.srnn import sr_nn as make_sr_nn
from elephant_nn.nn import activations, convolution, networks, sparse
from elephant_nn.nn.activations import CLASSICAL, Activation, elephant_activation
from elephant_nn.nn.curves import curve, elephant_curve
from elephant_nn.nn.fourier import fourier_features
from elephant_nn.nn.networks import Network
from elephant_nn.nn.patches import (
    NUMBERS_PER_FILTER,
    patch_features,
    shifted_elephant,
    soft_threshold,
)
from elephant_nn.nn.products import thin_product

Shape = tuple[int, ...]
ImageShape = convolution.Shape

# Classification: `build(shape, classes, ...)` for samples of a shape.


def _rmsprop(lr: float, head_rate: float = 1.0) -> optax.GradientTransformation:
    """The paper's optimiser; `head_rate` multiplies the rate of an MLP's output layer."""
    optimiser = optax.rmsprop(lr, decay=0.999)
    if not isinstance(head_rate, jax.core.Tracer) and head_rate == 1.0:
        return optimiser
    is_head = lambda params: (*(False for _ in params[:-1]), True)
    return optax.chain(optimiser, optax.masked(optax.scale(head_rate), is_head))


def _classifier(network: Network, lr: float, updates: int, head_rate: float = 1.0) -> Learner:
    return gradient(network, _rmsprop(lr, head_rate), cross_entropy, updates=updates)


def _mlp(shape: Shape, neurons: int, classes: int) -> Network:
    return networks.mlp((math.prod(shape), neurons, classes))


def _emlp(shape: Shape, neurons: int, classes: int, a: float, sigma_bias: float, d: int) -> Network:
    return networks.emlp((math.prod(shape), neurons, classes), a=a, sigma_bias=sigma_bias, d=d)


def mlp(
    shape: Shape, classes: int, *, neurons: int, lr: float, updates: int, head_rate: float = 1.0
) -> Learner:
    return _classifier(_mlp(shape, neurons, classes), lr, updates, head_rate)


def emlp(
    shape: Shape, classes: int, *, neurons: int, lr: float, updates: int,
    a: float, sigma_bias: float, d: int = 4, head_rate: float = 1.0,
) -> Learner:  # fmt: skip
    return _classifier(_emlp(shape, neurons, classes, a, sigma_bias, d), lr, updates, head_rate)


def cnn(
    shape: ImageShape, classes: int, *, neurons: int, lr: float, updates: int, filters: int = 64
) -> Learner:
    return _classifier(convolution.cnn(shape, neurons, classes, filters=filters), lr, updates)


def ecnn(
    shape: ImageShape, classes: int, *, neurons: int, lr: float, updates: int,
    a: float, sigma_bias: float, d: int = 4, filters: int = 64,
) -> Learner:  # fmt: skip
    bell = elephant_activation(a, d)
    network = convolution.cnn(shape, neurons, classes, bell, sigma_bias=sigma_bias, filters=filters)
    return _classifier(network, lr, updates)


def convmixer(shape: ImageShape, classes: int, *, neurons: int, lr: float, updates: int) -> Learner:
    return _classifier(convolution.convmixer(shape, neurons, classes), lr, updates)


def econvmixer(
    shape: ImageShape, classes: int, *, neurons: int, lr: float, updates: int,
    a: float, sigma_bias: float, d: int = 4,
) -> Learner:  # fmt: skip
    bell = elephant_activation(a, d)
    network = convolution.convmixer(shape, neurons, classes, bell, sigma_bias=sigma_bias)
    return _classifier(network, lr, updates)


def mlp_ewc(
    shape: Shape, classes: int, *, neurons: int, lr: float, updates: int,
    anchor: str, weight: float, decay: float,
) -> Learner:  # fmt: skip
    return ewc.streaming_ewc(
        _mlp(shape, neurons, classes), _rmsprop(lr), cross_entropy,
        weight=weight, decay=decay, anchor=anchor, updates=updates,
    )  # fmt: skip


def cnn_ewc(
    shape: ImageShape, classes: int, *, neurons: int, lr: float, updates: int,
    anchor: str, weight: float, decay: float,
) -> Learner:  # fmt: skip
    return ewc.streaming_ewc(
        convolution.cnn(shape, neurons, classes), _rmsprop(lr), cross_entropy,
        weight=weight, decay=decay, anchor=anchor, updates=updates,
    )  # fmt: skip


def mlp_online_ewc(
    shape: Shape, classes: int, *, ends: tuple[int, ...], neurons: int, lr: float, updates: int,
    weight: float, decay: float,
) -> Learner:  # fmt: skip
    """Declares `ends`, so the problem passes the ends of tasks."""
    return ewc.online_ewc(
        _mlp(shape, neurons, classes), _rmsprop(lr), cross_entropy,
        weight=weight, decay=decay, ends=ends, updates=updates,
    )  # fmt: skip


def sdmlp(
    shape: Shape, classes: int, *, neurons: int, k: int, switch: float, lr: float, passes: int
) -> Learner:
    inputs = math.prod(shape)
    return make_sdmlp(inputs, neurons, classes, k=k, switch=switch, lr=lr, passes=passes)


def flymodel(shape: Shape, classes: int, *, neurons: int, per_unit: int, lr: float) -> Learner:
    return make_flymodel(math.prod(shape), neurons, classes, per_unit=per_unit, lr=lr)


def nearest_mean(shape: Shape, classes: int) -> Learner:
    return statistics.nearest_class_mean(statistics.RAW_INPUTS, math.prod(shape), classes)


def lda(shape: Shape, classes: int) -> Learner:
    return statistics.streaming_lda(statistics.RAW_INPUTS, math.prod(shape), classes)


def nearest_mean_elephant(
    shape: Shape, classes: int, *, neurons: int, a: float, sigma_bias: float, d: int = 4
) -> Learner:
    features = _emlp(shape, neurons, classes, a, sigma_bias, d)
    return statistics.nearest_class_mean(features, neurons, classes)


def naive_bayes_elephant(
    shape: Shape, classes: int, *, neurons: int, a: float, sigma_bias: float, d: int = 4
) -> Learner:
    features = _emlp(shape, neurons, classes, a, sigma_bias, d)
    return statistics.naive_bayes(features, neurons, classes)


def lda_elephant(
    shape: Shape, classes: int, *, neurons: int, a: float, sigma_bias: float, d: int = 4
) -> Learner:
    features = _emlp(shape, neurons, classes, a, sigma_bias, d)
    return statistics.streaming_lda(features, neurons, classes)


def ridge_head(
    shape: Shape, classes: int, *, neurons: int, a: float, sigma_bias: float, d: int = 4
) -> Learner:
    return make_ridge_head(_emlp(shape, neurons, classes, a, sigma_bias, d), classes)


def ridge_head_relu(
    shape: Shape, classes: int, *, neurons: int, sigma_bias: float = 0.0
) -> Learner:
    features = networks.mlp((math.prod(shape), neurons, classes), sigma_bias=sigma_bias)
    return make_ridge_head(features, classes)


def ridge_rank(
    shape: Shape, classes: int, *, neurons: int, rank: int, ridge: float, a: float,
    sigma_bias: float, d: int = 4,
) -> Learner:  # fmt: skip
    """The ridge head with a matrix of low rank plus a diagonal."""
    features = _emlp(shape, neurons, classes, a, sigma_bias, d)
    return make_ridge_head(features, classes, ridge=ridge, rank=rank)


def ridge_rank_relu(
    shape: Shape, classes: int, *, neurons: int, rank: int, ridge: float, sigma_bias: float = 0.0
) -> Learner:
    features = networks.mlp((math.prod(shape), neurons, classes), sigma_bias=sigma_bias)
    return make_ridge_head(features, classes, ridge=ridge, rank=rank)


def randumb(shape: Shape, classes: int, *, neurons: int, gamma: float = 1.0) -> Learner:
    """RanDumb: random Fourier features and LDA with OAS shrinkage."""
    features = fourier_features(math.prod(shape), neurons, gamma)
    return statistics.streaming_lda(features, neurons, classes, shrinkage=None)


def patches(
    shape: ImageShape, classes: int, *, neurons: int, a: float = 1.0, centre: float = 1.5,
    side: int = 6, mirrored: int = 0,
) -> Learner:  # fmt: skip
    """Ridge regression on patch features; `neurons` is the numbers per image."""
    activation = partial(shifted_elephant, centre=centre, a=a)
    return _on_patches(shape, classes, neurons, activation, side, mirrored)


def patches_soft(
    shape: ImageShape, classes: int, *, neurons: int, threshold: float = 0.25, side: int = 6,
    mirrored: int = 0,
) -> Learner:  # fmt: skip
    activation = partial(soft_threshold, threshold=threshold)
    return _on_patches(shape, classes, neurons, activation, side, mirrored)


def _on_patches(
    shape: ImageShape, classes: int, neurons: int, activation: Callable[[Array], Array], side: int,
    mirrored: int,
) -> Learner:  # fmt: skip
    features = patch_features(shape, neurons // NUMBERS_PER_FILTER, activation, side=side)
    learner = make_ridge_head(features, classes)
    return with_mirrored(learner, shape) if mirrored else learner


def chance(shape: Shape, classes: int, *, neurons: int) -> Learner:
    """An untrained network."""
    network = _mlp(shape, neurons, classes)
    init = lambda key, x: network.init(key)
    return Learner(init, lambda state, batch: state, network.apply, network=network)


# Regression of one number on another: `build(...)`. Predictions use the fast evaluation of curves.


def sine_mlp(*, activation: str, neurons: int, lr: float, updates: int = 1) -> Learner:
    function = CLASSICAL[activation]
    learner = gradient(networks.mlp((1, neurons, 1), function), optax.adam(lr), updates=updates)
    return replace(learner, predict=lambda state, x: curve(state.params, x, function))


def sine_sr_nn(
    *, activation: str, neurons: int, lr: float, weight: float, beta: float, updates: int = 1
) -> Learner:
    function = CLASSICAL[activation]
    network = networks.mlp((1, neurons, 1), function)
    learner = make_sr_nn(network, optax.adam(lr), weight=weight, beta=beta, updates=updates)
    return replace(learner, predict=lambda state, x: curve(state.params, x, function))


def sine_emlp(
    *, neurons: int, lr: float, a: float, sigma_bias: float, d: int, updates: int = 1
) -> Learner:
    network = networks.emlp((1, neurons, 1), a=a, sigma_bias=sigma_bias, d=d)
    learner = gradient(network, optax.adam(lr), updates=updates)
    return replace(learner, predict=lambda state, x: elephant_curve(state.params, x, a, d))


def sine_ridge(*, neurons: int, ridge: float, a: float, sigma_bias: float, d: int) -> Learner:
    network = networks.emlp((1, neurons, 1), a=a, sigma_bias=sigma_bias, d=d)
    return make_ridge_head(network, 1, ridge=ridge, regression=True)


# Action values of DQN: `build(inputs, actions, ...)`. Only the normalised EMLP has more weights
# than the MLP.

_q_network = partial(networks.mlp, output_bias=True, product=thin_product)
_q_emlp = partial(networks.emlp, output_bias=True, product=thin_product)
_q_normalised = partial(sparse.normalised_emlp, output_bias=True, product=thin_product)


def q_mlp(inputs: int, actions: int, *, neurons: int) -> Network:
    return _q_network((inputs, neurons, actions))


def q_emlp(
    inputs: int, actions: int, *, neurons: int, a: float, sigma_bias: float, d: int = 4
) -> Network:
    return _q_emlp((inputs, neurons, actions), a=a, sigma_bias=sigma_bias, d=d)


def q_normalised_emlp(
    inputs: int, actions: int, *, neurons: int, a: float, sigma_bias: float, d: int = 4
) -> Network:
    return _q_normalised((inputs, neurons, actions), a=a, sigma_bias=sigma_bias, d=d)


def q_fta(inputs: int, actions: int, *, neurons: int, tiles: int, bound: float) -> Network:
    sizes = (inputs, neurons // tiles, actions)
    return _q_network(sizes, partial(sparse.fuzzy_tiling, bound=bound, tiles=tiles))


def q_lwta(inputs: int, actions: int, *, neurons: int, group: int) -> Network:
    return _q_network((inputs, neurons, actions), partial(sparse.winner_take_all, group=group))


def q_maxout(inputs: int, actions: int, *, neurons: int, group: int) -> Network:
    return _q_network((inputs, neurons, actions), partial(sparse.maxout, group=group))


# Activations: `build(...)`.


def relu() -> Activation:
    return activations.relu


def sigmoid() -> Activation:
    return activations.sigmoid


def tanh() -> Activation:
    return activations.tanh


def elu() -> Activation:
    return activations.elu


def elephant(*, d: int) -> Activation:
    return elephant_activation(d=d)
