"""Patch features, by hand with NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from elephant_nn import (
    class_incremental,
    gradient,
    learn,
    load,
    nearest_class_mean,
    patch_features,
    ridge_head,
    soft_threshold,
)
from elephant_nn.nn.patches import CONTRAST, WHITENING, shifted_elephant

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
IMAGES = jnp.asarray(RNG.random((5, 9, 8, 2), np.float32))


def patches_by_hand(image, side=3):
    image = np.asarray(image)
    found = []
    for i in range(image.shape[0] - side + 1):
        for j in range(image.shape[1] - side + 1):
            patch = image[i : i + side, j : j + side].reshape(-1)
            patch = patch - patch.mean()
            found.append(patch / np.sqrt(patch.var() + CONTRAST**2))
    return np.array(found)


@pytest.mark.parametrize("activation", [soft_threshold, shifted_elephant])
def test_features_are_quadrant_means_of_two_sided_responses(activation):
    network = patch_features((9, 8, 2), 4, activation, side=3)
    params = network.start(KEY, IMAGES)
    h = network.features(params, IMAGES)
    assert h.shape == (5, 8 * 4)
    z = jnp.asarray(patches_by_hand(IMAGES[1])) @ params["w"] + params["b"]
    both = np.concatenate([activation(z), activation(-z)], 1).reshape(7, 6, 8)
    quadrants = [both[:4, :3], both[:4, 3:], both[4:, :3], both[4:, 3:]]
    expected = np.concatenate([q.mean((0, 1)) for q in quadrants])
    np.testing.assert_allclose(h[1], expected, atol=1e-4)


def test_filters_are_whitened_patches_of_the_first_batch():
    network = patch_features((9, 8, 2), 6, side=3)
    params = network.start(KEY, IMAGES)
    every = np.concatenate([patches_by_hand(image) for image in IMAGES])
    mean, covariance = every.mean(0), np.cov(every.T, bias=True)
    values, vectors = np.linalg.eigh(covariance)
    whiten = vectors / np.sqrt(values + WHITENING) @ vectors.T
    white = (every - mean) @ whiten
    unit = white / np.linalg.norm(white, axis=1, keepdims=True)
    responses = every @ np.asarray(params["w"]) + np.asarray(params["b"])
    # Each filter responds to its own patch with that patch's length.
    lengths = np.linalg.norm(white, axis=1)
    for column in responses.T:
        own = int(np.argmin(np.abs(unit @ np.linalg.lstsq(white, column, rcond=None)[0] - 1)))
        assert column[own] == pytest.approx(lengths[own], rel=1e-2)


def test_images_are_scaled_out_of_the_features():
    network = patch_features((9, 8, 2), 4, side=3)
    params = network.start(KEY, IMAGES)
    brighter = network.features(params, IMAGES + 0.2)
    np.testing.assert_allclose(brighter, network.features(params, IMAGES), atol=1e-3)
    assert jnp.isfinite(network.features(params, jnp.zeros((1, 9, 8, 2)))).all()
    empty = network.start(KEY, jnp.zeros((3, 9, 8, 2)))
    assert jnp.isfinite(network.features(empty, IMAGES)).all()


@pytest.mark.slow
def test_they_learn_sorted_digits_in_one_pass():
    stream, _ = class_incremental(load("digits"), batch_size=20, class_statistics=True)
    learner = ridge_head(patch_features((8, 8, 1), 40, side=4), 10)
    assert float(learn(learner, stream, KEY)[1][-1]) > 0.95


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"side": 9}, "side must be between 1 and 8, the smaller side of the images, got 9"),
        ({"side": 0}, "side must be between 1 and 8"),
        ({"filters": 0}, "filters must be 1 or more, got 0"),
    ],
)
def test_wrong_sizes_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        patch_features(**{"shape": (9, 8, 2), "filters": 4, **changes})


def test_gradient_learners_start_from_the_first_batch_too():
    network = patch_features((9, 8, 2), 4, side=3)
    expected = network.start(KEY, IMAGES)
    for learner in (gradient(network, optax.sgd(0.1)), nearest_class_mean(network, 32, 3)):
        params = learner.init(KEY, IMAGES).params
        np.testing.assert_array_equal(params["w"], expected["w"])
