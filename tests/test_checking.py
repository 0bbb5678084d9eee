import inspect
import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from elephant_nn import (
    RAW_INPUTS,
    check_learner,
    cnn,
    convmixer,
    cross_entropy,
    flymodel,
    gradient,
    mlp,
    sdmlp,
    sr_nn,
    streaming_lda,
)
from elephant_nn.experiments.tables import TABLES
from elephant_nn.learners.recipe import declared, make_recipe, parameter_name
from elephant_nn.runs.program import Method, resolve

RMS = optax.rmsprop(1e-4, decay=0.999)
ROWS = {row.build: row for row in TABLES["split-digits"].rows}
"""A row of each builder in the table."""

SHAPE, CLASSES, ENDS = (8, 8, 1), 10, (2, 4, 100)


def small(row):
    """The learner of a row of the table, with few neurons."""
    build = resolve(row.build)
    known = declared(build)
    settings = {**row.candidates()[0], **row.settings}  # some rows have a grid only
    settings = {k: v for k, v in settings.items() if parameter_name(k, known) in known}
    settings |= {name: n for name, n in {"neurons": 30, "filters": 4}.items() if name in known}
    _, floats = make_recipe(build, (SHAPE, CLASSES), settings)
    return Method(build, settings).recipe(SHAPE, CLASSES, ends=ENDS)(floats)


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.method)
def test_learners_of_the_table_conform(row):
    check_learner(small(row))


@pytest.mark.slow
def test_convmixer_conforms():
    network = convmixer(SHAPE, 30, CLASSES, width=6, depth=1, kernel=3)
    check_learner(gradient(network, RMS, cross_entropy))


def test_sr_nn_conforms():
    check_learner(sr_nn(mlp((64, 30, CLASSES)), RMS, cross_entropy, weight=0.1, beta=0.1))


def test_own_samples():
    learner = gradient(mlp((3, 10, 1)), optax.adam(1e-3))
    x = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    check_learner(learner, x, x[:, :1])
    with pytest.raises(ValueError, match="both x and y, or neither"):
        check_learner(learner, x)
    with pytest.raises(ValueError, match="16 or more, got 5, 5"):
        check_learner(learner, x[:5], x[:5, :1])


GOOD = gradient(mlp((64, 10, CLASSES)), RMS, cross_entropy)
COUNTER = itertools.count()


def predicting(change):
    """GOOD with changed predictions."""
    return replace(GOOD, predict=lambda state, x: change(GOOD.predict(state, x), x))


def updating(change):
    """GOOD with changed inputs of updates."""
    return replace(GOOD, update=lambda state, batch: GOOD.update(state, (change(*batch), batch[1])))


def diverging(when):
    """NaN once a batch of more than one sample meets a condition."""
    return updating(lambda x, y: x + jnp.where((len(x) > 1) & when(x, y), jnp.nan, 0.0))


def storing(size):
    """Stores the inputs of two batches of this size."""

    def update(state, batch):
        learned, stored = state
        x = batch[0].reshape(-1, 64)
        if len(x) == size and len(stored) < 2 * size:
            stored = jnp.concatenate([stored, x])
        return GOOD.update(learned, batch), stored

    return replace(
        GOOD,
        init=lambda key, x: (GOOD.init(key, x), jnp.zeros((0, 64))),
        update=update,
        predict=lambda state, x: GOOD.predict(state[0], x),
    )


def counting():
    """Counts predictions in its state."""

    def predict(state, x):
        state["count"] += 1
        return GOOD.predict(state["learned"], x)

    return replace(
        GOOD,
        init=lambda key, x: {"learned": GOOD.init(key, x), "count": 0},
        update=lambda state, batch: {**state, "learned": GOOD.update(state["learned"], batch)},
        predict=predict,
    )


BROKEN = {
    "and no labels": replace(GOOD, init=lambda key, x, y: GOOD.init(key, x)),
    "a key and the inputs of the first batch": replace(GOOD, init=lambda key: GOOD.init(key, None)),
    "update must return a state like init's": replace(GOOD, update=lambda state, batch: None),
    "a batch of 1 changed the state's shape": storing(1),
    "a batch of 7 changed the state's shape": storing(7),
    "a batch of 64 changed the state's shape": storing(64),
    "memory must not grow": storing(8),
    "predict must return an array, got list": predicting(lambda out, x: out.tolist()),
    "returned 1 rows for 64 inputs": predicting(lambda out, x: out[:1]),
    "one score per class, not the label": predicting(lambda out, x: out.argmax(1)),
    "returned 2 outputs for labels of 10 classes": predicting(lambda out, x: out[:, :2]),
    "two different results for the same inputs": predicting(lambda out, x: out + next(COUNTER)),
    "predict changed the state": counting(),
    "depends on the other rows": predicting(lambda out, x: out - out.mean(0)),
    "predict differs when compiled": predicting(
        lambda out, x: out if isinstance(x, jax.core.Tracer) and len(x) > 1 else 2 * out
    ),
    "init returned two different states": replace(
        GOOD, init=lambda key, x: GOOD.init(jax.random.key(next(COUNTER)), x)
    ),
    "same key and stream gave two different states": updating(lambda x, y: x + next(COUNTER)),
    "not finite after two batches": predicting(lambda out, x: out * jnp.nan),
    "not finite after zeros": diverging(lambda x, y: (x == 0).all()),
    "not finite after one repeated sample": diverging(lambda x, y: (x == x[0]).all() & x.any()),
    "not finite after inputs a thousand": diverging(lambda x, y: x.max() > 100),
    "not finite after one repeated label": diverging(lambda x, y: (y == y[0]).all()),
    "not finite after a batch of 64": diverging(lambda x, y: len(x) == 64),
}


@pytest.mark.parametrize("complaint", BROKEN)
def test_broken_learners_fail(complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_learner(BROKEN[complaint])


def test_samples_are_checked():
    with pytest.raises(ValueError, match="labels must be 0 or more, got -1"):
        check_learner(GOOD, np.zeros((16, 64)), np.full(16, -1))
    with pytest.raises(ValueError, match="x and y must be finite"):
        check_learner(GOOD, np.full((16, 64), np.nan), np.zeros(16, int))


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (gradient(mlp((784, 50, 10)), RMS, cross_entropy), "mlp: .* 784 inputs .* got 64"),
        (flymodel(100, 50, 10), "flymodel: .* 100 inputs .* got 64"),
        (sdmlp(100, 50, 10), "sdmlp: .* 100 inputs .* got 64"),
        (streaming_lda(RAW_INPUTS, 50, 10), r"features of width 50, .* have shape \(64,\)"),
        (
            gradient(cnn((9, 9, 1), 20, 10), RMS, cross_entropy),
            r"cnn: .* shape \(9, 9, 1\).* got \(8, 8, 1\)",
        ),
        (
            gradient(convmixer((8, 8, 3), 20, 10, width=6, depth=1), RMS, cross_entropy),
            r"convmixer: .* shape \(8, 8, 3\)",
        ),
    ],
    ids=["mlp", "flymodel", "sdmlp", "lda", "cnn", "convmixer"],
)
def test_inputs_of_another_size_are_refused(learner, message):
    with pytest.raises(ValueError, match=message) as caught:
        check_learner(learner)
    assert "images of shape (8, 8, 1)" in caught.value.__notes__[-1]


def test_a_network_is_not_a_learner():
    with pytest.raises(TypeError, match=r"expected a Learner, got Network; gradient\(network"):
        inspect.unwrap(check_learner)(mlp((64, 10, 10)))  # without the tests' type checks
