"""The ridge head against scikit-learn, in any order and in any pieces."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import Ridge

from elephant_nn import RAW_INPUTS, class_incremental, emlp, learn, load, mlp, ridge_head
from elephant_nn.checking import check_learner
from elephant_nn.learners.ridge_sums import solve_ridge

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.standard_normal((300, 6)) + 3, jnp.float32)
LABELS = jnp.asarray(np.argmax((X - 3) @ RNG.standard_normal((6, 4)), 1), jnp.int32)
NUMBERS = jnp.asarray(np.sin(X @ RNG.standard_normal((6, 2))), jnp.float32)
NETWORK = emlp((6, 80, 4), a=1.0, sigma_bias=2.0)


def fed(learner, x, y, pieces):
    """The state after these samples, in pieces of these sizes."""
    state, first = learner.init(KEY, x[: pieces[0]]), 0
    update = jax.jit(learner.update)
    for size in pieces:
        state = update(state, (x[first : first + size], y[first : first + size]))
        first += size
    assert first == len(x)
    return state


def by_sklearn(features, targets, state):
    """scikit-learn's predictions in float64, at the ridge of the state."""
    h = np.asarray(features, float)
    alpha = float(state.ridge) * np.var(h, axis=0).mean() * len(h)
    return Ridge(alpha=alpha).fit(h, np.asarray(targets, float)).predict(h)


@pytest.mark.parametrize(
    ("pieces", "ridge", "sort"),
    [
        ([300], None, False),
        ([300], 1e-2, True),
        ([1] * 300, None, True),
        ([7, 100, 1, 150, 42], None, True),
        ([7, 100, 1, 150, 42], 1e-2, False),
    ],
)
def test_any_order_in_any_pieces_equals_a_fit_at_once(pieces, ridge, sort):
    order = np.argsort(LABELS, stable=True) if sort else RNG.permutation(300)
    x, y = X[order], LABELS[order]
    learner = ridge_head(NETWORK, 4, ridge=ridge)
    state = learner.prepare(fed(learner, x, y, pieces))
    expected = by_sklearn(NETWORK.features(state.params, x), np.eye(4)[y], state)
    np.testing.assert_allclose(learner.predict(state, x), expected, atol=2e-4)


@pytest.mark.parametrize("targets", [NUMBERS, NUMBERS[:, 0]])
def test_regression_equals_a_fit_at_once(targets):
    learner = ridge_head(NETWORK, 1 if targets.ndim == 1 else 2, ridge=1e-3, regression=True)
    state = learner.prepare(fed(learner, X, targets, [100, 200]))
    expected = by_sklearn(NETWORK.features(state.params, X), targets, state)
    predicted = learner.predict(state, X)
    np.testing.assert_allclose(predicted.reshape(expected.shape), expected, atol=5e-4)
    assert learner.needs.class_statistics is False


def test_raw_inputs_are_features_too():
    learner = ridge_head(NETWORK, 4, ridge=1e-3, raw_inputs=True)
    state = learner.prepare(fed(learner, X, LABELS, [300]))
    h = jnp.concatenate([NETWORK.features(state.params, X), X], 1)
    expected = by_sklearn(h, np.eye(4)[LABELS], state)
    np.testing.assert_allclose(learner.predict(state, X), expected, atol=5e-4)


def evidence(h, y, alpha):
    """Log marginal likelihood of a Gaussian linear model, noise variance profiled out."""
    h, y = h - h.mean(0), y - y.mean(0)
    n = len(h)
    covariance = np.eye(n) + h @ h.T / alpha
    _, volume = np.linalg.slogdet(covariance)
    rest = (y * np.linalg.solve(covariance, y)).sum(0)
    return -0.5 * (n * np.log(rest / n) + volume).sum()


@pytest.mark.parametrize("noise", [0.1, 0.3, 3.0])
def test_the_ridge_has_the_largest_evidence(noise):
    h = RNG.standard_normal((60, 20))
    y = h @ RNG.standard_normal((20, 2)) + noise * RNG.standard_normal((60, 2))
    learner = ridge_head(RAW_INPUTS, 2, regression=True)
    state = learner.prepare(fed(learner, jnp.asarray(h, jnp.float32), jnp.asarray(y), [60]))
    unit = 60 * np.var(h, axis=0).mean()
    grid = 10 ** np.linspace(-6, 2, 65)
    best = grid[np.argmax([evidence(h, y, r * unit) for r in grid])]
    assert abs(np.log10(float(state.ridge) / best)) < 0.13  # one step of the grid


def test_many_features_choose_among_few_ridges_with_the_same_evidence(monkeypatch):
    from elephant_nn.learners import ridge_sums as module

    sums = fed(ridge_head(NETWORK, 4), X, LABELS, [300]).sums
    fine = float(solve_ridge(sums, None)[1])
    monkeypatch.setattr(module, "EXACT", 10)
    coarse = float(solve_ridge(sums, None)[1])
    assert abs(np.log10(fine / coarse)) < 0.6


def test_classes_that_were_not_seen_are_never_predicted():
    """Even where every class that was seen has a score below 0, the score of an unseen one."""
    learner = ridge_head(RAW_INPUTS, 3, ridge=1e-3, balanced=True)
    state = fed(learner, X, jnp.minimum(LABELS, 1), [300])
    far = jnp.mean(X, 0) + 50 * jnp.asarray(RNG.standard_normal((200, 6)), jnp.float32)
    scores = np.asarray(learner.predict(state, far))
    assert (scores[:, 2] < scores[:, :2].min(1)).all()


def test_balanced_targets_equal_scikit_learn_on_scaled_targets():
    rows = np.concatenate([np.flatnonzero(LABELS != 1), np.flatnonzero(LABELS == 1)[:6]])
    x, y = X[rows], LABELS[rows]
    learner = ridge_head(NETWORK, 4, ridge=0.1, balanced=True)
    state = learner.prepare(fed(learner, x, y, [len(rows)]))
    one_hot = np.eye(4)[y]
    scaled = one_hot / (4 * one_hot.mean(0))
    expected = by_sklearn(NETWORK.features(state.params, x), scaled, state)
    np.testing.assert_allclose(learner.predict(state, x), expected, atol=2e-3)


def test_balancing_does_not_change_which_ridge_is_chosen():
    states = [
        learner.prepare(fed(learner, X, LABELS, [300]))
        for learner in (ridge_head(NETWORK, 4), ridge_head(NETWORK, 4, balanced=True))
    ]
    assert states[0].ridge == states[1].ridge


@pytest.mark.parametrize("ridge", [1e-12, 1e-7, None])
def test_few_samples_and_tiny_ridges_stay_finite(ridge):
    learner = ridge_head(emlp((6, 400, 4), a=1.0, sigma_bias=2.0), 4, ridge=ridge)
    state = fed(learner, X[:20], LABELS[:20], [20])
    assert jnp.isfinite(learner.predict(state, X)).all()


def test_forgetting_follows_labels_that_change_their_meaning():
    scores = {}
    for forgetting in (1.0, 0.9):
        learner = ridge_head(NETWORK, 4, forgetting=forgetting)
        state = fed(learner, jnp.tile(X, (2, 1)), jnp.concatenate([LABELS, 3 - LABELS]), [10] * 60)
        predicted = np.argmax(learner.predict(state, X), 1)
        scores[forgetting] = float((predicted == np.asarray(3 - LABELS)).mean())
    assert scores[0.9] > 0.75 > scores[1.0]


def test_all_columns_are_as_good_as_all_sums():
    full, sketch = (
        learner.prepare(fed(learner, X, LABELS, [7, 100, 193]))
        for learner in (
            ridge_head(NETWORK, 4, ridge=0.1),
            ridge_head(NETWORK, 4, ridge=0.1, rank=99),
        )
    )
    np.testing.assert_allclose(full.weights, sketch.weights, atol=2e-4)
    np.testing.assert_allclose(full.ridge, sketch.ridge, rtol=1e-3)


def test_rank_0_keeps_the_diagonal():
    learner = ridge_head(NETWORK, 4, ridge=0.1, rank=0)
    state = fed(learner, X, LABELS, [7, 293])
    assert max(leaf.size for leaf in state.sums) == 80 * 4
    h = np.asarray(NETWORK.features(state.params, X), float)
    h, y = h - h.mean(0), np.eye(4)[LABELS] - np.eye(4)[LABELS].mean(0)
    diagonal = (h**2).sum(0)
    expected = h.T @ y / (diagonal + 0.1 * diagonal.mean())[:, None]
    np.testing.assert_allclose(learner.prepare(state).weights, expected, atol=1e-3)


def test_more_columns_come_closer_to_all_sums():
    full = ridge_head(NETWORK, 4, ridge=1e-2)
    expected = full.predict(fed(full, X, LABELS, [300]), X)

    def distance(rank):
        learner = ridge_head(NETWORK, 4, ridge=1e-2, rank=rank)
        return float(jnp.abs(learner.predict(fed(learner, X, LABELS, [300]), X) - expected).mean())

    assert distance(70) < distance(40) < distance(0)


@pytest.mark.slow
def test_sorted_digits_are_learned_in_one_pass_as_well_as_shuffled_ones():
    found = []
    for order in ("tasks", "shuffled"):
        stream, _ = class_incremental(load("digits"), batch_size=10, order=order, cut="stream",
                                      class_statistics=True)  # fmt: skip
        learner = ridge_head(emlp((64, 500, 10), a=0.32, sigma_bias=0.32), 10)
        found.append(float(learn(learner, stream, KEY)[1][-1]))
    assert min(found) > 0.97
    assert abs(found[0] - found[1]) < 0.015  # the initial weights differ in nothing, the cut does


def test_it_is_a_learner_like_any_other():
    check_learner(ridge_head(NETWORK, 4, ridge=1e-2), np.asarray(X[:40]), np.asarray(LABELS[:40]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ridge": 0.0}, "ridge must be above 0, or None to choose it, got 0.0"),
        ({"ridge": -1}, "ridge must be above 0"),
        ({"forgetting": 0}, "forgetting must be above 0 and at most 1, got 0"),
        ({"forgetting": 1.1}, "forgetting must be above 0 and at most 1, got 1.1"),
        ({"balanced": True, "regression": True}, "balanced is for classes"),
        ({"outputs": 0}, "outputs must be 1 or more, got 0"),
        ({"rank": -1}, "rank must be 0 or more, or None for all sums, got -1"),
    ],
)
def test_wrong_options_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        ridge_head(**{"network": mlp((6, 5, 4)), "outputs": 4, **changes})


def test_targets_of_another_width_are_refused():
    learner = ridge_head(NETWORK, 3, regression=True)
    with pytest.raises(ValueError, match=r"made for 3 targets per sample, got shape \(2,\)"):
        fed(learner, X, NUMBERS, [300])


@pytest.mark.slow
def test_a_million_samples_stay_exact():
    """Sums in float32 against float64, at 1,000 features."""
    network = emlp((20, 1000, 3), a=1.0, sigma_bias=2.0)
    learner = ridge_head(network, 3, ridge=1e-3, regression=True)
    rng, batch, batches = np.random.default_rng(1), 2000, 500
    mixing = rng.standard_normal((20, 3)) / 5
    state, update = None, jax.jit(learner.update, donate_argnums=0)
    features = jax.jit(network.features)
    gram, cross, total, targets = np.zeros((1000, 1000)), np.zeros((1000, 3)), 0.0, 0.0
    for _ in range(batches):
        x = jnp.asarray(rng.standard_normal((batch, 20), np.float32))
        y = jnp.asarray(np.sin(x @ mixing), jnp.float32)
        state = learner.init(KEY, x) if state is None else state
        h = np.asarray(features(state.params, x), float)
        state = update(state, (x, y))
        gram, cross = gram + h.T @ h, cross + h.T @ y
        total, targets = total + h.sum(0), targets + np.asarray(y, float).sum(0)
    n = batch * batches
    mean = total / n
    gram, cross = gram - n * np.outer(mean, mean), cross - np.outer(mean, targets)
    alpha = float(learner.prepare(state).ridge) * np.diag(gram).mean()
    expected = np.linalg.solve(gram + alpha * np.eye(1000), cross)
    x = jnp.asarray(rng.standard_normal((500, 20), np.float32))
    h = np.asarray(features(state.params, x), float)
    ours = np.asarray(learner.predict(state, x))
    exact = (h - mean) @ expected + targets / n
    assert np.abs(ours - exact).max() < 1e-3 * exact.std()
