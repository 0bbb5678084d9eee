import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from elephant_nn import cross_entropy, emlp, first_batch_scaling, gradient
from elephant_nn.checking import check_learner

KEY = jax.random.key(0)
NETWORK = emlp((5, 30, 3), a=0.5, sigma_bias=1.0)
LEARNER = gradient(NETWORK, optax.sgd(0.1), cross_entropy)


def batches(scale=1.0, offset=0.0):
    rng = np.random.default_rng(0)
    x = jnp.asarray(scale * rng.standard_normal((4, 10, 5)) + offset, jnp.float32)
    return x, jnp.asarray(rng.integers(0, 3, (4, 10)), jnp.int32)


def test_the_learner_sees_inputs_standardised_by_the_first_batch():
    x, y = batches(3.0, 7.0)
    mean, deviation = x[0].mean(0), x[0].std(0)
    scaled, plain = first_batch_scaling(LEARNER), LEARNER
    state, expected = scaled.init(KEY, x[0]), plain.init(KEY, x[0])
    for one, labels in zip(x, y, strict=True):
        state = scaled.update(state, (one, labels))
        expected = plain.update(expected, ((one - mean) / deviation, labels))
    for ours, theirs in zip(
        jax.tree.leaves(state.params), jax.tree.leaves(expected.params), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        scaled.predict(state, x[3]), plain.predict(expected, (x[3] - mean) / deviation),
        rtol=1e-4, atol=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize(("scale", "offset"), [(100.0, -30.0)])
def test_scale_and_offset_of_inputs_do_not_matter(scale, offset):
    learner = first_batch_scaling(LEARNER)
    outputs = []
    for x, y in (batches(), batches(scale, offset)):
        state = learner.init(KEY, x[0])
        for batch in zip(x, y, strict=True):
            state = learner.update(state, batch)
        outputs.append(learner.predict(state, x[0]))
    np.testing.assert_allclose(*outputs, rtol=1e-2, atol=1e-4)


def test_a_feature_that_is_constant_at_first_is_not_blown_up():
    x, _ = batches()
    one = x[0].at[:, 0].set(4.0)
    state = first_batch_scaling(LEARNER).init(KEY, one)
    assert state.scale[0] == pytest.approx(0.1 * np.median(one.std(0)[1:]), rel=1e-5)
    few = x[0].at[:, :3].set(4.0) * 0.01  # more than half of the features are constant
    state = first_batch_scaling(LEARNER).init(KEY, few)
    np.testing.assert_allclose(state.scale[3:], few.std(0)[3:], rtol=1e-5)
    np.testing.assert_allclose(state.scale[:3], 0.1 * np.median(few.std(0)[3:]), rtol=1e-5)
    all_constant = first_batch_scaling(LEARNER).init(KEY, jnp.ones((10, 5)))
    np.testing.assert_array_equal(all_constant.scale, 1.0)


@pytest.mark.slow
def test_it_is_a_learner_like_any_other():
    x, y = batches()
    check_learner(first_batch_scaling(LEARNER), np.asarray(x.reshape(40, 5)), np.asarray(y.ravel()))
