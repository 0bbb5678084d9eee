"""The tables: their rows, grids, chosen settings, and that every setting reaches its method."""

import inspect
import json
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import INCOMPLETE

from elephant_nn import cross_entropy, load, mlp
from elephant_nn.experiments.choosing import choices, evidence
from elephant_nn.experiments.constants import STEPS
from elephant_nn.experiments.problems import TARGET_UPDATE
from elephant_nn.experiments.spec import SELECTION_SEED, read_choices
from elephant_nn.experiments.summaries import runs_of
from elephant_nn.experiments.tables import TABLES, rl
from elephant_nn.learners.recipe import coerce, declared, make_recipe, parameter_name
from elephant_nn.report.publishing import published_rows
from elephant_nn.rl import TASKS, make_environment
from elephant_nn.runs.program import bind, resolve

ROOT = Path(__file__).parents[2]
COMPLETE = [name for name in TABLES if name not in INCOMPLETE]
SINE = TABLES["sine"]
SHAPES = {"split-digits": (8, 8, 1), "split-mnist": (28, 28, 1), "split-cifar10": (32, 32, 3)}
ROWS = [
    pytest.param(name, row, id=f"{name}-{row.method}-{row.settings.get('neurons')}")
    for name in SHAPES
    for row in TABLES[name].rows
]


def learner_of(row, shape=(8, 8, 1), **changes):
    """The learner of a row's builder, with the settings that it declares."""
    build = resolve(row.build) if hasattr(row, "build") else row
    settings = {**getattr(row, "settings", {}), **changes}
    known = declared(build)
    own = {n: v for n, v in settings.items() if parameter_name(n, known) in known}
    recipe, floats = make_recipe(build, (shape, 10), own)
    ends = {"ends": (2, 3)} if "ends" in inspect.signature(build).parameters else {}
    return recipe.build(*recipe.args, **dict(recipe.static), **floats, **ends)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_tables_are_complete(table):
    keys = [row.key for row in table.rows]
    assert len(set(keys)) == len(keys)
    metrics = {metric.name for metric in table.metrics}
    problem = resolve(table.problem)
    for row in table.rows:
        assert set(row.paper) <= metrics
        for settings in (row.settings, *row.variants):
            assert set(settings) == set(row.settings)
        if row.grid:
            assert row.settings in row.candidates()
            assert all(variant in row.candidates() for variant in row.variants)
        hyper = {**row.settings, **table.choosing, **(row.pictured or {})}
        bind(problem, resolve(row.build), hyper)  # every setting is declared
        kinds = {**declared(problem.program), **declared(resolve(row.build))}
        for name, values in {**{n: (v,) for n, v in hyper.items()}, **row.grid}.items():
            for value in values:  # ids of stored runs depend on the type of a value
                kind = kinds[parameter_name(name, kinds)].kind
                assert type(coerce(name, value, kind)) is type(value), (row.key, name)


@pytest.mark.parametrize("name", TABLES)
def test_chosen_settings_are_what_the_published_sweeps_chose(name):
    table = TABLES[name]
    rows = published_rows(ROOT / "docs" / "results", name)
    kept = read_choices(Path(inspect.getfile(rl)).with_name(f"{name}.json"))
    assert {entry["row"]: entry for entry in evidence(table, rows)} == kept
    for choice in choices(table, rows):
        assert choice.hyper == choice.row.settings, choice.row.key
    for row in table.rows:
        assert row.guessed == (bool(row.grid) and row.key not in kept), row.key


def test_guesses_are_marked():
    guessed = {(name, row.method) for name, t in TABLES.items() for row in t.rows if row.guessed}
    sparse = {"fta", "lwta", "maxout", "later-emlp"}
    assert {method for name, method in guessed if name == "rl-catcher"} == sparse
    assert {method for name, method in guessed if name == "rl-pixelcopter"} == sparse
    assert ("split-mnist", "convmixer") in guessed
    assert ("split-mnist", "emlp") not in guessed


def test_published_ids_are_unchanged():
    for name in COMPLETE:
        table, rows = TABLES[name], published_rows(ROOT / "docs" / "results", name)
        for row in table.rows[:3]:
            mine = runs_of(rows, table, row, row.settings)
            assert mine.height > 0, (name, row.key)
            for one in mine.head(2).iter_rows(named=True):
                assert table.cell(row, row.settings, one["seed"]).id == one["cell"]
    pinned = {
        "sine": "b0ea3cee8caa1f8a",
        "split-mnist": "25e31bdd677cfcf6",
        "rl-acrobot": "09144bab23d0f071",
    }
    first = lambda table: table.cell(table.rows[0], table.rows[0].settings, 0).id
    assert {name: first(TABLES[name]) for name in pinned} == pinned


def test_the_sine_grid_is_the_papers():
    sizes = {row.method: len(row.candidates()) for row in SINE.rows}
    assert sizes["emlp"] == 150
    assert sum(size for method, size in sizes.items() if method.startswith("mlp-")) == 24
    assert sizes["sr-nn"] == 4 * 6 * 3 * 3


def test_choosing_and_reporting_never_share_a_seed():
    row = SINE.rows[0]
    chosen_on = {cell.seed for cell in SINE.choosing_cells(row, row.candidates(), 20)}
    reported = {cell.seed for cell in SINE.reproduction(row, 999)}
    assert not chosen_on & reported
    assert min(chosen_on) == SELECTION_SEED


def test_every_variant_of_sr_nn_is_reproduced():
    (row,) = (row for row in SINE.rows if row.method == "sr-nn")
    cells = SINE.reproduction(row, 2)
    tabled = [cell for cell in cells if "stages" not in cell.hyper]
    assert {cell.hyper["activation"] for cell in tabled} == {"relu", "sigmoid", "tanh", "elu"}
    assert len(tabled) == 8
    assert len(cells) == 9


RATES = {"lr": (3e-6, 1e-6, 3e-7, 1e-7, 3e-8, 1e-8), "E": (1, 2)}
SHAPES_SWEPT = {"a": (0.02, 0.04, 0.08, 0.16, 0.32), "sigma_bias": (0.04, 0.08, 0.16, 0.32, 0.64)}
PENALTIES = {
    "lambda": (1e1, 1e2, 1e3, 1e4, 1e5),
    "gamma": (0.5, 0.8, 0.9, 0.95, 0.99, 0.999),
    "anchor": ("previous", "average", "fisher"),  # the paper does not say which
}


def test_class_incremental_grids_are_the_papers():
    grids = dict.fromkeys(("mlp", "cnn", "convmixer"), RATES)
    grids |= dict.fromkeys(("emlp", "ecnn", "econvmixer"), RATES | SHAPES_SWEPT)
    grids |= dict.fromkeys(("mlp-ewc", "cnn-ewc"), RATES | PENALTIES)
    for name in ("split-mnist", "split-cifar10"):
        rows = [row for row in TABLES[name].rows if row.method in grids]
        assert len(rows) == 2 * len(grids)
        for row in rows:
            values = {axis: set(found) for axis, found in row.grid.items()}
            assert values == {axis: set(found) for axis, found in grids[row.method].items()}
            named = lambda settings: {tuple(sorted(hyper.items())) for hyper in settings}
            assert named(row.candidates(coarse=True)) <= named(row.candidates())


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_every_row_has_a_learner_of_the_right_size(name, row):
    learner = learner_of(row, SHAPES[name])
    x = jax.ShapeDtypeStruct((7, *SHAPES[name]), jnp.float32)
    y = jax.ShapeDtypeStruct((7,), jnp.int32)
    state = jax.eval_shape(learner.init, jax.random.key(0), x)
    assert jax.eval_shape(learner.predict, state, x).shape == (7, 10)
    after = jax.eval_shape(learner.update, state, (x, y))
    shapes = lambda tree: jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)
    assert shapes(after) == shapes(state)
    neurons = row.settings.get("neurons")
    sizes = {size for leaf in jax.tree.leaves(state) for size in leaf.shape}
    assert neurons is None or neurons in sizes


def weights(name, method, neurons):
    (row,) = (
        row for row in TABLES[name].rows
        if (row.method, row.settings.get("neurons")) == (method, neurons)
    )  # fmt: skip
    x = jax.ShapeDtypeStruct((7, *SHAPES[name]), jnp.float32)
    params = jax.eval_shape(learner_of(row, SHAPES[name]).init, jax.random.key(0), x).params
    return sum(leaf.size for leaf in jax.tree.leaves(params))


def test_networks_have_the_papers_sizes():
    assert weights("split-mnist", "emlp", 1000) == 784 * 1000 + 1000 + 1000 * 10
    dense = 14 * 14 * 64 * 10000 + 10000 + 10000 * 10
    assert weights("split-mnist", "ecnn", 10000) == 9 * 64 + 64 + dense
    dense = 16 * 16 * 64 * 1000 + 1000 + 1000 * 10
    assert weights("split-cifar10", "cnn", 1000) == 27 * 64 + 64 + dense


METHODS = "elephant_nn.experiments.methods"
EWC = {"lr": 1e-3, "E": 2, "anchor": "average", "lambda": 1e3, "gamma": 0.9}
ELEPHANT = {"lr": 1e-3, "E": 1, "a": 0.16, "sigma_bias": 0.32, "d": 4}
ACTING = [
    ("mlp", {"lr": 1e-3, "E": 1}, {"lr": 2e-3, "E": 2}),
    ("emlp", ELEPHANT, {"lr": 2e-3, "E": 2, "a": 0.08, "sigma_bias": 0.16, "d": 6}),
    ("ecnn", {**ELEPHANT, "filters": 4}, {"E": 2, "a": 0.08, "sigma_bias": 0.16, "d": 6}),
    ("mlp_ewc", EWC, {"E": 1, "anchor": "fisher", "lambda": 1e4, "gamma": 0.5}),
    ("mlp_ewc", EWC, {"anchor": "previous"}),
    ("mlp_online_ewc", EWC, {"E": 1, "lambda": 1e4, "gamma": 0.5}),
    ("flymodel", {"per_unit": 8, "lr": 0.01}, {"per_unit": 4, "lr": 0.02}),
    ("sdmlp", {"k": 2, "switch": 50.0, "lr": 0.5, "passes": 1}, {"k": 3, "switch": 9.0, "lr": 1.0}),
    ("lda_elephant", ELEPHANT, {"a": 0.08, "sigma_bias": 0.16, "d": 6}),
]


def predicted(method, settings):
    """What is predicted after four batches of 20 digits."""
    dataset = load("digits")
    x = jnp.asarray(dataset.x_train[:80] / 255.0, jnp.float32).reshape(4, 20, 8, 8, 1)
    y = jnp.asarray(dataset.y_train[:80]).reshape(4, 20)
    build = resolve(f"{METHODS}:{method}")
    known = declared(build)
    own = {n: v for n, v in settings.items() if parameter_name(n, known) in known}
    recipe, floats = make_recipe(build, ((8, 8, 1), 10), own)
    ends = {"ends": (2, 3)} if "ends" in inspect.signature(build).parameters else {}

    @partial(jax.jit, static_argnums=0)
    def run(recipe, floats):
        learner = recipe.build(*recipe.args, **dict(recipe.static), **ends, **floats)
        update = lambda state, batch: (learner.update(state, batch), None)
        state, _ = jax.lax.scan(update, learner.init(jax.random.key(0), x[0]), (x, y))
        return learner.predict(state, x[0])

    return run(recipe, floats)


@pytest.mark.parametrize(("method", "settings", "others"), ACTING)
def test_every_setting_reaches_its_learner(method, settings, others):
    usual = predicted(method, {"neurons": 30, **settings})
    assert jnp.isfinite(usual).all()
    for name, value in others.items():
        changed = predicted(method, {"neurons": 30, **settings, name: value})
        assert jnp.abs(changed - usual).max() > 1e-6, name


@pytest.mark.parametrize("method", ["mlp", "emlp", "cnn", "ecnn", "econvmixer"])
def test_elephant_networks_differ_in_the_last_hidden_layer(method):
    build = resolve(f"{METHODS}:{method}")
    network = learner_of(build, **ELEPHANT, neurons=30).network
    x = jnp.asarray(np.random.default_rng(0).random((20, 8, 8, 1), np.float32))
    h = network.features(network.init(jax.random.key(0)), x)
    assert h.shape == (20, 30)
    bells = bool((h > 0).all() and (h <= 1).all())
    assert bells == method.startswith("e")
    assert bells or bool((h == 0).any())


def test_head_rate_is_the_output_layers_alone():
    rng = np.random.default_rng(0)
    x, y = jnp.asarray(rng.random((20, 8, 8, 1), np.float32)), jnp.arange(20) % 10

    def changes(**more):
        learner = learner_of(resolve(f"{METHODS}:emlp"), **ELEPHANT, neurons=30, **more)
        before = learner.init(jax.random.key(0), x)
        after = learner.update(before, (x, y))
        return jax.tree.map(lambda b, a: np.asarray(a - b), before.params, after.params)

    plain, fixed, faster = changes(), changes(head_rate=0.0), changes(head_rate=10.0)
    for other in (fixed, faster):
        np.testing.assert_array_equal(other[0]["w"], plain[0]["w"])
    assert np.abs(plain[1]["w"]).max() > 0
    np.testing.assert_array_equal(fixed[1]["w"], 0)
    np.testing.assert_allclose(faster[1]["w"], 10 * plain[1]["w"], rtol=1e-3, atol=1e-6)


def test_the_number_of_filters_is_a_setting():
    learner = learner_of(resolve(f"{METHODS}:cnn"), lr=1e-3, E=1, neurons=20, filters=8)
    assert learner.network.init(jax.random.key(0))["conv"]["w"].shape == (9, 8)


def test_the_optimiser_is_rmsprop_as_optax_has_it():
    """Epsilon inside the root, a second moment that starts at zero: at these rates it matters."""
    dataset = load("digits")
    learner = learner_of(resolve(f"{METHODS}:mlp"), neurons=5, E=1, lr=1e-3)
    x, y = jnp.asarray(dataset.x_train[:10] / 255.0, jnp.float32), jnp.asarray(dataset.y_train[:10])
    state = learner.init(jax.random.key(0), x)
    network = mlp((64, 5, 10))
    slopes = jax.grad(lambda p: cross_entropy(network.apply(p, x), y))(state.params)
    by_hand = jax.tree.map(
        lambda p, g: p - 1e-3 * g / jnp.sqrt(0.001 * g**2 + 1e-8), state.params, slopes
    )
    after = learner.update(state, (x, y)).params
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-7), after, by_hand)


@pytest.mark.parametrize("task", TASKS)
def test_each_task_has_the_papers_three_rows_and_grid(task):
    table = TABLES[f"rl-{task}"]
    in_the_paper = table.rows[:3]
    assert [(row.method, row.settings["buffer"]) for row in in_the_paper] == [
        ("emlp", 32),
        ("mlp", 32),
        ("mlp", 10_000),
    ]
    assert [len(row.candidates()) for row in in_the_paper] == [8 * 2 * 4 * 5, 16, 16]
    assert table.seeds == 10


def test_sparse_activations_have_no_more_weights_than_the_mlp():
    def weights(row):
        build = resolve(row.build)
        own = {n: v for n, v in row.settings.items() if n in declared(build)}
        network = build(2, 3, **own)
        return sum(leaf.size for leaf in jax.tree.leaves(network.init(jax.random.key(0))))

    sizes = {row.method: weights(row) for row in TABLES["rl-mountain-car"].rows}
    assert sizes["mlp"] == sizes["emlp"] == sizes["lwta"] == 6003
    assert max(sizes["fta"], sizes["maxout"]) < 6003
    assert sizes["later-emlp"] == 6003 + 4 * 1000


def test_what_the_paper_and_the_authors_code_fix():
    assert STEPS == {
        "mountain-car": 50_000,
        "acrobot": 30_000,
        "catcher": 500_000,
        "pixelcopter": 1_000_000,
    }
    assert TARGET_UPDATE == {
        "mountain-car": 100,
        "acrobot": 100,
        "catcher": 200,
        "pixelcopter": 200,
    }
    assert [make_environment(task).max_steps for task in TASKS] == [1000, 500, 2000, 500]


@pytest.mark.parametrize("task", ["mountain-car", "acrobot"])
@pytest.mark.parametrize("method", ["emlp", "mlp"])
def test_buffers_of_the_tasks_tables_keep_their_settings_and_others_are_searched(task, method):
    sizes = {
        row.settings["buffer"]: row
        for row in TABLES["rl-buffers"].rows
        if (row.settings["task"], row.method) == (task, method)
    }
    assert tuple(sizes) == rl.BUFFERS == (32, 100, 300, 1_000, 3_000, 10_000)
    known = {r.settings["buffer"]: r for r in TABLES[f"rl-{task}"].rows if r.method == method}
    for buffer, row in sizes.items():
        if buffer in known:
            assert row.settings == {**known[buffer].settings, "task": task}
            assert not row.grid
        else:
            assert row.settings in row.candidates()
            for name in ("a", "sigma_bias"):
                assert row.settings.get(name) == known[32].settings.get(name)


@pytest.mark.parametrize("name", COMPLETE)
def test_searches_say_how_published_settings_were_found(name):
    """What `elephant results` would run is in the published rows: nothing is left to search."""
    table, rows = TABLES[name], published_rows(ROOT / "docs" / "results", name)
    stored = set(rows["cell"])
    for row in table.rows:
        if row.search is None:
            continue
        needed = table.choosing_cells(
            row, row.candidates(coarse=row.search.coarse), row.search.seeds
        )
        assert {cell.id for cell in needed} <= stored, row.key


def test_choices_are_one_line_per_row():
    for path in Path(inspect.getfile(rl)).parent.glob("*.json"):
        lines = path.read_text().splitlines()
        assert len(json.loads(path.read_text())) == len(lines) - 2
        assert path.stem in TABLES


def test_rows_without_runs_are_not_published():
    kept = published_rows(ROOT / "docs" / "results", "rl-catcher")
    assert set(kept["method"]) == {"emlp", "mlp"}
    text = (ROOT / "docs" / "results" / "rl-catcher" / "tables.md").read_text()
    assert "| FTA" not in text
