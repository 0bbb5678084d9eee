import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_linnerud
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from elephant_nn.files import StorageError
from elephant_nn.sklearn import ElephantClassifier, ElephantRegressor

CLASSIFIER = ElephantClassifier(60, random_state=0)
REGRESSOR = ElephantRegressor(60, random_state=0)
X, Y = load_iris(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(X))
NAMES = np.array(["setosa", "versicolor", "virginica"])


@parametrize_with_checks([CLASSIFIER, REGRESSOR])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def depends_on_batches(estimator):
    """The checks that gradient steps cannot pass, with the reason."""
    reason = "a gradient step on a repeated sample is not a step with twice its weight"
    weights = "no score moves by factors from 1e-4 to 1e3: logits may be negative"
    short = "ten passes over 200 samples are few for gradient steps at the default rate"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_class_weight_classifiers": weights,
        "check_regressors_train": short,
    }


@pytest.mark.slow
@parametrize_with_checks(
    [clone(each).set_params(head="gradient") for each in (CLASSIFIER, REGRESSOR)],
    expected_failed_checks=depends_on_batches,
)
def test_scikit_learns_checks_with_the_gradient_head(estimator, check):
    check(estimator)


def stream(estimator, cuts, x=X, y=Y):
    model = clone(estimator)
    for rows in np.split(np.arange(len(x)), cuts):
        model.partial_fit(x[rows], y[rows])
    return model


@pytest.mark.parametrize("cuts", [[1, 2, 3, 99], [10, 60, 61], [100], [149], range(5, 150, 5)])
def test_pieces_give_the_result_of_fit(cuts):
    x, y = X[ORDER], Y[ORDER]
    whole = clone(CLASSIFIER).fit(x, y)
    np.testing.assert_allclose(
        stream(CLASSIFIER, list(cuts), x, y).predict_proba(x), whole.predict_proba(x), atol=1e-5
    )
    numbers = clone(REGRESSOR).fit(x, x[:, 0] ** 2)
    pieces = stream(REGRESSOR, list(cuts), x, x[:, 0] ** 2)
    np.testing.assert_allclose(pieces.predict(x), numbers.predict(x), atol=1e-5)
    both = pieces.predict(x, return_std=True)[1], numbers.predict(x, return_std=True)[1]
    np.testing.assert_allclose(*both, atol=1e-5)


def test_order_does_not_matter_after_the_first_samples():
    first, rest = ORDER[:100], ORDER[100:]
    orders = [np.concatenate([first, rest]), np.concatenate([first, np.sort(rest)])]
    scores = [clone(CLASSIFIER).fit(X[order], Y[order]).predict_proba(X) for order in orders]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)


def test_a_stream_sorted_by_class_is_not_forgotten():
    x, y = load_digits(return_X_y=True)
    train, test, train_y, test_y = train_test_split(x, y, random_state=0, stratify=y)
    order = np.argsort(train_y, kind="stable")
    ours, theirs = ElephantClassifier(300, random_state=0), MLPClassifier(random_state=0)
    for rows in np.array_split(order, 40):
        ours.partial_fit(train[rows], train_y[rows])
        theirs.partial_fit(train[rows], train_y[rows], classes=range(10))
    assert ours.score(test, test_y) > 0.95
    assert theirs.score(test, test_y) < 0.6
    assert ours.predict_proba(test).sum(1) == pytest.approx(1)
    scaled = ElephantClassifier(300, random_state=0).fit(train[order] * 1e3 - 7, train_y[order])
    assert scaled.score(test * 1e3 - 7, test_y) > 0.95


def test_new_classes_appear_and_declared_ones_are_checked():
    model = clone(CLASSIFIER).partial_fit(X[100:], NAMES[Y[100:]])
    assert model.classes_.tolist() == ["virginica"]
    model.partial_fit(X[:100], NAMES[Y[:100]])
    assert model.classes_.tolist() == NAMES.tolist()
    assert model.score(X, NAMES[Y]) > 0.95
    declared = clone(CLASSIFIER).partial_fit(X[:50], Y[:50], classes=[0, 1, 2])
    assert (declared.predict_proba(X)[:, 1:] == 0).all()
    with pytest.raises(ValueError, match="y has the label 9, which is not one of the declared"):
        declared.partial_fit(X[:2], [1, 9])
    with pytest.raises(ValueError, match=r"classes changed from \[0, 1, 2\] to \[0, 1\]"):
        declared.partial_fit(X[:2], [1, 0], classes=[0, 1])


def test_balanced_classes_find_the_rare_one():
    rows = np.concatenate([np.arange(50, 100), np.arange(100, 104)])
    scores = [
        clone(CLASSIFIER).set_params(class_weight=weight).fit(X[rows], Y[rows]).predict(X[100:])
        for weight in (None, "balanced", {2: 20.0})
    ]
    found = [np.mean(predicted == 2) for predicted in scores]
    assert found[0] < found[1]
    assert found[0] < found[2]
    with pytest.raises(ValueError, match="class_weight must be None"):
        clone(CLASSIFIER).set_params(class_weight="even").fit(X, Y)


def test_several_targets_and_their_deviations():
    x, y = load_linnerud(return_X_y=True)
    model = clone(REGRESSOR).fit(x, y)
    mean, std = model.predict(x, return_std=True)
    assert mean.shape == std.shape == y.shape
    wide = model.predict(x + 1000 * x.std(0), return_std=True)[1]
    assert (wide > std).all()
    with pytest.raises(ValueError, match="y must have 3 targets per sample"):
        model.partial_fit(x, y[:, 0])


def test_deviations_cover_new_targets():
    x, y = load_diabetes(return_X_y=True)
    model = ElephantRegressor(200, random_state=0).fit(x[:300], y[:300])
    mean, std = model.predict(x[300:], return_std=True)
    inside = np.abs(y[300:] - mean) < 2 * std
    assert 0.9 < inside.mean() < 0.99
    assert model.score(x[300:], y[300:]) > 0.4


def test_fading_follows_a_change_of_meaning():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    y = np.where(np.arange(600) < 300, x[:, 0] > 0, x[:, 0] < 0)
    scores = [
        clone(CLASSIFIER).set_params(forgetting=factor).fit(x, y).score(x[500:], y[500:])
        for factor in (1.0, 0.98)
    ]
    assert scores[0] < 0.7
    assert scores[1] > 0.9


@pytest.mark.parametrize("head", ["ridge", "gradient"])
@pytest.mark.parametrize("samples", [20, 120])
def test_learning_continues_from_a_file(tmp_path, head, samples):
    for model, y in ((CLASSIFIER, NAMES[Y]), (REGRESSOR, X[:, :2] @ [1.0, 2.0])):
        model = clone(model).set_params(head=head)
        model.partial_fit(X[ORDER[:samples]], y[ORDER[:samples]])
        loaded = type(model).load(model.save(tmp_path / "model.safetensors"))
        copied = pickle.loads(pickle.dumps(model))
        assert loaded.get_params() == model.get_params()
        for each in (model, loaded, copied):
            each.partial_fit(X[ORDER[samples:]], y[ORDER[samples:]])
        predictions = [each.predict(X) for each in (model, loaded, copied)]
        assert (predictions[0] == predictions[1]).all()
        assert (predictions[0] == predictions[2]).all()
        if hasattr(model, "classes_"):
            assert (model.predict_proba(X) == loaded.predict_proba(X)).all()


def test_the_gradient_head_compiles_once_for_all_batch_sizes():
    from elephant_nn.estimators.gradient_model import _update

    model = clone(CLASSIFIER).set_params(head="gradient", n_units=17)
    before = _update._cache_size()
    for first, last in ((0, 120), (120, 121), (121, 128), (128, 141), (141, 150)):
        model.partial_fit(X[ORDER[first:last]], NAMES[Y[ORDER[first:last]]])
    assert _update._cache_size() - before == 2  # one for single samples, one for batches
    assert model.score(X, NAMES[Y]) > 0.5


def test_the_gradient_head_learns_from_a_stream_sorted_by_class():
    x, y = load_digits(return_X_y=True)
    model = ElephantClassifier(head="gradient", random_state=0)
    order = np.argsort(y, kind="stable")
    for rows in np.array_split(order, 60):
        model.partial_fit(x[rows], y[rows])
    assert model.score(x, y) > 0.5


def test_wrong_files_are_refused(tmp_path):
    path = clone(CLASSIFIER).fit(X, Y).save(tmp_path / "model")
    with pytest.raises(StorageError, match="holds ElephantClassifier, expected ElephantRegressor"):
        ElephantRegressor.load(path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"format":"1"', b'"format":"9"'))
    with pytest.raises(StorageError, match="is damaged: its content does not match"):
        ElephantClassifier.load(path)
    path.write_bytes(content[:-7])
    with pytest.raises(StorageError, match="is damaged, or not a saved ElephantClassifier"):
        ElephantClassifier.load(path)
    with pytest.raises(StorageError, match="there is no file"):
        ElephantClassifier.load(tmp_path / "nothing")
    with pytest.raises(NotFittedError):
        ElephantClassifier().save(path)


def test_files_of_newer_versions_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("elephant_nn.estimators.files.FORMAT", 9)
    path = clone(CLASSIFIER).fit(X, Y).save(tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(StorageError, match="has format 9, this version of elephant-nn reads"):
        ElephantClassifier.load(path)


def test_skops_and_joblib_keep_it(tmp_path):
    model = clone(CLASSIFIER).fit(X, Y)
    skops.io.dump(model, tmp_path / "model.skops")
    trusted = skops.io.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith("elephant_nn.") for name in trusted)
    joblib.dump(model, tmp_path / "model.joblib")
    for loaded in (
        skops.io.load(tmp_path / "model.skops", trusted=trusted),
        joblib.load(tmp_path / "model.joblib"),
    ):
        assert (loaded.predict_proba(X) == model.predict_proba(X)).all()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_keep_their_names(frame):
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    table = frame(dict(zip(names, X.T, strict=True)))
    model = clone(CLASSIFIER).fit(table, NAMES[Y])
    assert model.feature_names_in_.tolist() == names
    assert model.score(table, NAMES[Y]) > 0.95
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(dict(zip(names[::-1], X.T, strict=True))))
    holed = X.copy()
    holed[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN in column 1 \(sepal width\)"):
        model.partial_fit(frame(dict(zip(names, holed.T, strict=True))), NAMES[Y])


def test_works_in_pipelines_and_searches():
    pipeline = make_pipeline(MinMaxScaler(), clone(CLASSIFIER))
    assert cross_val_score(pipeline, X, Y, n_jobs=2).mean() > 0.93
    search = GridSearchCV(CLASSIFIER, {"a": [1.0, 2.0], "n_units": [20, 40]}).fit(X, Y)
    assert search.best_score_ > 0.93


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"n_units": 0}, "n_units must be a whole number above 0, got 0"),
        ({"head": "rigde"}, "head must be one of"),
        ({"a": -1.0}, "a must be None or above 0, got -1.0"),
        ({"d": 1.0}, "d must be above 1, got 1.0"),
        ({"raw_inputs": "yes"}, "raw_inputs must be one of"),
        ({"head": "gradient", "forgetting": 0.5}, "forgetting is for head"),
        ({"head": "gradient", "optimizer": "adamm"}, "optimizer must be the name of an optimiser"),
    ],
)
def test_wrong_settings_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        clone(CLASSIFIER).set_params(**setting).fit(X, Y)


def test_warns_once_when_inputs_leave_the_range_of_the_first_samples():
    model = clone(REGRESSOR).partial_fit(X, X[:, 0])
    with pytest.warns(UserWarning, match="100% of the columns are now more than 10 deviations"):
        model.partial_fit(X + 1000, X[:, 0])
    model.partial_fit(X + 1000, X[:, 0])  # warnings are errors here


def test_added_units_resolve_a_new_range_and_keep_the_old_one(tmp_path):
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(600, 2)), rng.normal(size=(600, 2)) + 1000
    old_y, new_y = np.sin(2 * old[:, 0]) + old[:, 1], (new - 1000).prod(1)
    plain, grown = (ElephantRegressor(200, random_state=0).fit(old, old_y) for _ in range(2))
    grown.respread(new[:100], 50)
    with pytest.warns(UserWarning, match=r"add units there with respread\(X\)"):
        plain.partial_fit(new[:400], new_y[:400])
    grown.partial_fit(new[:400], new_y[:400])
    assert plain.score(new[400:], new_y[400:]) < 0.2
    assert grown.score(new[400:], new_y[400:]) > 0.7
    assert grown.score(old, old_y) > 0.95
    loaded = ElephantRegressor.load(grown.save(tmp_path / "model"))
    for each in (grown, loaded):
        each.respread(-1e5 + new[:100], 20).partial_fit(new[400:], new_y[400:])
    assert (loaded.predict(old) == grown.predict(old)).all()
    with pytest.raises(ValueError, match="only 0 of 50 units would respond to them alone"):
        grown.respread(old)
    with pytest.raises(ValueError, match="learned its first samples"):
        ElephantRegressor(20).partial_fit(old[:9], old_y[:9]).respread(new)
    with pytest.raises(ValueError, match='respread needs head="ridge"'):
        ElephantRegressor(20, head="gradient").fit(old, old_y).respread(new)


def test_float32_stays_float32():
    model = clone(REGRESSOR).fit(X.astype(np.float32), X[:, 0])
    assert model.predict(X).dtype == np.float32
    assert clone(CLASSIFIER).fit(X.astype(np.float32), Y).predict_proba(X).dtype == np.float32


def test_the_ridge_head_needs_no_jax():
    script = (
        "import sys, numpy as np\n"
        "from elephant_nn.sklearn import ElephantClassifier\n"
        "x = np.random.default_rng(0).normal(size=(200, 3))\n"
        "ElephantClassifier(20).fit(x, x[:, 0] > 0).predict_proba(x)\n"
        "assert not {'jax', 'optax', 'polars'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_small_weights_do_not_keep_samples_forever():
    rng = np.random.default_rng(0)
    model = ElephantRegressor(50, random_state=0)
    for _ in range(3):
        x = rng.normal(size=(500, 3))
        model.partial_fit(x, x[:, 0], sample_weight=np.full(500, 1 / 500))
    assert model.model_.waiting is None


def test_numbers_and_texts_are_not_mixed_as_labels():
    x = np.random.default_rng(0).normal(size=(20, 3))
    model = ElephantClassifier(20, random_state=0).partial_fit(x, np.arange(20) % 2)
    with pytest.raises(ValueError, match="numbers or texts, not both"):
        model.partial_fit(x[:2], ["new", "new"])
