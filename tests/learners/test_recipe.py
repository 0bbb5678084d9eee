from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from elephant_nn import (
    RAW_INPUTS,
    class_incremental,
    emlp,
    function_stream,
    gradient,
    inject_hyperparams,
    learn,
    nearest_class_mean,
)
from elephant_nn.data.dataset import Dataset
from elephant_nn.learners.recipe import coerce, declared, make_recipe
from elephant_nn.streams.stream import _learn

KEY = jax.random.key(0)
STREAM = function_stream(jnp.cos, 0, 1, samples=6, test_samples=5)


def method(
    outputs: int = 1, *, lr: float, a: float = 0.2, neurons: int = 10, updates: int = 1,
    rule: str = "sgd", ends: tuple[int, ...] = (),
):  # fmt: skip
    if not isinstance(lr, jax.core.Tracer) and lr < 0:
        raise ValueError("lr must be 0 or more")
    network = emlp((1, neurons, outputs), a=a, sigma_bias=0.5)
    return gradient(network, getattr(optax, rule)(lr), updates=updates)


def symbolic(*, updates: int, weight: float, decay: float):
    return updates, weight, decay


def compilations(run):
    before = _learn._cache_size()
    run()
    return _learn._cache_size() - before


def test_one_compilation_for_all_learning_rates():
    build, rates, found = inject_hyperparams(method), (1e-1, 1e-2, 1), {}

    def run():
        for lr in rates:
            found[lr] = learn(build(lr=lr), STREAM, KEY)[1]

    assert compilations(run) == 1
    assert len({float(value[0]) for value in found.values()}) == 3
    for lr in rates:
        expected = learn(method(lr=lr), STREAM, KEY)[1]
        np.testing.assert_allclose(found[lr], expected, rtol=1e-5)


def test_static_settings_compile_anew():
    build = inject_hyperparams(method)
    run = lambda **settings: compilations(lambda: learn(build(lr=0.1, **settings), STREAM, KEY))
    assert [run(neurons=11), run(neurons=12), run(neurons=12), run(neurons=12.0)] == [1, 1, 0, 0]
    assert [run(neurons=11, rule="adam"), run(neurons=11, a=0.3)] == [1, 1]
    assert run(neurons=11, a=0.5) == 0


def test_learners_without_recipes_compile_each():
    learners = [method(lr=lr) for lr in (0.1, 0.2)]
    twice = lambda: [learn(learner, STREAM, KEY) for learner in learners * 2]
    assert compilations(twice) == 2


def test_equal_streams_compile_once():
    rng = np.random.default_rng(0)
    learner, values = nearest_class_mean(RAW_INPUTS, 3, 4), []

    def run():
        for _ in range(3):
            y = np.tile(np.arange(4, dtype=np.int32), 10)
            x = (rng.normal(size=(40, 3)) + y[:, None]).astype(np.float32)
            data = Dataset("mine", x, y, x, y)
            stream, tasks = class_incremental(
                data, batch_size=5, class_statistics=True, scaling="none"
            )
            values.append(learn(learner, stream, KEY, at=tasks.ends)[1])

    assert compilations(run) == 1
    assert len({value.tobytes() for value in map(np.asarray, values)}) > 1
    data = Dataset("mine", *(np.eye(4, 3, dtype=np.float32), np.arange(4, dtype=np.int32)) * 2)
    stream, _ = class_incremental(data, batch_size=2, class_statistics=True)
    assert compilations(lambda: learn(learner, stream, KEY)) == 1


def test_builders_declare_settings_by_their_signature():
    found = declared(method)
    assert {name: (p.kind, p.required) for name, p in found.items()} == {
        "lr": (float, True), "a": (float, False), "neurons": (int, False),
        "updates": (int, False), "rule": (str, False),
    }  # fmt: skip


def test_recipes_are_hashable_and_split_settings():
    recipe, floats = make_recipe(method, (2,), {"lr": 1, "neurons": np.int64(7), "a": 1})
    assert floats == {"lr": 1.0, "a": 1.0}
    assert all(type(value) is float for value in floats.values())
    assert (recipe.args, recipe.static, recipe.traced) == ((2,), (("neurons", 7),), ("a", "lr"))
    again, _ = make_recipe(method, (2,), {"a": 3.0, "neurons": 7.0, "lr": 0.5})
    assert (hash(again), again) == (hash(recipe), recipe)
    learner = recipe({**floats, "other": 5.0})
    assert learner.init(KEY, STREAM.x).params[-1]["w"].shape == (7, 2)


def test_injected_learners_know_their_hyperparameters():
    learner = inject_hyperparams(method)(lr=1, a=1, neurons=3)
    assert dict(learner.hyperparameters) == {"lr": 1.0, "a": 1.0}
    state = learner.update(learner.init(KEY, STREAM.x), (STREAM.x, STREAM.y))
    expected = method(lr=1.0, a=1.0, neurons=3)
    expected = expected.update(expected.init(KEY, STREAM.x), (STREAM.x, STREAM.y))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), state, expected)


def test_symbols_of_the_paper():
    recipe, floats = make_recipe(symbolic, (), {"E": 2, "lambda": 1000, "gamma": 0.9})
    assert recipe(floats) == (2, 1000.0, 0.9)
    with pytest.raises(ValueError, match=r"^E must be a whole number, got 1.5$"):
        make_recipe(symbolic, (), {"E": 1.5, "lambda": 1, "gamma": 1})
    with pytest.raises(TypeError, match="method has no setting 'gamma'"):
        make_recipe(method, (), {"lr": 1, "gamma": 0.9})


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"lr": 0.1, "neurons": 2.5}, ValueError, "^neurons must be a whole number, got 2.5$"),
        ({"lr": 0.1, "widht": 3}, TypeError, "method has no setting 'widht'; it declares lr, a,"),
        ({"neurons": 3}, TypeError, "^method needs a value for lr$"),
        ({"lr": "fast"}, TypeError, "^lr must be a number, got 'fast'$"),
        ({"lr": 0.1, "neurons": "many"}, TypeError, "^neurons must be a number, got 'many'$"),
        ({"lr": 0.1, "neurons": np.inf}, ValueError, "^neurons must be a whole number, got inf$"),
        ({"lr": 0.1, "neurons": np.nan}, ValueError, "^neurons must be a whole number, got nan$"),
        ({"lr": 0.1, "rule": 3}, TypeError, "^rule must be a string, got 3$"),
        ({"lr": -0.1}, ValueError, "^lr must be 0 or more$"),
    ],
)  # fmt: skip
def test_unsuitable_settings_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        inject_hyperparams(method)(**settings)


def test_values_are_coerced_to_their_kind():
    for value, kind, expected in (
        (1, float, 1.0), (np.float32(0.5), float, 0.5), (3.0, int, 3), (np.int32(3), int, 3),
        ("adam", str, "adam"),
    ):  # fmt: skip
        found = coerce("name", value, kind)
        assert (found, type(found)) == (expected, kind)
    for value in (None, [1.0], "1"):
        with pytest.raises(TypeError, match=r"^name must be a number, got "):
            coerce("name", value, float)


def test_a_changed_learner_is_not_built_again_from_its_recipe():
    learner = inject_hyperparams(method)(lr=0.1)
    constant = replace(learner, predict=lambda state, x: jnp.full((len(x), 1), 100.0))
    assert learner.recipe is not None
    assert constant.recipe is None
    _, (error,) = learn(constant, STREAM, KEY)
    assert error > 9000


def test_other_keyword_parameters_pass_through():
    learner = inject_hyperparams(method)(lr=0.1, ends=(2, 3))
    assert ("ends", (2, 3)) in learner.recipe.static
