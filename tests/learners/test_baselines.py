"""Streaming EWC, SDMLP, FlyModel and the classifiers of class statistics."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, strategies as st
from jaxtyping import TypeCheckError
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid

from elephant_nn import (
    RAW_INPUTS,
    Network,
    cross_entropy,
    flymodel,
    gradient,
    mlp,
    naive_bayes,
    nearest_class_mean,
    online_ewc,
    sdmlp,
    streaming_ewc,
    streaming_lda,
)
from elephant_nn.learners.sdmlp import top_k_inhibited
from elephant_nn.learners.winners import kth_largest

KEY = jax.random.key(0)
ONE = jnp.ones((1, 1))
X, Y = load_digits(return_X_y=True)
NOISE = np.random.default_rng(0).normal(0, 0.05, X.shape)  # or many sums would be equal
X, Y = (X / 16 + NOISE).astype(np.float32), Y.astype(np.int32)


def batches(size=50, count=10):
    return [
        (jnp.array(X[i : i + size]), jnp.array(Y[i : i + size]))
        for i in range(0, size * count, size)
    ]


def after(learner, stream):
    state = learner.init(KEY, stream[0][0])
    for batch in stream:
        state = jax.jit(learner.update)(state, batch)
    return state


SIZE = 12
_kth = jax.jit(kth_largest, static_argnums=1)


@given(
    st.lists(st.floats(0, 2.0**100, width=32), min_size=SIZE, max_size=SIZE), st.integers(1, SIZE)
)
def test_kth_largest_by_sorting(values, k):
    expected = np.sort(np.array(values, np.float32))[-k]
    assert _kth(jnp.array([values]), k)[0, 0] == expected


def test_kth_largest_of_equal_values_and_zeros():
    values = jnp.array([[2.0, 2.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    for k, expected in ((1, 2), (2, 2), (3, 1), (4, 0)):
        np.testing.assert_array_equal(kth_largest(values, k)[:, 0], [expected, 0])


# Streaming EWC


def ewc(anchor, updates, weight=1e3, decay=0.9):
    network, optimiser = mlp((64, 30, 10)), optax.rmsprop(1e-3, decay=0.999)
    return streaming_ewc(
        network,
        optimiser,
        cross_entropy,
        weight=weight,
        decay=decay,
        anchor=anchor,
        updates=updates,
    )


@pytest.mark.parametrize("weight", [10.0, 1e5])
@pytest.mark.parametrize("decay", [0.5, 0.999])
def test_previous_anchor_has_no_effect_with_one_update(weight, decay):
    plain = gradient(mlp((64, 30, 10)), optax.rmsprop(1e-3, decay=0.999), cross_entropy)
    ours = after(ewc("previous", 1, weight, decay), batches()).params
    jax.tree.map(np.testing.assert_array_equal, ours, after(plain, batches()).params)


@pytest.mark.parametrize(("anchor", "updates"), [("previous", 2), ("fisher", 1), ("average", 1)])
def test_penalties_hold_parameters(anchor, updates):
    free, held = (after(ewc(anchor, updates, w), batches()).params for w in (0.0, 1e4))
    away = lambda params: sum(
        float(jnp.sum((p - q) ** 2))
        for p, q in zip(jax.tree.leaves(params), jax.tree.leaves(start), strict=True)
    )
    start = mlp((64, 30, 10)).init(KEY)
    assert away(held) < 0.9 * away(free)


def one_number(ewc, decay=0.5, **settings):
    """A 'network' of one weight; the loss is (w x - y)^2 / 2, its slope (w x - y) x."""
    network = Network(lambda key: jnp.array(0.0), lambda w, x: w * x[:, 0], lambda w, h: h[:, None])
    loss = lambda out, y: jnp.mean((out[:, 0] - y) ** 2) / 2
    return ewc(network, optax.sgd(0.1), loss, weight=2.0, decay=decay, **settings)


def test_fisher_anchor_of_a_worked_example():
    learner = one_number(streaming_ewc, anchor="fisher")
    state = learner.init(KEY, ONE)
    state = learner.update(state, (jnp.array([[1.0]]), jnp.array([1.0])))
    # slope -1, no Fisher yet: w = .1, F = 1, all of it from now: the anchor is .1
    assert (state.params, state.fisher, state.anchor) == pytest.approx((0.1, 1.0, 0.1))
    state = learner.update(state, (jnp.array([[1.0]]), jnp.array([2.1])))
    # slope -2, spring 0: w = .3, F = .5 + 4 = 4.5, anchor = (.5 * .1 + 4 * .3) / 4.5
    assert (state.params, state.fisher) == pytest.approx((0.3, 4.5))
    assert state.anchor == pytest.approx((0.5 * 0.1 + 4 * 0.3) / 4.5)
    anchor = float(state.anchor)
    state = learner.update(state, (jnp.array([[1.0]]), jnp.array([0.3])))
    # slope 0, the spring pulls: w = .3 - .1 * 2 * 4.5 * (.3 - anchor)
    assert state.params == pytest.approx(0.3 - 0.1 * 2 * 4.5 * (0.3 - anchor))


def test_average_anchor_of_a_worked_example():
    learner = one_number(streaming_ewc, decay=0.8, anchor="average")
    state = learner.update(learner.init(KEY, ONE), (jnp.array([[1.0]]), jnp.array([1.0])))
    # slope -1, no Fisher yet: w = .1, F = 1, a fifth of the way to w: the anchor is .02
    assert (state.params, state.fisher, state.anchor) == pytest.approx((0.1, 1.0, 0.02))
    state = learner.update(state, (jnp.array([[1.0]]), jnp.array([0.1])))
    # slope 0, the spring pulls: w = .1 - .1 * 2 * 1 * (.1 - .02)
    assert (state.params, state.fisher) == pytest.approx((0.084, 0.8))
    assert state.anchor == pytest.approx(0.8 * 0.02 + 0.2 * 0.084)


def test_fisher_information_is_that_of_the_last_step():
    learner = one_number(streaming_ewc, anchor="previous", updates=2)
    state = learner.update(learner.init(KEY, ONE), (jnp.array([[1.0]]), jnp.array([1.0])))
    # slope -1: w = .1; slope -.9: w = .19
    assert (state.params, state.fisher) == pytest.approx((0.19, 0.81))


def test_unknown_anchors_are_refused():
    with pytest.raises(ValueError, match=r"anchor must be one of .* got 'previos'"):
        ewc("previos", 1)


def test_online_ewc_of_a_worked_example():
    learner = one_number(online_ewc, ends=(2, 3))
    assert learner.needs.task_boundary
    state = learner.init(KEY, ONE)
    for y in (1.0, 2.1):
        assert (state.ewc.fisher, state.ewc.anchor) == (0, 0)
        state = learner.update(state, (jnp.array([[1.0]]), jnp.array([y])))
    # slopes -1 and -2, no spring: w = .1, then .3; here the first task ends
    assert (state.ewc.params, state.ewc.anchor) == pytest.approx((0.3, 0.3))
    assert (state.ewc.fisher, state.gathered) == pytest.approx((1 + 4, 0))
    state = learner.update(state, (jnp.array([[1.0]]), jnp.array([1.3])))
    # slope -1, still at the anchor: w = .4; the second task had one batch
    assert (state.ewc.params, state.ewc.anchor) == pytest.approx((0.4, 0.4))
    assert state.ewc.fisher == pytest.approx(0.5 * 5 + 1)
    for slope, before in ((-1.0, 0.4), (0.0, 0.5)):
        state = learner.update(state, (jnp.array([[1.0]]), jnp.array([before - slope])))
    # w = .5, then the spring pulls back: .5 - .1 * 2 * 3.5 * (.5 - .4); no end, so it stays
    assert state.ewc.params == pytest.approx(0.43)
    assert (state.ewc.fisher, state.ewc.anchor) == pytest.approx((3.5, 0.4))


@pytest.mark.parametrize("ends", [(), (0,), (-1, 4)])
def test_senseless_ends_are_refused(ends):
    with pytest.raises(ValueError, match=r"ends must .* got \("):
        one_number(online_ewc, ends=ends)


def test_ends_must_be_whole_numbers():
    # Of a sequence the type checker looks at one item by chance: it or the learner complains.
    with pytest.raises((ValueError, TypeCheckError), match="ends"):
        one_number(online_ewc, ends=(28.5, 56))


def test_ends_of_empty_tasks_are_ignored():
    learner = one_number(online_ewc, ends=(0, 2, 2))
    state, stiff = learner.init(KEY, ONE), []
    for _ in range(3):
        state = learner.update(state, (jnp.array([[1.0]]), jnp.array([1.0])))
        stiff.append(float(state.ewc.fisher) > 0)
    assert stiff == [False, True, True]


# SDMLP


def test_inhibition_keeps_the_top_k():
    values = jnp.array([[4.0, 1.0, 3.0, 2.0]])
    np.testing.assert_array_equal(top_k_inhibited(values, 2, jnp.ones(4)), [[2.0, 0.0, 1.0, 0.0]])
    np.testing.assert_array_equal(top_k_inhibited(values, 2, -jnp.ones(4)), [[6.0, 3.0, 5.0, 4.0]])
    np.testing.assert_array_equal(top_k_inhibited(values, 2, jnp.zeros(4)), values)


def test_weights_of_sdmlp_are_non_negative_and_normalised():
    learner = sdmlp(64, 40, 10, k=3, switch=1000.0, passes=1)
    for state in (learner.init(KEY, ONE), after(learner, batches())):
        hidden, output = state.weights
        assert (hidden >= 0).all()
        assert (output >= 0).all()
        np.testing.assert_allclose(jnp.linalg.norm(hidden, axis=0), 1, rtol=1e-5)


def test_gaba_switch_reduces_active_units():
    learner = sdmlp(64, 40, 10, k=3, switch=200.0, passes=1)
    first = learner.update(learner.init(KEY, ONE), batches()[0])
    assert (first.counts > 45).all()  # excited: nearly every unit is active for all 50 samples
    state = after(learner, batches(count=30))
    later = learner.update(state, batches()[0])
    used = int((later.counts - state.counts).sum())
    assert used < 50 * 15  # most units are inhibited by now: a few a sample


@pytest.mark.parametrize(("used", "inhibition"), [(0, -1.0), (100, 0.0), (200, 1.0), (900, 1.0)])
def test_inhibition_grows_with_use(used, inhibition):
    learner = sdmlp(64, 40, 10, k=3, switch=200.0, passes=1)
    state = learner.init(KEY, ONE)._replace(counts=jnp.full(40, used))
    (x, _), (hidden, output) = batches()[0], state.weights
    x = jax.nn.relu(x)
    values = jax.nn.relu(x / jnp.linalg.norm(x, axis=1, keepdims=True) @ hidden)
    expected = top_k_inhibited(values, 3, jnp.full(40, inhibition)) @ output
    np.testing.assert_allclose(learner.predict(state, x), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("scale", "clipped"), [(1.0, False), (20.0, True)])
def test_sdmlp_takes_clipped_steps_of_sgd(scale, clipped):
    learner = sdmlp(64, 40, 10, k=3, lr=0.5, passes=1)
    state, (x, y) = learner.init(KEY, ONE), batches()[0]
    state = state._replace(weights=(state.weights[0], scale * state.weights[1]))

    unit = jax.nn.relu(x)
    unit = unit / jnp.linalg.norm(unit, axis=1, keepdims=True)
    fourth = jnp.sort(jax.nn.relu(unit @ state.weights[0]))[:, -4, None]
    loss = lambda w: cross_entropy((jax.nn.relu(unit @ w[0]) + fourth) @ w[1], y)
    slopes = jax.grad(loss)(state.weights)
    norm = float(optax.tree.norm(slopes))
    assert (norm > 1) == clipped
    rate = 0.5 / max(norm, 1)
    stepped = [jnp.maximum(w - rate * g, 0) for w, g in zip(state.weights, slopes, strict=True)]
    stepped[0] /= jnp.linalg.norm(stepped[0], axis=0)
    new = learner.update(state, (x, y)).weights
    for ours, expected in zip(new, stepped, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_k_must_be_below_neurons():
    with pytest.raises(ValueError, match="k must be between 1 and 9"):
        sdmlp(64, 10, 10, k=10)


# FlyModel


def test_flymodel_by_definition():
    learner = flymodel(64, 300, 10, per_unit=8, lr=0.02)
    state = after(learner, batches())
    projection = np.asarray(state.projection)
    assert (projection.sum(0) == 8).all()
    assert set(np.unique(projection)) == {0.0, 1.0}

    def survivors(x):
        scaled = (x - x.min(1, keepdims=True)) / np.ptp(x, axis=1, keepdims=True)
        z = scaled @ projection
        z[z < np.quantile(z, 0.99, axis=1, keepdims=True)] = 0
        return z / z.max(1, keepdims=True)

    weights = np.zeros((10, 300))
    for x, y in zip(X[:500], Y[:500], strict=True):
        weights[y] = np.minimum(weights[y] + 0.02 * survivors(x[None])[0], 1)
    np.testing.assert_allclose(state.weights, weights, atol=1e-4)
    ours = jnp.argmax(learner.predict(state, jnp.array(X[500:700])), 1)
    assert np.mean(ours == np.argmax(survivors(X[500:700]) @ weights.T, 1)) > 0.99


def test_flymodel_does_not_depend_on_order():
    learner = flymodel(64, 300, 10, per_unit=8, lr=0.02)
    there, back = after(learner, batches()), after(learner, batches()[::-1])
    np.testing.assert_allclose(there.weights, back.weights, atol=1e-5)


@pytest.mark.parametrize(
    "learner",
    [
        flymodel(64, 300, 10, per_unit=8),
        nearest_class_mean(RAW_INPUTS, 64, 10),
        naive_bayes(RAW_INPUTS, 64, 10),
        streaming_lda(RAW_INPUTS, 64, 10),
    ],
)
def test_unseen_classes_are_never_predicted(learner):
    few = np.isin(Y, (3, 5))
    state = after(learner, [(jnp.array(X[few]), jnp.array(Y[few]))])
    assert set(np.unique(jnp.argmax(learner.predict(state, jnp.array(X)), 1))) == {3, 5}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: flymodel(64, 300, 10, active=-0.5), "active must be a fraction above 0"),
        (lambda: sdmlp(64, 30, 10, switch=0), "switch must be a number of samples above 0, got 0"),
        (lambda: sdmlp(64, 30, 10, passes=0), "passes must be 1 or more, got 0"),
        (
            lambda: streaming_ewc(mlp((64, 9, 10)), optax.sgd(0.1), weight=-5, decay=0.9),
            "weight must be 0 or",
        ),
        (
            lambda: streaming_ewc(mlp((64, 9, 10)), optax.sgd(0.1), weight=5, decay=2.0),
            "decay must be betw",
        ),
        (
            lambda: streaming_ewc(mlp((64, 9, 10)), optax.sgd(1), weight=5, decay=np.float32(2)),
            "decay must be betw",
        ),
        (
            lambda: streaming_ewc(mlp((64, 9, 10)), optax.sgd(1), weight=np.inf, decay=0.9),
            "weight must be 0 or more, and finite, got inf",
        ),
        (lambda: sdmlp(64, 30, 10, lr=-1.0), "lr must be 0 or more, got -1"),
        (lambda: flymodel(64, 0, 10), "neurons must be 1 or more, got 0"),
        (lambda: naive_bayes(RAW_INPUTS, 64, 10, floor=-1.0), "floor must be 0 or more, got -1"),
        (lambda: streaming_lda(RAW_INPUTS, 64, 10, shrinkage=2.0), "between 0 and 1, got 2"),
    ],
)
def test_senseless_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_units_of_flymodel_cannot_sum_all_inputs():
    with pytest.raises(ValueError, match="per_unit must be between 1 and 63, got 64"):
        flymodel(64, 300, 10, per_unit=64)


# Class statistics, against scikit-learn


@pytest.mark.parametrize(
    ("learner", "reference"),
    [
        (nearest_class_mean(RAW_INPUTS, 64, 10), NearestCentroid()),
        (naive_bayes(RAW_INPUTS, 64, 10, floor=0.0), GaussianNB(var_smoothing=1e-6 / 0.17)),
        (
            streaming_lda(RAW_INPUTS, 64, 10, shrinkage=0.1),
            LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1),
        ),
    ],
)
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_class_statistics_agree_with_scikit_learn(learner, reference, offset):
    state = after(learner, [(x + offset, y) for x, y in batches(size=40, count=25)])
    reference.fit(X[:1000], Y[:1000])
    ours = np.argmax(learner.predict(state, jnp.array(X[1000:] + offset)), 1)
    assert np.mean(ours == reference.predict(X[1000:])) > 0.99


@pytest.mark.parametrize("name", ["naive Bayes", "LDA"])
def test_class_priors_agree_with_scikit_learn(name):
    rare = (Y >= 5) & (np.arange(len(Y)) % 8 > 0)
    x, y = X[~rare], Y[~rare]
    if name == "LDA":
        learner = streaming_lda(RAW_INPUTS, 64, 10, shrinkage=0.1)
        reference = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1)
    else:
        learner = naive_bayes(RAW_INPUTS, 64, 10, floor=0.5)
        within = np.mean([x[y == c].var(0) for c in range(10)])
        reference = GaussianNB(var_smoothing=0.5 * within / x.var(0).max())
    state = after(learner, [(jnp.array(x), jnp.array(y))])
    ours = jax.nn.log_softmax(learner.predict(state, jnp.array(X)))
    np.testing.assert_allclose(ours, reference.fit(x, y).predict_log_proba(X), atol=0.05)
