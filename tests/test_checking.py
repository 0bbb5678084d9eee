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
    elephant_activation,
    emlp,
    flymodel,
    gradient,
    mlp,
    naive_bayes,
    nearest_class_mean,
    online_ewc,
    sdmlp,
    sr_nn,
    streaming_ewc,
    streaming_lda,
)

RMS = optax.rmsprop(1e-4, decay=0.999)
EMLP = emlp((64, 50, 10), a=0.1, sigma_bias=0.2)
LEARNERS = {
    "mlp": gradient(mlp((64, 50, 10)), RMS, cross_entropy),
    "emlp": gradient(EMLP, RMS, cross_entropy, updates=2),
    "ecnn": gradient(
        cnn((8, 8, 1), 30, 10, elephant_activation(0.1, 4), sigma_bias=0.2, filters=4),
        RMS,
        cross_entropy,
    ),
    "convmixer": gradient(
        convmixer((8, 8, 1), 30, 10, width=6, depth=1, kernel=3), RMS, cross_entropy
    ),
    "sr-nn": sr_nn(EMLP, RMS, cross_entropy, weight=0.1, beta=0.1),
    "ewc": streaming_ewc(
        mlp((64, 50, 10)), RMS, cross_entropy, weight=1e3, decay=0.9, anchor="average", updates=2
    ),
    "ewc-boundaries": online_ewc(
        mlp((64, 50, 10)), RMS, cross_entropy, weight=1e3, ends=(2, 4, 100), updates=2
    ),
    "sdmlp": sdmlp(64, 50, 10, k=3, switch=100.0),
    "flymodel": flymodel(64, 200, 10, per_unit=8),
    "nearest-mean": nearest_class_mean(RAW_INPUTS, 64, 10),
    "naive-bayes": naive_bayes(EMLP, 50, 10),
    "lda": streaming_lda(EMLP, 50, 10),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_keeps_its_promises(name):
    check_learner(LEARNERS[name])


def test_other_inputs_can_be_given():
    learner = gradient(mlp((3, 10, 1)), optax.adam(1e-3))
    x = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    check_learner(learner, x, x[:, :1])
    with pytest.raises(ValueError, match="both x and y, or neither"):
        check_learner(learner, x)
    with pytest.raises(ValueError, match="16 or more, got 5, 5"):
        check_learner(learner, x[:5], x[:5, :1])


GOOD = LEARNERS["mlp"]
COUNTER = itertools.count()


def remember(state, batch):
    learned, memory = state
    return GOOD.update(learned, batch), jnp.concatenate([memory, batch[0].reshape(-1, 64)])


def count_pairs(state, batch):
    """Fine for one sample and for even numbers of them."""
    return GOOD.update(state, batch) if len(batch[0]) in (1, 8, 64) else {"pairs": 0}


BROKEN = {
    "a batch of 7 changed the state's shape": replace(GOOD, update=count_pairs),
    "memory must not grow|changed the state's shape": replace(
        GOOD,
        init=lambda key: (GOOD.init(key), jnp.zeros((0, 64))),
        update=remember,
        predict=lambda state, x: GOOD.predict(state[0], x),
    ),
    "depends on the rows beside it": replace(
        GOOD, predict=lambda state, x: GOOD.predict(state, x - x.mean(0))
    ),
    "two answers for one question": replace(
        GOOD, predict=lambda state, x: GOOD.predict(state, x) + next(COUNTER)
    ),
    "two states for one key": replace(
        GOOD, init=lambda key: GOOD.init(jax.random.key(next(COUNTER)))
    ),
    "gave two different states": replace(
        GOOD,
        update=lambda state, batch: GOOD.update(state, (batch[0] + next(COUNTER), batch[1])),
    ),
    "not finite after zeros": replace(
        GOOD,
        update=lambda state, batch: GOOD.update(
            state, (batch[0] / jnp.linalg.norm(batch[0]), batch[1])
        ),
    ),
    "not finite after two batches, in what predict gave": replace(
        GOOD, predict=lambda state, x: GOOD.predict(state, x) * jnp.nan
    ),
    "predict must give an array, got list": replace(
        GOOD, predict=lambda state, x: GOOD.predict(state, x).tolist()
    ),
    "gave 1 rows for 64 inputs": replace(GOOD, predict=lambda state, x: GOOD.predict(state, x)[:1]),
}


@pytest.mark.parametrize("complaint", BROKEN)
def test_broken_learners_are_found_out(complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_learner(BROKEN[complaint])


def test_too_few_outputs_and_what_is_not_finite_are_named():
    narrow = gradient(mlp((64, 50, 2)), RMS, cross_entropy)
    with pytest.raises(AssertionError, match="gave 2 outputs for labels of 10 classes"):
        check_learner(narrow)
    single = gradient(mlp((64, 50, 1)), RMS, lambda out, y: jnp.mean(out**2))
    with pytest.raises(AssertionError, match="gave 1 outputs for labels of 10 classes"):
        check_learner(single)
    with pytest.raises(ValueError, match="labels must be 0 or more, got -1"):
        check_learner(LEARNERS["mlp"], np.zeros((16, 64)), np.full(16, -1))
    with pytest.raises(ValueError, match="x and y must be finite"):
        check_learner(LEARNERS["mlp"], np.full((16, 64), np.nan), np.zeros(16, int))


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (gradient(mlp((784, 50, 10)), RMS, cross_entropy), "mlp: made for 784 inputs a sample, go"),
        (flymodel(100, 50, 10), "flymodel: made for 100 inputs a sample, got 64"),
        (sdmlp(100, 50, 10), "sdmlp: made for 100 inputs a sample, got 64"),
        (streaming_lda(RAW_INPUTS, 50, 10), r"features of width 50, .* have shape \(64,\)"),
        (
            gradient(cnn((9, 9, 1), 20, 10), RMS, cross_entropy),
            r"cnn: made for pictures of shape \(9, 9, 1\) .* got \(8, 8, 1\)",
        ),
        (
            gradient(convmixer((8, 8, 3), 20, 10, width=6, depth=1), RMS, cross_entropy),
            r"convmixer: made for pictures of shape \(8, 8, 3\)",
        ),
    ],
)
def test_inputs_of_another_size_are_named(learner, message):
    with pytest.raises(ValueError, match=message):
        check_learner(learner)


def test_who_gave_the_samples_is_noted():
    with pytest.raises(ValueError, match="made for 784 inputs") as caught:
        check_learner(gradient(mlp((784, 50, 10)), RMS, cross_entropy))
    assert "used 8x8 digits, shape (8, 8, 1)" in caught.value.__notes__[-1]


def test_what_is_no_learner_is_told_so():
    with pytest.raises(TypeError, match=r"needs a Learner, got Network; gradient\(network"):
        inspect.unwrap(check_learner)(EMLP)  # without the check of types that tests have
    silent = replace(GOOD, update=lambda state, batch: None)
    with pytest.raises(AssertionError, match="update must return a state like init's"):
        check_learner(silent)
    labels = replace(GOOD, predict=lambda state, x: GOOD.predict(state, x).argmax(1))
    with pytest.raises(AssertionError, match="a row of one number a class, not the label"):
        check_learner(labels)
