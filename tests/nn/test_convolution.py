import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from elephant_nn import cnn, convmixer, cross_entropy, elephant_activation, gradient
from elephant_nn.nn.convolution import _depthwise

KEY = jax.random.key(0)


def plain_cnn(params, x):
    """The same network by jax.lax."""
    channels = x.shape[-1]
    kernel = params["conv"]["w"].reshape(3, 3, channels, -1)
    layout = ("NHWC", "HWIO", "NHWC")
    z = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout)
    z = jax.nn.relu(z + params["conv"]["b"])
    z = jax.lax.reduce_window(z, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    hidden, output = params["dense"]
    return jax.nn.relu(z.reshape(len(x), -1) @ hidden["w"] + hidden["b"]) @ output["w"]


@pytest.mark.parametrize("shape", [(8, 8, 1), (6, 10, 3), (7, 9, 2)])
def test_cnn_and_its_gradients_equal_convolution_and_pooling(shape):
    network = cnn(shape, 20, 5, filters=4)
    params = jax.tree.map(lambda p: p + 0.1, network.init(KEY))
    x = jax.random.normal(jax.random.key(1), (6, *shape))
    ours, plain = jax.jit(network.apply)(params, x), jax.jit(plain_cnn)(params, x)
    np.testing.assert_allclose(ours, plain, rtol=2e-4, atol=1e-5)
    square = lambda apply: jax.jit(jax.grad(lambda p: jnp.sum(apply(p, x) ** 2)))(params)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3),
        square(network.apply),
        square(plain_cnn),
    )


def test_the_elephant_is_in_the_dense_layer_only():
    network = cnn((8, 8, 1), 20, 5, elephant_activation(0.1, 4), sigma_bias=0.5, filters=4)
    params = network.init(KEY)
    spread = params["dense"][0]["b"]
    np.testing.assert_allclose(spread, np.linspace(-(3**0.5) / 2, 3**0.5 / 2, 20), rtol=1e-5)
    assert (params["conv"]["b"] == 0).all()
    assert "b" not in params["dense"][1]
    h = network.features(params, jax.random.uniform(KEY, (7, 8, 8, 1)))
    assert h.shape == (7, 20)
    assert (h > 0).all()
    assert (h <= 1).all()


@pytest.mark.parametrize("size", [2, 3, 5])
def test_depthwise_and_its_gradients_equal_a_grouped_convolution(size):
    x = jax.random.normal(KEY, (3, 6, 7, 4))
    kernel = jax.random.normal(jax.random.key(1), (size * size, 4))
    around = ((size - 1) // 2, size // 2)

    def grouped(x, kernel):
        kernel = kernel.reshape(size, size, 1, 4)
        return jax.lax.conv_general_dilated(
            x, kernel, (1, 1), (around, around), feature_group_count=4,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )  # fmt: skip

    ours = lambda x, kernel: _depthwise(x, kernel, size)
    np.testing.assert_allclose(ours(x, kernel), grouped(x, kernel), rtol=1e-4, atol=1e-5)
    slopes = lambda f: jax.grad(lambda *a: jnp.sum(jnp.sin(f(*a))), (0, 1))(x, kernel)
    for a, b in zip(slopes(ours), slopes(grouped), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


SMALL = {"width": 6, "depth": 2, "patch": 2, "kernel": 3}


def plain_convmixer(params, x):
    """The same network by jax.lax, as it predicts."""

    def convolved(layer, x, kernel, strides, groups=1):
        z = jax.lax.conv_general_dilated(
            x, layer["w"].reshape(kernel), strides, "SAME", feature_group_count=groups,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )  # fmt: skip
        z = jax.nn.gelu(z + layer["b"], approximate=False)
        seen = layer["running"]
        z = (z - seen["mean"]) / jnp.sqrt(seen["variance"] + 1e-5)
        return z * layer["scale"] + layer["shift"]

    layers, channels = params["layers"], x.shape[-1]
    x = convolved(layers["embed"], x, (2, 2, channels, 6), (2, 2))
    for i in range(2):
        x = x + convolved(layers[f"depthwise{i}"], x, (3, 3, 1, 6), (1, 1), groups=6)
        x = convolved(layers[f"pointwise{i}"], x, (1, 1, 6, 6), (1, 1))
    hidden, output = params["dense"]
    return jax.nn.relu(x.mean((1, 2)) @ hidden["w"] + hidden["b"]) @ output["w"]


@pytest.mark.parametrize("channels", [1, 3])
def test_convmixer_equals_convolutions(channels):
    network = convmixer((8, 6, channels), 12, 4, **SMALL)
    params = network.init(KEY)
    stirred = iter(jax.random.split(jax.random.key(1), len(jax.tree.leaves(params))))
    params = jax.tree.map(lambda p: p + 0.3 * jax.random.uniform(next(stirred), p.shape), params)
    x = jax.random.normal(jax.random.key(2), (5, 8, 6, channels))
    np.testing.assert_allclose(
        jax.jit(network.apply)(params, x), jax.jit(plain_convmixer)(params, x), rtol=1e-3, atol=1e-4
    )


def test_batch_normalisation_when_learning_and_predicting():
    network = convmixer((8, 8, 1), 12, 4, **SMALL)
    params = network.init(KEY)
    x = jax.random.uniform(KEY, (20, 8, 8, 1))
    observe = jax.jit(network.observe)
    h, moved = observe(params, x)
    pieces = x.reshape(20, 4, 2, 4, 2, 1).swapaxes(2, 3).reshape(20, 4, 4, 4)
    z = jax.nn.gelu(pieces @ params["layers"]["embed"]["w"], approximate=False)
    running = moved["layers"]["embed"]["running"]
    np.testing.assert_allclose(running["mean"], 0.1 * z.mean((0, 1, 2)), rtol=1e-4, atol=1e-7)
    expected = 0.9 + 0.1 * np.asarray(z).var((0, 1, 2), ddof=1)
    np.testing.assert_allclose(running["variance"], expected, rtol=1e-5)
    for _ in range(200):
        moved = observe(moved, x)[1]
    np.testing.assert_allclose(network.features(moved, x), h, rtol=2e-2, atol=1e-2)
    assert not np.allclose(network.features(params, x), h, atol=5e-2)


def test_optimisers_do_not_change_running_statistics():
    network = convmixer((8, 8, 1), 12, 4, **SMALL)
    learner = gradient(network, optax.adamw(1e-2, weight_decay=1.0), cross_entropy)
    batch = (jax.random.uniform(KEY, (20, 8, 8, 1)), jnp.arange(20) % 4)
    state = learner.init(KEY, batch[0])
    expected = jax.jit(network.observe)(state.params, batch[0])[1]["layers"]
    after = jax.jit(learner.update)(state, batch).params["layers"]
    for name, layer in after.items():
        for ours, moved in zip(
            jax.tree.leaves(layer["running"]),
            jax.tree.leaves(expected[name]["running"]),
            strict=True,
        ):
            np.testing.assert_allclose(ours, moved, rtol=1e-5)
        assert not np.array_equal(layer["w"], expected[name]["w"])


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="patches of 2 do not tile images of shape"):
        convmixer((7, 8, 1), 12, 4)
    with pytest.raises(ValueError, match=r"2x2 or more, got \(1, 8, 1\)"):
        cnn((1, 8, 1), 12, 4)
