import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from sklearn.datasets import load_digits

from elephant_nn import (
    cross_entropy,
    edit,
    edit_report,
    emlp,
    gradient,
    mlp,
    naive_bayes,
    ridge_head,
)
from elephant_nn.editing import EditReport, report_change
from elephant_nn.learners.ridge import RidgeState

KEY = jax.random.key(0)
X, Y = jnp.array([1.5]), jnp.array([-1.5])
EVERYWHERE = jnp.linspace(0, 2, 200)[:, None]


def edited(network, steps):
    before = network.init(KEY)
    after = edit(network, before, X, Y, steps=steps)
    return edit_report(network, before, after, X, Y, EVERYWHERE, neighbourhood=0.25)


def test_edits_of_elephants_are_more_local_than_of_relu():
    elephant = edited(emlp((1, 1000, 1), a=0.04, sigma_bias=0.64, d=8), 50)
    relu = edited(mlp((1, 1000, 1)), 10)
    assert elephant.error_after < 0.05 * elephant.error_before
    assert relu.error_after < 0.05 * relu.error_before
    assert elephant.mean_change_outside < 0.2 * relu.mean_change_outside
    assert elephant.fraction_moved < relu.fraction_moved


def test_report_of_a_worked_example():
    network = mlp((1, 1, 1), lambda x: x)
    line = lambda slope: ({"w": jnp.array([[slope]]), "b": jnp.zeros(1)}, {"w": jnp.ones((1, 1))})
    points = jnp.array([[0.0], [1.0], [2.0], [3.0]])
    report = edit_report(
        network,
        line(1.0),
        line(2.0),
        jnp.array([1.0]),
        jnp.array([4.0]),
        points,
        neighbourhood=0.5,
        moved=2.5,
    )
    assert report.error_before == pytest.approx(3)
    assert report.error_after == pytest.approx(2)
    assert report.mean_change_outside == pytest.approx(5 / 3)
    assert report.max_change_outside == pytest.approx(3)
    assert report.fraction_moved == pytest.approx(1 / 3)


def test_edit_takes_any_optimiser():
    network = emlp((1, 50, 1), a=0.3, sigma_bias=0.5)
    before = network.init(KEY)
    after = edit(network, before, X, Y, steps=100, optimiser=optax.adam(1e-2))
    np.testing.assert_allclose(network.apply(after, X[None])[0], Y, atol=0.05)


def test_report_needs_rows_outside_the_neighbourhood():
    network = mlp((1, 2, 1))
    params = network.init(KEY)
    with pytest.raises(ValueError, match="no row of elsewhere"):
        edit_report(network, params, params, X, Y, X[None])


def test_report_from_outputs():
    old = np.zeros((4, 2))
    new = np.array([[3.0, 4.0], [0.0, 0.0], [0.6, 0.8], [9.0, 9.0]])
    outside = np.array([True, True, True, False])
    report = report_change(old, new, outside, (2.0, 0.5), moved=0.9)
    assert report == EditReport(2.0, 0.5, 2.0, 5.0, 2 / 3)
    assert report_change(old, new, outside, (2.0, 0.5), moved=1.5).fraction_moved == 1 / 3


DIGITS = load_digits(return_X_y=True)
INPUTS, LABELS = jnp.float32(DIGITS[0] / 16), jnp.int32(DIGITS[1])
SEEN, NEW = slice(0, 300), slice(300, None)
PIXELS = emlp((64, 200, 10), a=0.3, sigma_bias=0.7)
LEARNERS = {
    "gradient": gradient(PIXELS, optax.adam(1e-3), cross_entropy, updates=50),
    "ridge": ridge_head(PIXELS, 10),
    "ridge-rank": ridge_head(PIXELS, 10, rank=50),
    "naive-bayes": naive_bayes(PIXELS, 200, 10),
}


def test_several_points_and_points_to_keep():
    before = PIXELS.init(KEY)
    x, y = INPUTS[:3], LABELS[:3]
    keep = INPUTS[3:40]
    sgd = optax.sgd(1e-2)
    plain = edit(PIXELS, before, x, y, optimiser=sgd)
    careful = edit(PIXELS, before, x, y, keep=keep, keep_weight=30.0, optimiser=sgd)
    reports = [
        edit_report(PIXELS, before, after, x, y, keep, labels=LABELS[3:40])
        for after in (plain, careful)
    ]
    assert all((r.error_before > 0) and (r.error_after == 0) for r in reports)
    assert reports[1].mean_change_outside < 0.7 * reports[0].mean_change_outside
    assert 0 <= reports[0].accuracy_after <= 1
    targets = np.float32([[1.0], [-1.0]])
    network = emlp((1, 200, 1), a=0.1, sigma_bias=0.6)
    params = network.init(KEY)
    adam = optax.adam(1e-2)
    x = jnp.array([[0.3], [-0.4]])
    after = edit(network, params, x, targets, steps=500, optimiser=adam, tolerance=0.01)
    np.testing.assert_allclose(network.apply(after, x), targets, atol=0.011)


@pytest.mark.parametrize("name", LEARNERS)
def test_edit_of_learners(name):
    learner = LEARNERS[name]
    state = learner.update(learner.init(KEY, INPUTS[SEEN]), (INPUTS[SEEN], LABELS[SEEN]))
    right = learner.predict(state, INPUTS).argmax(1) == LABELS
    wrong = 20 + np.flatnonzero(~right[20:])[:2]
    x, y = INPUTS[wrong], LABELS[wrong]
    edited = edit(learner, state, x, y)
    rest = np.setdiff1d(np.arange(len(INPUTS)), wrong)
    report = edit_report(learner, state, edited, x, y, INPUTS[rest], labels=LABELS[rest])
    assert (report.error_before, report.error_after) == (1, 0)
    assert report.accuracy_after > report.accuracy_before - 0.1
    kept = edit(learner, state, x[0], y[0], keep=INPUTS[:20])
    same = [learner.predict(s, INPUTS[:20]).argmax(1) for s in (kept, state)]
    np.testing.assert_array_equal(*same)


def test_the_weight_of_a_point_in_a_ridge_head_is_a_number_of_samples():
    learner = LEARNERS["ridge"]
    state = learner.update(learner.init(KEY, INPUTS[SEEN]), (INPUTS[SEEN], LABELS[SEEN]))
    x, y = INPUTS[NEW][:2], LABELS[NEW][:2]
    heavy = edit(learner, state, x, y, weight=3)
    often = state
    for _ in range(3):
        often = learner.update(often, (x, y))
    np.testing.assert_allclose(
        learner.predict(heavy, INPUTS), learner.predict(often, INPUTS), atol=2e-3
    )
    with pytest.raises(ValueError, match="however much they weigh"):
        edit(learner, state, INPUTS[jnp.array([0, 0])], jnp.array([1, 2]))


@pytest.mark.parametrize("name", ["ridge", "ridge-rank"])
def test_kept_points_of_a_ridge_head_keep_their_scores(name):
    learner = LEARNERS[name]
    known = LABELS[SEEN] < 8
    x, y = INPUTS[SEEN][known], LABELS[SEEN][known]
    state = learner.update(learner.init(KEY, x), (x, y))
    fours = INPUTS[LABELS == 4]
    scores = learner.predict(state, fours)[:, :8]
    lowest = int(scores.mean(0).argmin())
    keep = fours[scores[:, lowest].argsort()[:50]]
    wrong = (learner.predict(state, INPUTS).argmax(1) != LABELS) & (LABELS < 8)
    point = int(np.flatnonzero(wrong)[0])
    edited = edit(learner, state, INPUTS[point], LABELS[point], keep=keep, weight=1e4)
    assert edited.sums.targets[lowest] < 0
    np.testing.assert_array_equal(learner.prepare(edited).seen, np.arange(10) < 8)
    change = lambda new: float(
        jnp.abs(learner.predict(new, keep) - learner.predict(state, keep))[:, :8].mean()
    )
    onehot = learner.predict(state, keep).argmax(1)
    relearned = learner.update(
        state,
        (
            jnp.concatenate([INPUTS[point][None], keep]),
            jnp.concatenate([LABELS[point][None], onehot]),
            jnp.full(len(keep) + 1, 1e4),
        ),
    )
    assert change(edited) < 0.5 * change(relearned)


def test_numbers_of_a_ridge_head():
    network = emlp((1, 100, 1), a=0.3, sigma_bias=1.0)
    learner = ridge_head(network, 1, regression=True)
    x = jnp.linspace(-1, 1, 50)[:, None]
    state = learner.update(learner.init(KEY, x), (x, jnp.sin(3 * x)))
    edited = edit(learner, state, jnp.array([0.5]), jnp.array([3.0]))
    assert abs(float(learner.predict(edited, jnp.array([[0.5]]))[0, 0]) - 3) <= 0.05


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: edit(PIXELS, p, INPUTS[:3], LABELS[:2]), "3 inputs and 2 targets"),
        (lambda p: edit(PIXELS, p, INPUTS[:2], LABELS[:2], weight=3), "weight is for a ridge head"),
        (
            lambda p: edit(LEARNERS["ridge"], p, INPUTS[:2], LABELS[:2], optimiser=optax.sgd(1.0)),
            "takes no gradient steps",
        ),
        (
            lambda p: edit(LEARNERS["ridge"], p, INPUTS[:2], LABELS[:2], keep_weight=3.0),
            "leave optimiser and keep_weight out",
        ),
        (
            lambda p: edit(LEARNERS["ridge"], RidgeState(p, None), INPUTS[:2], LABELS[:2], steps=3),
            "solved at once; leave steps out",
        ),
    ],
)
def test_edits_that_cannot_be(call, message):
    with pytest.raises(ValueError, match=message):
        call(PIXELS.init(KEY))


def test_points_cannot_be_kept_by_a_balanced_head():
    learner = ridge_head(PIXELS, 10, balanced=True)
    state = learner.update(learner.init(KEY, INPUTS[SEEN]), (INPUTS[SEEN], LABELS[SEEN]))
    with pytest.raises(ValueError, match="leave keep out"):
        edit(learner, state, INPUTS[300], 3, keep=INPUTS[:5], weight=2)
