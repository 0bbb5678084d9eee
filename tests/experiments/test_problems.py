"""The problems: small runs, by hand where possible, and against what was published."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from made_up import frame, made_up

from elephant_nn import accuracy_by_class, class_incremental, inject_hyperparams, learn, load
from elephant_nn.data.embedding import embedding_path
from elephant_nn.experiments import methods
from elephant_nn.experiments.api import work_of
from elephant_nn.experiments.problems import episodes, moments, split_digits, summary
from elephant_nn.experiments.tables import TABLES
from elephant_nn.files import DataError
from elephant_nn.report.figures import accuracy_curves, draw_figures, task_maps
from elephant_nn.report.publishing import published_rows
from elephant_nn.runs import shard as shard_module
from elephant_nn.runs.cells import Cell
from elephant_nn.runs.checkpoint import save_checkpoint
from elephant_nn.runs.program import bind, cell_key, resolve
from elephant_nn.runs.shard import Shard, Work, compiled, run_shard

ROOT = Path(__file__).parents[2]
METHODS, PROBLEMS = "elephant_nn.experiments.methods", "elephant_nn.experiments.problems"
DIGITS = TABLES["split-digits"]
EMLP = {"neurons": 200, "lr": 1e-4, "E": 1, "a": 0.16, "sigma_bias": 0.32, "d": 4, "batch": 10}


def run(build, settings, tmp_path, seed=0, lanes=1, evaluations=4.0, method="m"):
    cells = tuple(Cell.of("split-digits", method, settings, s) for s in range(seed, seed + lanes))
    work = Work(f"{PROBLEMS}:split_digits", f"{METHODS}:{build}", evaluations)
    return run_shard(Shard(work, cells, lanes), tmp_path)


def program(build, settings, evaluations=4.0):
    bound = bind(split_digits, resolve(f"{METHODS}:{build}"), settings)
    return split_digits.program(bound.method, evaluations, **bound.own), bound.floats


def test_a_row_equals_learn_to_the_last_bit(tmp_path, monkeypatch):
    """One training loop: a run of a table and `learn` give the same bits."""
    monkeypatch.setattr(shard_module, "compiler_options", lambda: None)
    shard_module._compile.cache_clear()
    (row,) = run("emlp", EMLP, tmp_path)
    shard_module._compile.cache_clear()
    stream, tasks = class_incremental(load("digits"), batch_size=10)
    settings = {name: value for name, value in EMLP.items() if name != "batch"}
    learner = inject_hyperparams(methods.emlp)((8, 8, 1), 10, **settings)
    bounds, _ = moments(tasks.ends, 4)
    key, metric = cell_key("split-digits", 0), accuracy_by_class(10)
    _, by_class = learn(learner, stream, key, metric, at=bounds[1:].tolist())
    counts = np.bincount(load("digits").y_test)
    ours = summary(np.asarray(by_class), counts, tasks.classes, bounds[1:], tasks.ends)
    assert row["batches"] == ours["batches"].tolist()
    assert row["accuracy_curve"] == ours["accuracy_curve"].tolist()
    assert row["task_accuracy"] == ours["task_accuracy"].tolist()


def test_a_run_fills_its_row(tmp_path):
    (row,) = run("emlp", EMLP, tmp_path)
    assert row["status"] == "ok"
    assert row["accuracy"] > 0.3
    assert row["accuracy"] == pytest.approx(row["accuracy_curve"][-1])
    assert len(row["accuracy_curve"]) == len(row["batches"]) == 20
    matrix = np.array(row["task_accuracy"])
    assert matrix.shape == (20, 5)
    assert (matrix[3, 1:] < 0.1).all()  # the other classes have not been shown yet
    assert row["learning_accuracy"] == pytest.approx(np.diag(matrix[3::4]).mean())
    assert (row["passes"], row["task_boundary"], row["class_statistics"]) == (1, False, False)
    assert (row["scaling"], row["cut"]) == ("unit", "task")


def test_how_often_to_evaluate_is_a_setting_of_the_table(tmp_path):
    (often,) = run("emlp", EMLP, tmp_path)
    (once,) = run("emlp", EMLP, tmp_path, evaluations=1.0)
    assert once["batches"] == often["batches"][3::4]
    assert once["accuracy_curve"] == pytest.approx(often["accuracy_curve"][3::4])
    assert once["forgetting"] == pytest.approx(often["forgetting"])


def test_moments_by_hand():
    bounds, when = moments([8, 10, 22], 4)
    assert bounds.tolist() == [0, 2, 4, 6, 8, 8, 9, 10, 10, 13, 16, 19, 22]
    assert when.all()
    assert moments([8, 10, 22], 1)[1].tolist() == ([False] * 3 + [True]) * 3
    bounds, when = moments(range(2, 102, 2), 0.2)  # fifty tasks, evaluated after every fifth
    assert len(bounds) == 51
    assert np.flatnonzero(when).tolist() == list(range(4, 50, 5))
    assert moments([8, 10], 1e-9)[1].tolist() == [False] * 7 + [True]


def test_lanes_change_nothing_but_rounding(tmp_path):
    alone = run("emlp", EMLP, tmp_path, seed=1)[0]
    beside = run("emlp", EMLP, tmp_path, lanes=2)[1]
    assert alone["cell"] == beside["cell"]
    assert alone["accuracy"] == pytest.approx(beside["accuracy"], abs=0.02)


def test_choosing_runs_evaluate_held_out_and_test_samples_at_the_end_only(tmp_path):
    (row,) = run("emlp", {**EMLP, "held_out": 5}, tmp_path, seed=1000)
    assert len(row["accuracy_curve"]) == 1
    assert "forgetting" not in row
    assert 0.2 < row["test_accuracy"] <= 1
    kept, held = load("digits").held_out_rows(5)
    labels = load("digits").y_train
    assert row["batches"][-1] == sum(np.bincount(labels[kept] // 2) // 10)
    hits = row["accuracy"] * len(held)
    assert hits == pytest.approx(round(hits), abs=1e-2)


def test_held_out_samples_are_never_shown():
    settings = {**EMLP, "held_out": 5}
    made, floats = program("emlp", settings)
    key = cell_key("split-digits", 1000)
    _, order = jax.jit(made.init)(key, {n: jnp.float32(v) for n, v in floats.items()}, made.data)
    kept, held = load("digits").held_out_rows(5)
    assert set(np.asarray(order).tolist()) <= set(kept.tolist())
    assert not set(np.asarray(order).tolist()) & set(held.tolist())


@pytest.mark.parametrize(
    ("build", "settings", "rules"),
    [
        ("sdmlp", {"neurons": 60, "k": 5, "lr": 0.05, "passes": 2, "switch": 900.0}, (2, False)),
        ("flymodel", {"neurons": 200, "per_unit": 8, "lr": 0.01}, (1, True)),
        ("lda", {}, (1, True)),
    ],
)
def test_rows_state_their_rules(build, settings, rules, tmp_path):
    (row,) = run(build, {**settings, "batch": 10}, tmp_path)
    assert (row["passes"], row["class_statistics"]) == rules
    assert row["accuracy"] > 0.15


def test_other_protocols_are_settings(tmp_path):
    (usual,) = run("emlp", EMLP, tmp_path)
    shown = {}
    for more in ({"scaling": "standard"}, {"cut": "stream"}, {"class_order": 3}):
        (row,) = run("emlp", {**EMLP, **more}, tmp_path)
        assert row["status"] == "ok"
        assert row["accuracy_curve"] != usual["accuracy_curve"]
        assert row["scaling"] == more.get("scaling", "unit")
        assert row["cut"] == more.get("cut", "task")
        shown[row["cut"]] = row["batches"][-1]
    # Five incomplete batches are dropped task by task, one at the end of the stream.
    assert shown["task"] < shown["stream"] == len(load("digits").x_train) // 10


@pytest.mark.parametrize(
    ("seed", "order"),
    [
        (3, [5, 4, 1, 2, 9, 6, 7, 0, 3, 8]),
        (15, [2, 6, 1, 3, 7, 0, 9, 4, 5, 8]),
        (27, [4, 2, 9, 1, 5, 6, 7, 0, 8, 3]),
        (97, [7, 1, 2, 0, 6, 8, 4, 5, 9, 3]),
    ],
)
def test_legacy_orders_are_those_of_the_published_numbers(seed, order):
    made, _ = program("emlp", {**EMLP, "legacy_order": seed})
    assert [label for group in made.data.order.groups for label in group] == order


def test_two_orders_of_classes_are_refused():
    with pytest.raises(ValueError, match="give class_order or legacy_order, not both, got 1 and 3"):
        program("emlp", {**EMLP, "class_order": 1, "legacy_order": 3})


def test_inputs_can_be_standardised_by_the_first_batch(tmp_path):
    (row,) = run("emlp", {**EMLP, "scaling": "first-batch"}, tmp_path)
    assert row["scaling"] == "first-batch"
    assert row["accuracy"] > 0.15
    made, floats = program("lda", {"batch": 10, "scaling": "first-batch"})
    key = cell_key("split-digits", 0)
    state, order = jax.jit(made.init)(key, floats, made.data)
    first = np.asarray(made.data.x)[np.asarray(order)[:10]]
    np.testing.assert_allclose(state.offset, first.mean(0), rtol=1e-5)


def test_a_run_learns_from_embeddings_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("ELEPHANT_NN_CACHE", str(tmp_path))
    digits = load("digits")
    middle = lambda values: values.reshape(len(values), -1)[:, 20:40] if values.ndim > 1 else values
    flat = {name: middle(values) for name, values in digits.parts.items()}
    path = embedding_path("digits", "middle")
    path.parent.mkdir(parents=True)
    np.savez(path, **flat)
    settings = {**EMLP, "embedding": "middle", "scaling": "standard"}
    assert program("emlp", settings)[0].data.x.shape == (1442, 20)
    (row,) = run("emlp", settings, tmp_path / "store")
    assert row["status"] == "ok"
    with pytest.raises(DataError, match="no embeddings 'other' of digits; there are: middle"):
        program("emlp", {**EMLP, "embedding": "other"})


def test_a_shuffled_stream_has_no_tasks_to_forget(tmp_path):
    (row,) = run("emlp", {**EMLP, "order": "shuffled"}, tmp_path)
    assert row["accuracy"] > run("emlp", EMLP, tmp_path)[0]["accuracy"]
    assert row["accuracy_curve"][3] > 0.3  # all classes are shown from the start
    assert "forgetting" not in row


def test_methods_see_the_same_samples_in_the_same_order_and_seeds_others():
    orders, weights = [], []
    for build, settings, seed in (
        ("emlp", EMLP, 3),
        ("emlp", EMLP, 4),
        ("flymodel", {"neurons": 200, "per_unit": 8, "lr": 0.1, "batch": 10}, 3),
    ):
        made, floats = program(build, settings)
        traced = {name: jnp.float32(value) for name, value in floats.items()}
        state, order = jax.jit(made.init)(cell_key("split-digits", seed), traced, made.data)
        orders.append(np.asarray(order))
        weights.append(np.asarray(jax.tree.leaves(state)[1]))  # the first are biases, evenly spread
    np.testing.assert_array_equal(orders[0], orders[2])
    assert not np.array_equal(orders[0], orders[1])
    assert not np.array_equal(weights[0], weights[1])


def test_programs_of_a_problem_share_their_data():
    first, second = program("emlp", EMLP)[0], program("lda", {"batch": 10})[0]
    assert first.data.x is second.data.x


def test_summary_by_hand():
    by_class = np.array([[1.0, 0.0], [0.5, 1.0]])  # class 0 halves while class 1 is learned
    row = summary(by_class, np.array([30, 10]), [[0], [1]], np.array([5, 9]), [5, 9])
    assert row["accuracy"] == pytest.approx((0.5 * 30 + 10) / 40)
    assert row["forgetting"] == pytest.approx(0.5)
    assert row["backward_transfer"] == pytest.approx(-0.5)
    assert row["learning_accuracy"] == pytest.approx(1.0)


def test_boundaries_are_for_rows_that_say_so(tmp_path):
    plain = {"neurons": 50, "lr": 1e-3, "E": 1, "batch": 10}
    ewc = {**plain, "lambda": 1e5, "gamma": 1.0}
    with pytest.raises(ValueError, match=r"needs task_boundary=True, .* does not grant"):
        run("mlp_online_ewc", ewc, tmp_path)
    (told,) = run("mlp_online_ewc", {**ewc, "task_boundary": 1}, tmp_path)
    assert told["task_boundary"] is True
    (free,) = run("mlp", plain, tmp_path)
    # Without stiffness before the first boundary, with all of it from there on.
    np.testing.assert_allclose(told["accuracy_curve"][:4], free["accuracy_curve"][:4], atol=1e-6)
    assert told["task_accuracy"][-1][0] > free["task_accuracy"][-1][0] + 0.3
    assert told["learning_accuracy"] < free["learning_accuracy"] - 0.3


PUBLISHED = [
    ("sine", "emlp"),
    ("edit", "mlp-relu"),
    ("activations", "relu"),
    ("split-digits", "emlp"),
    ("rl-mountain-car", "emlp"),
]


@pytest.mark.parametrize(("name", "method"), PUBLISHED)
def test_published_runs_come_out_again(name, method, tmp_path, monkeypatch):
    """The first part of one cheap published run per problem: other processors round differently."""
    table = TABLES[name]
    row = next(row for row in table.rows if row.method == method)
    rows = published_rows(ROOT / "docs" / "results", name)
    cell = table.cell(row, row.settings, 0)
    kept = rows.filter(pl.col("cell") == cell.id).row(0, named=True)
    shard = Shard(work_of(table, row), (cell,), 1)
    if name.startswith("rl-"):
        steps, floats = compiled(shard)
        keys = jnp.stack([cell_key(cell.experiment, cell.seed)])
        carry = steps.start(keys, floats, steps.program.data)
        returns = []
        for index in range(3):  # three thousand of fifty thousand steps
            carry, outputs, _ = steps.advance(carry, floats, steps.program.data, index)
            returns.append(np.asarray(outputs["returns"][0]))
        curve = episodes(np.concatenate(returns), 6)["return_curve"]
        expected = np.array(kept["return_curve"][:6], float)
        np.testing.assert_allclose(curve[:4], expected[:4], rtol=1e-3)  # before it learns much
        return
    (new,) = run_shard(shard, tmp_path)
    if name == "split-digits":
        np.testing.assert_allclose(new["accuracy_curve"], kept["accuracy_curve"], atol=0.02)
    for metric in table.metrics[:2]:
        tolerance = {"sine": 0.2, "edit": 0.1}.get(name, 0.05)
        assert new[metric.name] == pytest.approx(kept[metric.name], rel=tolerance, abs=0.01)


def test_episodes_by_hand():
    returns = np.full(1000, np.nan)
    returns[9::10] = np.arange(100)  # an episode every ten steps, each one better
    row = episodes(returns, 100)
    assert row["return"] == pytest.approx(np.arange(90, 100).mean())
    assert row["episodes"] == 100
    assert row["return_curve"][0] == 0  # one episode within the first hundredth
    assert row["return_curve"][9] == pytest.approx(np.arange(10).mean())
    assert row["return_curve"][99] == pytest.approx(np.arange(50, 100).mean())
    none = episodes(np.full(500, np.nan), 100)
    assert np.isnan(none["return"])
    assert none["episodes"] == 0
    one = np.full(100, np.nan)
    one[50] = -7
    row = episodes(one, 100)
    assert row["return"] == -7
    assert np.isnan(row["return_curve"][:50]).all()
    assert row["return_curve"][51] == -7


class KilledError(Exception):
    pass


def test_a_short_training_run_resumes_exactly(tmp_path, monkeypatch):
    settings = {"neurons": 30, "buffer": 32, "lr": 1e-3, "E": 1, "steps": 3000}
    cell = Cell.of("rl-mountain-car", "mlp", settings, 0)
    shard = Shard(Work(f"{PROBLEMS}:mountain_car", f"{METHODS}:q_mlp"), (cell,), 1)
    (row,) = run_shard(shard, tmp_path / "one")

    def save_then_die(path, chunk, tree, *about):
        save_checkpoint(path, chunk, tree, *about)
        if chunk == 2:  # after it has started to learn
            raise KilledError

    monkeypatch.setattr(shard_module, "save_checkpoint", save_then_die)
    with pytest.raises(KilledError):
        run_shard(shard, tmp_path / "two", checkpoint_seconds=0.0)
    monkeypatch.undo()
    (resumed,) = run_shard(shard, tmp_path / "two")
    assert json.dumps(resumed) == json.dumps(row)
    assert row["status"] == "ok"
    assert row["episodes"] >= 2
    assert row["return"] >= -1000
    assert row["buffer_bytes"] == 32 * 7 * 4


@pytest.fixture
def drawn_rows():
    rows = []
    for row in DIGITS.rows:
        if row.method not in ("emlp", "flymodel"):
            continue
        points = 5 if row.method == "flymodel" else 20  # one or four evaluations per task
        for seed in range(3):
            # After evaluation m, .1 or .3 + m / 100 of each task is known; one run diverged.
            known = 0.1 + 0.2 * seed + np.arange(points) / 100
            status = "diverged" if seed == 2 else "ok"
            rows.append(
                made_up(
                    DIGITS, row, seed, status=status,
                    class_statistics=row.method == "flymodel",
                    accuracy=known[-1],
                    accuracy_curve=known.tolist(),
                    batches=(np.arange(1, points + 1) * 100 // points).tolist(),
                    task_accuracy=np.tile(known[:, None], 5).tolist(),
                )
            )  # fmt: skip
    return frame(*rows)


def test_both_figures_are_drawn(drawn_rows, tmp_path):
    drawn = draw_figures(DIGITS, drawn_rows, tmp_path)
    assert [figure.png.stem for figure in drawn] == ["split-digits-curves", "split-digits-tasks"]


def test_curves_are_means_of_finished_runs_with_tasks_marked(drawn_rows):
    ax = accuracy_curves(DIGITS, drawn_rows).axes[0]
    lines = {line.get_label(): line for line in ax.lines}
    np.testing.assert_allclose(lines["EMLP (2)"].get_ydata(), 0.2 + np.arange(20) / 100)
    np.testing.assert_allclose(
        lines["FlyModel, class statistics (2)"].get_ydata(), 0.2 + np.arange(5) / 100
    )
    marks = [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"]
    assert marks == [20, 40, 60, 80]


def test_maps_show_what_was_known_when_a_task_ended(drawn_rows):
    drawn = task_maps(DIGITS, drawn_rows)
    for ax in drawn.axes[:2]:
        fly = ax.get_title().startswith("FlyModel")
        expected = [f"{0.2 + m / 100:.2f}" for m in (range(5) if fly else range(3, 20, 4))]
        assert [text.get_text() for text in ax.texts] == expected * 5


def test_a_table_of_many_tasks_can_be_drawn(tmp_path):
    row = replace(DIGITS.rows[0], line=None)
    table = replace(DIGITS, rows=(row,))
    known = np.linspace(0.1, 0.5, 50)
    one = made_up(
        table, row, 0, class_statistics=False, accuracy=0.5, accuracy_curve=known.tolist(),
        batches=list(range(8, 408, 8)), task_accuracy=np.tile(known[:, None], 50).tolist(),
    )  # fmt: skip
    assert len(draw_figures(table, frame(one), tmp_path)) == 2
