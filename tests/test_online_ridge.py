import numpy as np
import pytest
from sklearn.linear_model import Ridge

from elephant_nn import online_ridge
from elephant_nn.online_ridge import OnlineRidge

RNG = np.random.default_rng(0)
H = RNG.normal(size=(120, 15)) + 3
Y = H[:, :3] @ RNG.normal(size=(3, 2)) + 0.1 * RNG.normal(size=(120, 2))


def learned(pieces, **settings):
    head = OnlineRidge(H.shape[1], Y.shape[1], **settings)
    for rows in pieces:
        head.add(H[rows], Y[rows])
    return head


def pieces(size, order=None):
    order = np.arange(len(H)) if order is None else order
    return [order[first : first + size] for first in range(0, len(H), size)]


@pytest.mark.parametrize("exact", [2500, 1], ids=["decomposition", "cholesky"])
@pytest.mark.parametrize("ridge", [None, 1e-3, 10.0])
def test_equals_scikit_learns_ridge(monkeypatch, exact, ridge):
    monkeypatch.setattr(online_ridge, "EXACT", exact)
    head = learned(pieces(120), ridge=ridge)
    solution = head.solution()
    expected = Ridge(alpha=solution.penalty).fit(H, Y)
    np.testing.assert_allclose(solution.predict(H), expected.predict(H), atol=1e-10)
    residuals = np.mean((Y - expected.predict(H)) ** 2, 0)
    ridged = residuals + solution.penalty / len(H) * np.sum(expected.coef_**2, 1)
    np.testing.assert_allclose(solution.noise, ridged, rtol=1e-6)


@pytest.mark.parametrize("size", [1, 7, 120])
def test_order_and_pieces_do_not_matter(size):
    order = np.random.default_rng(size).permutation(len(H))
    solutions = [learned(cut).solution() for cut in (pieces(120), pieces(size, order))]
    assert solutions[0].ridge == pytest.approx(solutions[1].ridge)
    np.testing.assert_allclose(solutions[0].predict(H), solutions[1].predict(H), atol=1e-10)


def test_both_ways_to_the_evidence_choose_alike(monkeypatch):
    noisy = Y + RNG.normal(size=Y.shape)
    found = []
    for exact in (2500, 1):
        monkeypatch.setattr(online_ridge, "EXACT", exact)
        head = OnlineRidge(15, 2)
        head.add(H, noisy)
        found.append(head.solution())
    assert 0.1 < found[0].ridge / found[1].ridge < 10
    assert found[0].error == pytest.approx(
        found[1].error, rel=0.3
    )  # the grid of the second is coarse
    assert found[0].ridge > 1e-3  # noise calls for a penalty


def test_weights_are_repetitions():
    weight = np.random.default_rng(1).integers(0, 4, len(H))
    weighted, repeated = OnlineRidge(15, 2), OnlineRidge(15, 2)
    weighted.add(H, Y, weight)
    repeated.add(np.repeat(H, weight, 0), np.repeat(Y, weight, 0))
    expected = repeated.solution().predict(H)
    np.testing.assert_allclose(weighted.solution().predict(H), expected, atol=1e-10)


def test_forgetting_is_a_weight_that_fades_with_every_sample():
    head = learned(pieces(7), forgetting=0.9, ridge=1e-3)
    weighted = OnlineRidge(15, 2, ridge=1e-3)
    weighted.add(H, Y, 0.9 ** np.arange(len(H) - 1, -1, -1))
    expected = weighted.solution().predict(H)
    np.testing.assert_allclose(head.solution().predict(H), expected, atol=1e-8)
    assert float(head.samples) == pytest.approx((1 - 0.9 ** len(H)) / 0.1)


@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_single_rows_give_the_sums_of_all_rows(forgetting):
    single, whole = (OnlineRidge(15, 2, forgetting=forgetting) for _ in range(2))
    for i in range(75):
        single.add(H[i : i + 1], Y[i : i + 1])
    whole.add(H[:1], Y[:1])  # the first sample is the origin
    whole.add(H[1:75], Y[1:75])
    for ours, theirs in zip(single.arrays().values(), whole.arrays().values(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_standard_deviations_are_those_of_a_bayesian_linear_model():
    head = learned(pieces(50), ridge=0.1)
    solution, centred = head.solution(), H - H.mean(0)
    covariance = np.linalg.inv(centred.T @ centred + solution.penalty * np.eye(15))
    far = H[:3] + 100
    unknown = np.einsum("ni,ij,nj->n", far - H.mean(0), covariance, far - H.mean(0))
    np.testing.assert_allclose(head.std(far), np.sqrt(np.outer(1 + unknown, solution.noise)))


def test_the_expected_error_is_close_to_the_error_on_new_samples():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2000, 60))
    y = x @ rng.normal(size=(60, 1)) + rng.normal(size=(2000, 1))
    head = OnlineRidge(60, 1)
    head.add(x[:150], y[:150])
    solution = head.solution()
    error = np.mean((solution.predict(x[150:]) - y[150:]) ** 2)
    assert solution.noise[0] < 0.8 * error < solution.error < 1.4 * error


def test_new_features_and_outputs_were_zero_before():
    grown, known = OnlineRidge(10, 1), OnlineRidge(15, 2)
    first, second = H[:60].copy(), H[60:]
    first[:, 10:] = 0
    grown.add(first[:, :10], Y[:60, :1])
    grown.grow(15, 2)
    grown.add(second, Y[60:])
    known.add(first, np.column_stack([Y[:60, 0], np.zeros(60)]))
    known.add(second, Y[60:])
    expected = known.solution().predict(H)
    np.testing.assert_allclose(grown.solution().predict(H), expected, atol=1e-9)
    with pytest.raises(ValueError, match="cannot shrink to 3, 2"):
        grown.grow(3, 2)


def test_learning_continues_from_arrays():
    first, second = pieces(60)
    head = learned([first])
    copy = OnlineRidge(15, 2).load({name: array.copy() for name, array in head.arrays().items()})
    for each in (head, copy):
        each.add(H[second], Y[second])
    assert (head.solution().predict(H) == copy.solution().predict(H)).all()


def test_constant_features_predict_the_mean():
    head = OnlineRidge(3, 1)
    head.add(np.full((5, 3), 1e6), np.arange(5.0)[:, None])
    np.testing.assert_allclose(head.solution().predict(np.full((1, 3), 1e6)), [[2.0]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ridge": 0.0}, "ridge must be above 0, or None to choose it, got 0.0"),
        ({"forgetting": 1.5}, "forgetting must be above 0 and at most 1, got 1.5"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        OnlineRidge(3, 1, **settings)


def test_wrong_shapes_are_refused():
    head = OnlineRidge(3, 1)
    with pytest.raises(ValueError, match=r"expected features of shape \(n, 3\)"):
        head.add(np.zeros((2, 4)), np.zeros((2, 1)))
    with pytest.raises(ValueError, match="a weight of 0 or more"):
        head.add(np.zeros((2, 3)), np.zeros((2, 1)), [1, -1])


@pytest.mark.slow
def test_stays_exact_over_a_million_samples():
    rng = np.random.default_rng(3)
    mixing = rng.normal(size=(50, 50))
    head, total = OnlineRidge(50, 1, ridge=1e-6), np.zeros((51, 51), np.longdouble)
    for _ in range(1000):
        x = rng.normal(size=(1000, 50)) @ mixing + 10
        y = x[:, :1] + rng.normal(size=(1000, 1))
        head.add(x, y)
        both = np.column_stack([x - 10, y - 10]).astype(np.longdouble)
        total += both.T @ both
    expected = np.linalg.solve(total[:50, :50].astype(float), total[:50, 50].astype(float))
    np.testing.assert_allclose(head.solution().weights[:, 0], expected, atol=2e-3)
