"""Class-incremental experiments: every row of every table builds; small ones really run."""

import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

from elephant_nn import cross_entropy, load, mlp
from elephant_nn.data.dataset import Dataset
from elephant_nn.experiments import EXPERIMENTS, split
from elephant_nn.experiments.split import build_learner, build_network, digits_program, summary
from elephant_nn.report.figures import draw_figures
from elephant_nn.report.split_figures import curves, tasks_over_time
from elephant_nn.runs.cells import Cell
from elephant_nn.runs.program import cell_key
from elephant_nn.runs.shard import Shard, run_shard

SHAPES = {"split-digits": (8, 8, 1), "split-mnist": (28, 28, 1), "split-cifar10": (32, 32, 3)}
ROWS = [
    pytest.param(name, entry, id=f"{name}-{entry.method}-{entry.settings.get('neurons')}")
    for name in SHAPES
    for entry in EXPERIMENTS[name].entries
]
EMLP = {"neurons": 200, "lr": 1e-4, "E": 1, "a": 0.16, "sigma_bias": 0.32, "d": 4, "batch": 10}


def images(shape, n=20):
    x = np.random.default_rng(0).integers(0, 256, (n, *shape), np.uint8)
    return Dataset("made up", x, np.arange(n, dtype=np.int32) % 10, x, np.arange(n) % 10)


@pytest.mark.parametrize(("name", "entry"), ROWS)
def test_every_row_has_a_learner_of_the_right_size(name, entry):
    cell = EXPERIMENTS[name].cells(entry, [entry.settings], [0])[0]
    dataset = images(SHAPES[name])
    learner = build_learner(entry.method, dict(cell.static), cell.floats, dataset, (3, 6))
    state = jax.eval_shape(learner.init, jax.random.key(0))
    x = jax.ShapeDtypeStruct((7, *SHAPES[name]), jnp.float32)
    y = jax.ShapeDtypeStruct((7,), jnp.int32)
    assert jax.eval_shape(learner.predict, state, x).shape == (7, 10)
    after = jax.eval_shape(learner.update, state, (x, y))
    assert jax.tree.map(lambda s: (s.shape, s.dtype), after) == jax.tree.map(
        lambda s: (s.shape, s.dtype), state
    )
    neurons = entry.settings.get("neurons")
    sizes = {size for leaf in jax.tree.leaves(state) for size in leaf.shape}
    assert neurons is None or neurons in sizes


def weights(name, method, neurons):
    experiment = EXPERIMENTS[name]
    (entry,) = (
        e for e in experiment.entries
        if (e.method, e.settings.get("neurons")) == (method, neurons)
    )  # fmt: skip
    cell = experiment.cells(entry, [entry.settings], [0])[0]
    learner = build_learner(method, dict(cell.static), cell.floats, images(SHAPES[name]))
    params = jax.eval_shape(learner.init, jax.random.key(0)).params
    return sum(leaf.size for leaf in jax.tree.leaves(params))


def test_networks_have_the_papers_sizes():
    assert weights("split-mnist", "emlp", 1000) == 784 * 1000 + 1000 + 1000 * 10
    dense = 14 * 14 * 64 * 10000 + 10000 + 10000 * 10
    assert weights("split-mnist", "ecnn", 10000) == 9 * 64 + 64 + dense
    dense = 16 * 16 * 64 * 1000 + 1000 + 1000 * 10
    assert weights("split-cifar10", "cnn", 1000) == 27 * 64 + 64 + dense


SPRING = {"lr": 1e-3, "E": 2, "anchor": "average", "lambda": 1e3, "gamma": 0.9}
BELL = {"lr": 1e-3, "E": 1, "a": 0.16, "sigma_bias": 0.32, "d": 4}
ACTING = [
    ("mlp", {"lr": 1e-3, "E": 1}, {"lr": 2e-3, "E": 2}),
    ("emlp", BELL, {"lr": 2e-3, "E": 2, "a": 0.08, "sigma_bias": 0.16, "d": 6}),
    ("ecnn", {**BELL, "filters": 4}, {"E": 2, "a": 0.08, "sigma_bias": 0.16, "d": 6}),
    ("mlp-ewc", SPRING, {"E": 1, "anchor": "fisher", "lambda": 1e4, "gamma": 0.5}),
    ("mlp-ewc", SPRING, {"anchor": "previous"}),
    ("mlp-ewc/boundaries", SPRING, {"E": 1, "lambda": 1e4, "gamma": 0.5}),
    ("flymodel", {"per_unit": 8, "lr": 0.01}, {"per_unit": 4, "lr": 0.02}),
    ("sdmlp", {"k": 2, "switch": 50.0, "lr": 0.5, "passes": 1}, {"k": 3, "switch": 9.0, "lr": 1.0}),
    ("lda/elephant", BELL, {"a": 0.08, "sigma_bias": 0.16, "d": 6}),
]


@partial(jax.jit, static_argnums=(0, 1))
def learned(method, static, floats):
    """What is predicted after four batches of 20 digits."""
    dataset = load("digits")
    x = jnp.asarray(dataset.x_train[:80] / 255.0, jnp.float32).reshape(4, 20, 8, 8, 1)
    y = jnp.asarray(dataset.y_train[:80]).reshape(4, 20)
    learner = build_learner(method, dict(static), floats, dataset, (2, 3))
    update = lambda state, batch: (learner.update(state, batch), None)
    state, _ = jax.lax.scan(update, learner.init(jax.random.key(0)), (x, y))
    return learner.predict(state, x[0])


@pytest.mark.parametrize(("method", "settings", "others"), ACTING)
def test_every_setting_reaches_its_learner(method, settings, others):
    def predicted(**changes):
        hyper = {"neurons": 30, **settings, **changes}
        cell = Cell.of("split-digits", method, hyper, 0)
        return learned(method, cell.static, dict(cell.floats))

    usual = predicted()
    assert jnp.isfinite(usual).all()
    for name, value in others.items():
        assert jnp.abs(predicted(**{name: value}) - usual).max() > 1e-6, name


@pytest.mark.parametrize("method", ["mlp", "emlp", "cnn", "ecnn", "econvmixer"])
def test_twins_differ_in_the_last_hidden_layer(method):
    network = build_network(method, {"neurons": 30, "d": 4}, BELL, images((8, 8, 1)))
    x = jnp.asarray(images((8, 8, 1)).x_train / 255.0, jnp.float32)
    h = network.features(network.init(jax.random.key(0)), x)
    assert h.shape == (20, 30)
    bells = bool((h > 0).all() and (h <= 1).all())
    assert bells == method.startswith("e")
    assert bells or bool((h == 0).any())


RATES = {"lr": (3e-6, 1e-6, 3e-7, 1e-7, 3e-8, 1e-8), "E": (1, 2)}
SHAPES_SWEPT = {"a": (0.02, 0.04, 0.08, 0.16, 0.32), "sigma_bias": (0.04, 0.08, 0.16, 0.32, 0.64)}
SPRINGS = {
    "lambda": (1e1, 1e2, 1e3, 1e4, 1e5),
    "gamma": (0.5, 0.8, 0.9, 0.95, 0.99, 0.999),
    "anchor": ("previous", "average", "fisher"),  # the paper does not say which
}


def test_grids_are_the_papers():
    grids = dict.fromkeys(("mlp", "cnn", "convmixer"), RATES)
    grids |= dict.fromkeys(("emlp", "ecnn", "econvmixer"), RATES | SHAPES_SWEPT)
    grids |= dict.fromkeys(("mlp-ewc", "cnn-ewc"), RATES | SPRINGS)
    for name in ("split-mnist", "split-cifar10"):
        entries = [entry for entry in EXPERIMENTS[name].entries if entry.method in grids]
        assert len(entries) == 2 * len(grids)
        for entry in entries:
            values = {axis: set(found) for axis, found in entry.grid.items()}
            assert values == {axis: set(found) for axis, found in grids[entry.method].items()}
            named = lambda settings: {tuple(sorted(hyper.items())) for hyper in settings}
            assert named(entry.candidates(coarse=True)) <= named(entry.candidates())


def test_head_rate_is_the_output_layers_alone():
    dataset = images((8, 8, 1))
    x, y = jnp.asarray(dataset.x_train / 255.0), jnp.asarray(dataset.y_train)

    def changes(**floats):
        learner = build_learner("emlp", EMLP, {**EMLP, **floats}, dataset)
        before = learner.init(jax.random.key(0))
        after = learner.update(before, (x, y))
        return jax.tree.map(lambda b, a: np.asarray(a - b), before.params, after.params)

    plain, fixed, faster = changes(), changes(head_rate=0.0), changes(head_rate=10.0)
    for other in (fixed, faster):
        np.testing.assert_array_equal(other[0]["w"], plain[0]["w"])
    assert np.abs(plain[1]["w"]).max() > 0
    np.testing.assert_array_equal(fixed[1]["w"], 0)
    np.testing.assert_allclose(faster[1]["w"], 10 * plain[1]["w"], rtol=1e-3, atol=1e-6)
    convolved = build_learner("ecnn", EMLP, {**EMLP, "head_rate": 0.0}, dataset)
    with pytest.raises(ValueError, match="head_rate is for MLPs"):
        jax.eval_shape(convolved.update, convolved.init(jax.random.key(0)), (x, y))


def run(method, settings, seed=0, tmp_path=None, lanes=1):
    cells = tuple(Cell.of("split-digits", method, settings, s) for s in range(seed, seed + lanes))
    return run_shard(Shard(digits_program, cells, lanes), tmp_path)


def test_a_run_fills_its_row(tmp_path):
    (row,) = run("emlp", EMLP, tmp_path=tmp_path)
    assert row["status"] == "ok"
    assert row["accuracy"] > 0.3
    assert row["accuracy"] == pytest.approx(row["accuracy_curve"][-1])
    assert len(row["accuracy_curve"]) == len(row["batches"]) == 20
    matrix = np.array(row["task_accuracy"])
    assert matrix.shape == (20, 5)
    assert (matrix[3, 1:] < 0.1).all()  # the other classes have not come yet
    at_ends = matrix[3::4]
    assert row["learning_accuracy"] == pytest.approx(np.diag(at_ends).mean())
    assert (row["passes"], row["task_boundary"], row["class_statistics"]) == (1, False, False)
    assert (row["scaling"], row["cut"]) == ("unit", "task")


def test_lanes_change_nothing_but_rounding(tmp_path):
    alone = run("emlp", EMLP, seed=1, tmp_path=tmp_path)[0]
    beside = run("emlp", EMLP, seed=0, tmp_path=tmp_path, lanes=2)[1]
    assert alone["cell"] == beside["cell"]
    assert alone["accuracy"] == pytest.approx(beside["accuracy"], abs=0.02)


def test_choosing_runs_measure_what_was_kept_back_and_the_test_set_at_the_end_only(tmp_path):
    (row,) = run("emlp", {**EMLP, "held_out": 5}, seed=1000, tmp_path=tmp_path)
    assert len(row["accuracy_curve"]) == 1
    assert "forgetting" not in row
    assert 0.2 < row["test_accuracy"] <= 1
    kept_back = split._load("digits").held_out(5)
    pairs = kept_back.y_train // 2
    assert row["batches"][-1] == sum(np.bincount(pairs) // 10)  # what was kept back is not shown
    hits = row["accuracy"] * len(kept_back.y_test)
    assert hits == pytest.approx(round(hits), abs=1e-2)


@pytest.mark.parametrize(
    ("method", "settings", "rules"),
    [
        ("sdmlp", {"neurons": 60, "k": 5, "lr": 0.05, "passes": 2, "switch": 900.0}, (2, False)),
        ("flymodel", {"neurons": 200, "per_unit": 8, "lr": 0.01}, (1, True)),
        ("lda", {}, (1, True)),
    ],
)
def test_rows_say_under_which_rules_they_were_made(method, settings, rules, tmp_path):
    (row,) = run(method, {**settings, "batch": 10}, tmp_path=tmp_path)
    assert (row["passes"], row["class_statistics"]) == rules
    assert row["accuracy"] > 0.15


def test_a_learner_that_needs_more_passes_than_the_stream_gives_is_refused(monkeypatch):
    settings = {"neurons": 60, "k": 5, "passes": 1, "batch": 10}
    greedy = split.build_learner("sdmlp", {**settings, "passes": 9}, _halves(), images((8, 8, 1)))
    monkeypatch.setattr(split, "build_learner", lambda *args: greedy)
    with pytest.raises(ValueError, match="needs passes=9, which the stream does not grant"):
        digits_program("sdmlp", settings)


def _halves():
    return {"lr": 0.5, "switch": 100.0}


def test_other_protocols_are_settings(tmp_path):
    usual = run("emlp", EMLP, tmp_path=tmp_path)[0]
    shown = {}
    for more in ({"scaling": "standard"}, {"cut": "stream"}, {"class_order": 3}):
        (row,) = run("emlp", {**EMLP, **more}, tmp_path=tmp_path)
        assert row["status"] == "ok"
        assert row["accuracy_curve"] != usual["accuracy_curve"]
        assert row["scaling"] == more.get("scaling", "unit")
        assert row["cut"] == more.get("cut", "task")
        shown[row["cut"]] = row["batches"][-1]
    whole = len(split._load("digits").x_train) // 10
    assert shown["task"] < shown["stream"] == whole  # by task, five incomplete batches are dropped


def test_a_shuffled_stream_has_no_tasks_to_forget(tmp_path):
    (row,) = run("emlp/shuffled", {**EMLP, "order": "shuffled"}, tmp_path=tmp_path)
    assert row["accuracy"] > run("emlp", EMLP, tmp_path=tmp_path)[0]["accuracy"]
    assert row["accuracy_curve"][3] > 0.3  # all classes come from the beginning
    assert "forgetting" not in row


def test_the_number_of_filters_is_a_setting():
    network = build_network("cnn", {"neurons": 20, "filters": 8}, {}, load("digits"))
    params = network.init(jax.random.key(0))
    assert params["conv"]["w"].shape == (9, 8)


def test_methods_meet_the_same_samples_in_the_same_order_and_seeds_others():
    orders, weights = [], []
    for method, settings, seed in (
        ("emlp", EMLP, 3),
        ("emlp", EMLP, 4),
        ("flymodel", {"neurons": 200, "per_unit": 8}, 3),
    ):
        program = digits_program(method, {**settings, "batch": 10})
        floats = {name: jnp.array(0.1) for name in ("lr", "a", "sigma_bias")}
        state, order = jax.jit(program.init)(cell_key("split-digits", seed), floats)
        orders.append(np.asarray(order))
        weights.append(np.asarray(jax.tree.leaves(state)[1]))  # the first are biases, evenly spread
    np.testing.assert_array_equal(orders[0], orders[2])
    assert not np.array_equal(orders[0], orders[1])
    assert not np.array_equal(weights[0], weights[1])


def test_the_summary_by_hand():
    by_class = np.array([[1.0, 0.0], [0.5, 1.0]])  # class 0 halves while class 1 is learned
    row = summary(by_class, np.array([30, 10]), [[0], [1]], np.array([5, 9]), [5, 9])
    assert row["accuracy"] == pytest.approx((0.5 * 30 + 10) / 40)
    assert row["forgetting"] == pytest.approx(0.5)
    assert row["backward_transfer"] == pytest.approx(-0.5)
    assert row["learning_accuracy"] == pytest.approx(1.0)


def test_the_optimiser_is_rmsprop_as_optax_has_it():
    """Epsilon inside the root and a memory that starts at zero: at these rates it matters."""
    dataset = load("digits")
    learner = build_learner("mlp", {"neurons": 5, "E": 1}, {"lr": 1e-3}, dataset)
    x, y = jnp.asarray(dataset.x_train[:10] / 255.0, jnp.float32), jnp.asarray(dataset.y_train[:10])
    state = learner.init(jax.random.key(0))
    network = mlp((64, 5, 10))
    slopes = jax.grad(lambda p: cross_entropy(network.apply(p, x), y))(state.params)
    by_hand = jax.tree.map(
        lambda p, g: p - 1e-3 * g / jnp.sqrt(0.001 * g**2 + 1e-8), state.params, slopes
    )
    after = learner.update(state, (x, y)).params
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-7), after, by_hand)


def test_boundaries_are_for_rows_that_say_so(tmp_path):
    plain = {"neurons": 50, "lr": 1e-3, "E": 1, "batch": 10}
    spring = {**plain, "lambda": 1e5, "gamma": 1.0}
    with pytest.raises(ValueError, match=r"needs task_boundary=True, .* does not grant"):
        digits_program("mlp-ewc/boundaries", spring)
    (told,) = run("mlp-ewc/boundaries", {**spring, "task_boundary": 1}, tmp_path=tmp_path)
    assert told["task_boundary"] is True
    (free,) = run("mlp", plain, tmp_path=tmp_path)
    # The spring has no stiffness before the first boundary, and all of it from there on.
    np.testing.assert_allclose(told["accuracy_curve"][:4], free["accuracy_curve"][:4], atol=1e-6)
    assert told["task_accuracy"][-1][0] > free["task_accuracy"][-1][0] + 0.3
    assert told["learning_accuracy"] < free["learning_accuracy"] - 0.3


def test_every_task_has_as_many_pieces():
    assert split._pieces([8, 10, 22]) == [2, 4, 6, 8, 8, 9, 10, 10, 13, 16, 19, 22]


@pytest.fixture
def drawn_rows():
    experiment = EXPERIMENTS["split-digits"]
    rows = []
    for entry in experiment.entries:
        if entry.method not in ("emlp", "flymodel"):
            continue
        points = 5 if entry.method == "flymodel" else 20  # once, or four times a task
        for cell in experiment.cells(entry, [entry.settings], [0, 1, 2]):
            # after moment m of its three runs .1 or .3 + m / 100 is known of each task; one failed
            known = 0.1 + 0.2 * cell.seed + np.arange(points) / 100
            rows.append(
                {
                    "method": entry.method,
                    "hyper": json.dumps(cell.hyper, sort_keys=True),
                    "seed": cell.seed,
                    "status": "diverged" if cell.seed == 2 else "ok",
                    "class_statistics": entry.method == "flymodel",
                    "accuracy": known[-1],
                    "accuracy_curve": known.tolist(),
                    "batches": (np.arange(1, points + 1) * 100 // points).tolist(),
                    "task_accuracy": np.tile(known[:, None], 5).tolist(),
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def test_both_figures_are_drawn(drawn_rows, tmp_path):
    drawn = draw_figures("split-digits", drawn_rows, tmp_path)
    assert [figure.png.stem for figure in drawn] == ["split-digits-curves", "split-digits-tasks"]


def test_curves_are_means_of_finished_runs_with_tasks_marked(drawn_rows):
    ax = curves(EXPERIMENTS["split-digits"], drawn_rows).axes[0]
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_allclose(lines["EMLP (2)"].get_ydata(), 0.2 + np.arange(20) / 100)
    np.testing.assert_allclose(
        lines["FlyModel, class statistics (2)"].get_ydata(), 0.2 + np.arange(5) / 100
    )
    marks = [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"]
    assert marks == [20, 40, 60, 80]


def test_maps_show_what_was_known_when_a_task_ended(drawn_rows):
    drawn = tasks_over_time(EXPERIMENTS["split-digits"], drawn_rows)
    for ax in drawn.axes[:2]:
        fly = ax.get_title().startswith("FlyModel")
        expected = [f"{0.2 + m / 100:.2f}" for m in (range(5) if fly else range(3, 20, 4))]
        assert [text.get_text() for text in ax.texts] == expected * 5
