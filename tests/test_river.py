import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from river import checks, compose, datasets, evaluate, metrics, preprocessing

from elephant_nn.online_ridge import OnlineRidge, RecursiveRidge
from elephant_nn.river import ElephantClassifier, ElephantRegressor

RNG = np.random.default_rng(0)
SMALL = {"n_units": 20}
CHECKS = [
    pytest.param(model, check, id=f"{type(model).__name__}-{i}")
    for model in (ElephantClassifier(**SMALL), ElephantRegressor(**SMALL))
    for i, check in enumerate(checks.yield_checks(model))
]


@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_rivers_checks(model, check):
    check(model.clone())


@pytest.mark.parametrize("forgetting", [1.0, 0.99])
@pytest.mark.parametrize("size", [1, 7, 300])
def test_the_recursion_equals_the_solution(forgetting, size):
    h, y = RNG.normal(size=(300, 12)) + 2, RNG.normal(size=(300, 2))
    head = RecursiveRidge(12, 2, ridge=1e-9, forgetting=forgetting)
    sums = OnlineRidge(12, 2, ridge=1e-9, forgetting=forgetting)
    for first in range(0, 300, size):
        head.add(h[first : first + size], y[first : first + size])
    sums.add(h, y)
    assert 0 < head.since < head.due or size == 300
    np.testing.assert_allclose(head.predict(h), sums.solution().predict(h), atol=1e-6)


def test_a_stream_sorted_by_class_is_not_forgotten():
    samples = sorted(datasets.ImageSegments(), key=lambda sample: sample[1])
    model, seen = ElephantClassifier(n_units=100), samples[::2]
    for x, y in seen:
        model.learn_one(x, y)
    right = [model.predict_one(x) == y for x, y in samples[1::2]]
    assert np.mean(right) > 0.9
    assert set(model.predict_proba_one(samples[0][0])) == {y for _, y in seen}


def test_features_come_and_go():
    model = ElephantRegressor(n_units=50)
    x = RNG.normal(size=(600, 2))
    for i, (first, second) in enumerate(x.tolist()):
        late = {"b": second} if i >= 300 else {}
        model.learn_one({"a": first, **late}, first + (3 * second if late else 0))
    assert model.predict_one({"b": 1.0, "a": 0.0}) == pytest.approx(3, abs=0.7)
    assert model.predict_one({"a": 1.0, "new": 5.0}) == model.predict_one({"a": 1.0})
    assert model.predict_one({"a": 1.0, "b": None}) == model.predict_one({"a": 1.0})
    assert np.isfinite(model.predict_one({}))


def test_strings_are_features_of_their_own():
    model = ElephantClassifier(n_units=20)
    for _ in range(80):
        for colour in ("red", "green"):
            model.learn_one({"colour": colour, "size": RNG.normal()}, colour == "red")
    assert model.predict_one({"colour": "red"}) is True
    assert model.predict_one({"colour": "green"}) is False
    with pytest.raises(TypeError, match="feature 'when' is a list; elephant_nn takes numbers"):
        model.learn_one({"when": [1]}, True)
    with pytest.raises(ValueError, match="feature 'size' is inf"):
        model.learn_one({"size": float("inf")}, True)


def test_fading_follows_a_drift():
    scores = []
    for forgetting in (1.0, 0.98):
        model, right = ElephantClassifier(n_units=30, forgetting=forgetting), []
        for i, value in enumerate(np.random.default_rng(1).normal(size=800).tolist()):
            y = (value > 0) == (i < 400)
            right.append(model.predict_one({"v": value}) == y)
            model.learn_one({"v": value}, y)
        scores.append(np.mean(right[600:]))
    assert scores[0] < 0.8
    assert scores[1] > 0.9


def test_batches_give_the_result_of_single_samples():
    x = pd.DataFrame(RNG.normal(size=(250, 3)), columns=list("abc"))
    y = x["a"] * x["b"]
    single, batches = ElephantRegressor(n_units=40), ElephantRegressor(n_units=40)
    for sample, target in zip(x.to_dict(orient="records"), y, strict=True):
        single.learn_one(sample, target)
    for first in range(0, 250, 60):
        batches.learn_many(x[first : first + 60], y[first : first + 60])
    expected = [single.predict_one(sample) for sample in x.to_dict(orient="records")]
    np.testing.assert_allclose(batches.predict_many(x), expected, atol=1e-8)


def test_works_in_pipelines_and_progressive_validation():
    model = compose.Pipeline(preprocessing.StandardScaler(), ElephantClassifier(n_units=50))
    score = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    assert score.get() > 0.85


def test_river_needs_no_jax():
    script = (
        "import sys\nfrom elephant_nn.river import ElephantClassifier\n"
        "ElephantClassifier(n_units=5).learn_one({'a': 1.0}, True)\n"
        "assert not {'jax', 'optax', 'polars'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
