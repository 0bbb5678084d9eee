"""Rows of users, and the Python interface."""

import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from elephant_nn.cli import main
from elephant_nn.experiments import reproduce, rows, sweep
from elephant_nn.experiments.api import Runner, find_table, load_rows, select
from elephant_nn.experiments.names import UsageError
from elephant_nn.experiments.spec import Search, read_choices
from elephant_nn.experiments.tables import TABLES
from elephant_nn.runs.run import local_executor

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "my_rows.py"
FILE = """
import math
import optax
from elephant_nn import cross_entropy, gradient, mlp
from elephant_nn.experiments import Row

def mine(shape, classes, *, neurons: int, lr: float, updates: int = 1):
    network = mlp((math.prod(shape), neurons, classes))
    return gradient(network, optax.sgd(lr), cross_entropy, updates=updates)

ROWS = [Row("mine", "Mine", mine, {"neurons": 20, "lr": 1}, {"lr": (1, 0.1), "E": (1, 2)})]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_whole_numbers_are_floats_where_a_builder_says_float(file):
    (row,) = load_rows(TABLES["split-digits"], file)
    assert row.settings == {"batch": 10, "neurons": 20, "lr": 1.0, "E": 1}
    assert all(isinstance(value, float) for value in row.grid["lr"])
    assert isinstance(row.settings["lr"], float)
    assert row.guessed
    assert row.source


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lr: float", "rate: float", "neither mine nor the problem has a setting 'lr'"),
        ('{"neurons": 20, "lr": 1}', '{"neurons": 2.5}', "neurons must be a whole number, got 2.5"),
        ('Row("mine"', 'Row("emlp"', "split-digits has a method 'emlp' already"),
        ("ROWS =", "LINES =", "has no ROWS"),
        ("import math", "import maths", "cannot be imported: ModuleNotFoundError"),
        ("ROWS = [", "ROWS = [3, ", "must be a list of"),
        ("mine, {", '"nobody", {', "has no 'nobody'"),
        ('"neurons": 20, ', "", "mine needs a value for neurons"),
        ('"lr": 1}', '"lr": float("nan")}', "lr must be finite, got nan"),
        ('{"lr": (1, 0.1), ', '{"lr": (), ', "the grid has no values for lr"),
        ("ROWS = [", "ROWS = [] and [", "must be a list of"),
        ("lr: float, updates: int", "batch: float, lr: float, updates: int", "declare batch as"),
    ],
)
def test_wrong_rows_are_one_clear_sentence(tmp_path, old, new, message):
    assert old in FILE
    path = tmp_path / f"{abs(hash((old, new)))}.py"
    path.write_text(FILE.replace(old, new))
    with pytest.raises(UsageError, match=message) as caught:
        load_rows(TABLES["split-digits"], path)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path, capsys):
    assert main(["reproduce", "split-digits", "--rows", str(tmp_path / "no.py")]) == 2
    assert "there is no file" in capsys.readouterr().err
    assert main(["reproduce", "sine", "edit", "--rows", "x.py"]) == 2
    assert "one experiment at a time" in capsys.readouterr().err


def test_own_rows_run_sweep_and_show_beside_ours(file, tmp_path, capsys):
    out = ("--out", str(tmp_path / "out"), "--rows", str(file))
    call = ("split-digits", "--methods", "mine", *out)
    assert main(["sweep", *call, "--seeds", "1", "--workers", "0"]) == 0
    assert "4 of 4" in capsys.readouterr().out
    assert main(["reproduce", *call, "--quick", "--workers", "0"]) == 0
    assert "Mine *" in capsys.readouterr().out
    written = file.with_suffix(".json")
    written.write_text('[{"row": "another", "settings": {}}]')
    assert main(["sweep", *call, "--seeds", "1", "--workers", "0", "--write", str(written)]) == 0
    chosen = read_choices(written)
    assert set(chosen) == {"Mine, 20 neurons", "another"}
    (row,) = load_rows(TABLES["split-digits"], file)  # what was chosen is used, without a star
    assert row.settings.items() >= chosen[row.key]["settings"].items()
    assert not row.guessed
    capsys.readouterr()
    assert main(["reproduce", *call, "--seeds", "2", "--workers", "0"]) == 0
    assert "Mine " in capsys.readouterr().out
    figure = tmp_path / "out" / "split-digits" / "figures" / "split-digits-curves.svg"
    assert "Mine (2)" in figure.read_text()
    assert main(["show", "split-digits", *out, "--format", "json"]) == 0
    assert '"method": "mine"' in capsys.readouterr().out


@pytest.mark.slow
def test_changed_code_is_noticed_and_run_again_on_request(file, tmp_path, capsys):
    out = tmp_path / "out"
    call = ["reproduce", "split-digits", "--methods", "mine", "--quick", "--out", str(out)]
    call += ["--rows", str(file), "--workers", "0"]
    assert main(call) == 0
    (first,) = rows("split-digits", out)["accuracy"]
    file.write_text(file.read_text().replace("optax.sgd(lr)", "optax.sgd(0.0 * lr)"))
    capsys.readouterr()
    assert main(call) == 0
    assert "1 stored runs come from an earlier version of its code" in capsys.readouterr().err
    assert rows("split-digits", out)["accuracy"].to_list() == [first]
    run = lambda seeds: reproduce(
        "split-digits", methods=["mine"], seeds=seeds, rows=file, out=out, workers=0
    )
    with pytest.warns(RuntimeWarning, match="earlier version of its code"):
        run(1)
    assert main([*call[:4], "--seeds", "2", *call[5:]]) == 0  # one run of each version
    with pytest.warns(RuntimeWarning, match="earlier version of its code"):
        table = run(2)
    assert table.filter(pl.col("metric") == "accuracy")["runs"].to_list() == [1]
    capsys.readouterr()
    assert main(["show", "split-digits", "--rows", str(file), "--out", str(out)]) == 0
    assert "earlier version of its code" in capsys.readouterr().err
    assert main([*call[:4], "--seeds", "2", *call[5:], "--again"]) == 0
    assert "earlier version" not in capsys.readouterr().err
    again = rows("split-digits", out)["accuracy"].to_list()
    assert len(again) == 2
    assert first not in again


def test_functions_return_frames(file, tmp_path):
    table = reproduce("split-digits", methods=["mine"], seeds=1, rows=file, out=tmp_path, workers=0)
    assert isinstance(table, pl.DataFrame)
    assert {"method", "metric", "mean", "se", "runs", "hyper"} <= set(table.columns)
    assert set(table["method"]) == {"mine"}
    chosen = sweep("split-digits", methods=["mine"], seeds=1, rows=file, out=tmp_path, workers=0)
    assert chosen.height == 1
    assert rows("split-digits", tmp_path).height == 1 + 4 + 1
    assert rows("sine", tmp_path).height == 0
    with pytest.raises(UsageError, match="did you mean sine"):
        rows("sin", tmp_path)


@pytest.mark.slow
def test_again_repeats_the_finalists_of_a_sweep(file, tmp_path):
    table = find_table("split-digits", file)
    mine, search = select(table, ["mine"]), Search(seeds=1, finalists=2)
    runner = Runner(tmp_path / "out", local_executor(0))
    first = runner.sweep(table, mine, search, seeds=1)
    assert first.ran == 4 + 2 * 3 + 1
    assert runner.sweep(table, mine, search, seeds=1).ran == 0
    assert replace(runner, again=True).sweep(table, mine, search, seeds=1).ran == first.ran
    assert runner.rows(table).height == first.ran


def test_two_builders_of_one_method_are_refused(tmp_path):
    path = tmp_path / "clash.py"
    other = "def other(shape, classes, *, neurons: int, lr: float): ..."
    row = 'Row("mine", "Other", other, {"neurons": 20, "lr": 1})'
    path.write_text(FILE.replace("ROWS = [", f"{other}\nROWS = [{row}, "))
    with pytest.raises(UsageError, match="two builders have the method 'mine'"):
        load_rows(TABLES["split-digits"], path)


def test_a_rows_file_may_import_modules_beside_it(tmp_path):
    (tmp_path / "beside.py").write_text("WIDTH = 20\n")
    path = tmp_path / "importing.py"
    text = FILE.replace("import math\n", "import math\nfrom beside import WIDTH\n", 1)
    path.write_text(text.replace('"neurons": 20', '"neurons": WIDTH'))
    assert load_rows(TABLES["split-digits"], path)[0].settings["neurons"] == 20


def test_rows_with_the_same_name_are_refused(tmp_path):
    path = tmp_path / "twice.py"
    path.write_text(FILE.replace("ROWS = [", "ROWS = 2 * ["))
    with pytest.raises(UsageError, match="there is a row 'Mine, 20 neurons' already"):
        load_rows(TABLES["split-digits"], path)


@pytest.mark.slow
def test_a_relative_path_works_in_workers(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = reproduce(
        "split-digits", methods=["mine"], seeds=1, rows=file.name, out="out", workers=1
    )
    assert table["runs"][0] == 1


def test_range_checks_see_the_values_of_the_row_only(file, tmp_path):
    check = "    assert not isinstance(lr, float) or lr >= 1.0, lr\n    network"
    file.write_text(file.read_text().replace("    network", check, 1))
    table = reproduce(
        "split-digits", methods=["mine"], seeds=1, rows=file, out=tmp_path / "out", workers=0
    )
    assert table["runs"][0] == 1


def test_senseless_numbers_are_refused(tmp_path):
    with pytest.raises(ValueError, match="workers must be 0 or more, got -1"):
        reproduce("sine", workers=-1, out=tmp_path)
    with pytest.raises(ValueError, match="finalists 0 or more"):
        Search(finalists=-1)


def test_selection_by_method_and_width():
    table = find_table("split-mnist")
    assert {row.settings["neurons"] for row in select(table, ["emlp"])} == {1000, 10000}
    (row,) = select(table, ["emlp"], [1000])
    assert row.settings["neurons"] == 1000
    assert "nearest-mean" in {row.method for row in select(table, neurons=[1000])}
    with pytest.raises(UsageError, match="--neurons 7: split-mnist has 1000, 1600, 10000"):
        select(table, neurons=[7])


@pytest.mark.slow
def test_the_worked_example_runs_in_workers(tmp_path, capsys, monkeypatch):
    shutil.copy(EXAMPLE, tmp_path / "my_rows.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    call = ["reproduce", "split-digits", "--rows", "my_rows.py", "--methods", "emlp,emlp-batch"]
    assert main([*call, "--seeds", "2", "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "EMLP, softmax over the batch *" in printed
    stored = rows("split-digits", tmp_path / "out")
    means = dict(stored.group_by("method").agg(pl.col("accuracy").mean()).iter_rows())
    assert means["emlp"] > 0.8
    assert means["emlp-batch"] > 0.5


def test_a_protocol_changes_settings_of_the_problem_and_nothing_else():
    table, other = TABLES["split-digits"], find_table("split-digits", protocol="legacy_order=3")
    assert other.title.endswith("; legacy_order 3")
    for row, changed in zip(table.rows, other.rows, strict=True):
        assert changed.settings == {**row.settings, "legacy_order": 3}
        assert changed.guessed == bool(row.grid)  # chosen for another protocol
        assert not changed.paper
    assert not other.figures  # those of the published protocol stay
    both = find_table("split-digits", protocol="scaling=standard, cut=stream")
    assert both.rows[0].settings["scaling"] == "standard"
    assert both.rows[0].settings["cut"] == "stream"


def test_rows_about_a_changed_setting_are_left_out():
    other = find_table("split-digits", protocol="order=tasks")
    assert "mlp/shuffled" not in other.methods
    assert "mlp" in other.methods
    scaled = find_table("split-digits", protocol="scaling=none")
    assert all("standardised" not in row.title for row in scaled.rows)
    whole = TABLES["embedding-cifar10"]
    other = find_table(whole.name, protocol="embedding=mine,batch=50")
    assert len(other.rows) == len(whole.rows)
    assert "EfficientNet" not in other.notes


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ("legacy_ordr=3", "did you mean legacy_order"),
        ("legacy_order", "--set takes NAME=VALUE, separated by commas, got 'legacy_order'"),
        ("legacy_order=", "--set takes NAME=VALUE"),
        ("legacy_order=2.5", "--set legacy_order must be a whole number, got '2.5'"),
        ("legacy_order=three", "--set legacy_order must be a whole number, got 'three'"),
        ("neurons=3", "there is no setting of split-digits 'neurons'"),
    ],
)
def test_wrong_protocols_are_named(protocol, message):
    with pytest.raises(UsageError, match=message):
        find_table("split-digits", protocol=protocol)


def test_the_command_runs_another_protocol(tmp_path, capsys):
    run = ["reproduce", "split-digits", "--methods", "lda", "--quick", "--workers", "0"]
    assert main([*run, "--set", "legacy_order=3", "--out", str(tmp_path)]) == 0
    assert "legacy_order 3" in capsys.readouterr().out
    assert main(["show", "split-digits", "--set", "legacy_order=3", "--out", str(tmp_path)]) == 0
    assert "LDA" in capsys.readouterr().out
    assert not list(tmp_path.rglob("*.png"))
    sweep = ["sweep", "split-digits", "--set", "cut=stream", "--write", "x.json"]
    assert main([*sweep, "--out", str(tmp_path)]) == 2
    assert "leave out --set" in capsys.readouterr().err
    assert main([*run, "--set", "order=backwards", "--out", str(tmp_path)]) == 1
    assert "order must be one of ('tasks', 'shuffled'), got 'backwards'" in capsys.readouterr().err
