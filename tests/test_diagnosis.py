import numpy as np
import optax
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from elephant_nn import cross_entropy, diagnose, emlp, first_batch_scaling, gradient
from elephant_nn.sklearn import ElephantClassifier, ElephantRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
LABELS = (X[:, 0] > 0).astype(int)
MODEL = ElephantClassifier(100, random_state=0)


def failed(diagnosis):
    return [check.name for check in diagnosis.checks if not check.ok]


def test_all_is_fine_with_clean_data():
    found = diagnose(MODEL, X, LABELS)
    assert found.ok, str(found)
    assert [line[0] for line in str(found).splitlines()] == ["✓"] * 7
    assert not hasattr(MODEL, "model_")
    assert diagnose(ElephantRegressor(50), X).ok
    assert diagnose(ElephantRegressor(50).fit(X, X[:, 0]), X, X[:, 0]).ok


def test_columns_are_named():
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    table["same"], table["feet"] = 7.0, 3.28 * table["b"]
    found = diagnose(MODEL, table, LABELS)
    assert failed(found) == ["columns"]
    assert found["columns"].text.startswith("constant: column same; repeats of others: column feet")
    table.loc[3, "c"] = np.nan
    found = diagnose(MODEL, table, LABELS)
    assert "1 of 400 samples have NaN or infinity, in column c" in found["values"].text
    assert failed(diagnose(MODEL, X * np.nan)) == ["values"]


def test_digits_have_constant_pixels_only():
    x, y = load_digits(return_X_y=True)
    found = diagnose(ElephantClassifier(200, random_state=0), x, y)
    assert failed(found) == ["columns"]
    assert "columns 0, 32, 39" in found["columns"].text


@pytest.mark.parametrize(
    ("settings", "check", "text"),
    [
        ({"a": 0.01, "sigma_bias": 20.0}, "units", "respond to no input"),
        ({"a": 100.0, "sigma_bias": 1.0}, "units", "make a narrower"),
        ({"a": 0.001, "sigma_bias": 20.0}, "range", "excite no unit; make a wider"),
        ({"ridge": 1e-13, "a": 100.0, "raw_inputs": False}, "features", "set ridge=1e-6"),
    ],
)
def test_unfit_settings_are_found(settings, check, text):
    found = diagnose(ElephantRegressor(100, random_state=0, **settings), X, X[:, 0])
    assert text in found[check].text
    assert not found[check].ok


def test_inputs_far_from_the_first_samples_are_found():
    moved = X.copy()
    moved[300:, 2] += 1000
    found = diagnose(MODEL, moved, LABELS)
    assert failed(found) == ["range"]
    assert "column 2; add units there with respread(x)" in found["range"].text


@pytest.mark.parametrize(
    ("y", "text"),
    [
        (np.zeros(400, int), "one class only: 0"),
        (np.where(np.arange(400) < 5, "rare", "usual"), "rare has 5 samples, the largest 395"),
        (np.zeros(400), "they do not vary"),
        (np.where(np.arange(400) == 5, 1e6, X[:, 0]), "take logarithms or clip"),
        (np.where(np.arange(400) == 5, np.nan, X[:, 0]), "some are NaN"),
    ],
)
def test_odd_targets_are_found(y, text):
    fitted = ElephantRegressor(50).fit(X, X[:, 0])
    found = diagnose(fitted, X, y)
    assert text in found["targets"].text
    assert failed(found) == ["targets"]


def test_learners_are_checked_too():
    images = RNG.uniform(size=(200, 4, 4, 1))
    learner = gradient(emlp((16, 300, 2), a=0.3, sigma_bias=0.5), optax.adam(1e-3), cross_entropy)
    y = np.sort(np.arange(200) % 2)
    found = diagnose(learner, images, y)
    assert found.ok, str(found)
    assert "one after the other" in found["targets"].text
    wide = images * np.where(np.arange(16).reshape(4, 4, 1) == 3, 1e4, 1)
    assert {"scale", "range"} <= set(failed(diagnose(learner, wide, y)))
    assert "first_batch_scaling" in diagnose(learner, 1e4 * images)["scale"].text
    assert diagnose(first_batch_scaling(learner), wide, y)["scale"].ok
    flat = gradient(emlp((16, 300, 2), a=50.0, sigma_bias=0.5), optax.adam(1e-3), cross_entropy)
    assert failed(diagnose(flat, images)) == ["units", "features"]


def test_wrong_calls_are_refused():
    with pytest.raises(TypeError, match="expected an estimator"):
        diagnose("model", X)
    with pytest.raises(ValueError, match="x has 400 samples, y has 3"):
        diagnose(MODEL, X, [1, 2, 3])
    with pytest.raises(ValueError, match="x must be numbers"):
        diagnose(MODEL, X[0])
