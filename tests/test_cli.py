import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from made_up import made_up
from support import children_of

from elephant_nn.cli import main
from elephant_nn.experiments.tables import TABLES
from elephant_nn.runs.store import read_rows, rows_folder, write_rows

ELEPHANT = str(Path(sys.executable).with_name("elephant"))


def elephant(*arguments, **options):
    return subprocess.run([ELEPHANT, *arguments], capture_output=True, text=True, **options)


@pytest.mark.parametrize("arguments", [("list",), ("--help",), ("reproduce", "--help")])
def test_help_and_list_do_not_load_heavy_libraries(arguments):
    script = (
        "import sys; from elephant_nn.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "heavy = {'jax', 'numpy', 'polars', 'matplotlib', 'optax'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script, *arguments], check=True, capture_output=True)


def test_list_names_every_experiment(capsys):
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    for word in ("sine", "edit", "activations", "sr-nn", "Table 1", "394 settings"):
        assert word in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["repoduce", "sine"], "no command 'repoduce'; did you mean reproduce?"),
        (["reproduce", "sin"], "no experiment 'sin'; did you mean sine?"),
        (["reproduce"], "name an experiment: sine"),
        (["reproduce", "sine", "--methods", "emlb"], "did you mean emlp?"),
        (["reproduce", "sine", "--methods", "zzzzz"], "there are: mlp-relu"),
        (["reproduce", "sine", "--neurons", "7"], "--neurons 7: sine has 1000"),
        (["reproduce", "sine", "--neurons", "x"], "takes whole numbers"),
        (["reproduce", "sine", "edit", "--neurons", "77"], "no row of these experiments has that"),
        (
            ["sweep", "split-cifar10", "--methods", "lda/elephant", "--neurons", "10000"],
            "--neurons 10000: split-cifar10 has 1000",
        ),
        (["sweep", "sine", "edit", "--write", "x.json"], "--write takes one experiment at a time"),
        (["results", "sine"], "there is no folder docs/results"),
        (["reproduce", "sine", "--seeds", "0"], "--seeds must be between 1 and 999, got 0"),
        (["reproduce", "sine", "--workers", "-1"], "--workers must be 0 or more, got -1"),
        (["show", "sines"], "did you mean sine?"),
        (["show", "all"], "no experiment 'all'"),
        (["sweep", "edit"], "edit has no grid to sweep"),
        (["reproduce", "sine", "--quick", "--seeds", "3"], "not both"),
        (["bench", "sine"], "sine-grid"),
    ],
)
def test_wrong_calls_say_how_to_correct_them(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_wrong_options_exit_with_2():
    assert elephant("reproduce", "sine", "--sead", "3").returncode == 2
    assert elephant("show", "sine", "--format", "yaml").returncode == 2


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("elephant-nn 0.")


def test_show_of_nothing_says_what_to_run(capsys, tmp_path):
    assert main(["show", "sine", "--out", str(tmp_path)]) == 0
    assert "elephant reproduce sine" in capsys.readouterr().err
    assert main(["show", "sine", "--format", "json", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == "[]"


def test_show_after_a_sweep_alone_says_where_to_look(capsys, tmp_path):
    table = TABLES["sine"]
    row = table.rows[0]
    swept = made_up(table, row, 1000, {**row.settings, "lr": 1e-5}, mse=0.1)
    write_rows(rows_folder(tmp_path, "sine"), "swept", [swept])
    assert main(["show", "sine", "--out", str(tmp_path)]) == 0
    assert "or see what was swept: elephant show sine --sweep" in capsys.readouterr().err


def test_an_unwritable_folder_is_one_sentence_and_status_1(tmp_path, capsys):
    (tmp_path / "file").write_text("x")
    out = str(tmp_path / "file")
    assert main(["reproduce", "activations", "--out", out, "--workers", "0"]) == 1
    error = capsys.readouterr().err
    assert "cannot write" in error
    assert "Traceback" not in error


def test_reproduce_activations_is_the_papers_table(tmp_path, capsys):
    assert main(["reproduce", "activations", "--out", str(tmp_path), "--workers", "0"]) == 0
    capsys.readouterr()
    assert main(["show", "activations", "--format", "json", "--out", str(tmp_path)]) == 0
    records = json.loads(capsys.readouterr().out)
    assert len(records) == 10
    for record in records:
        assert record["mean"] == pytest.approx(record["paper_mean"], abs=1e-3)


def test_reproduce_edit_is_local_for_the_elephant_only(tmp_path, capsys):
    assert main(["reproduce", "edit", "--out", str(tmp_path), "--workers", "0", "--quick"]) == 0
    rows = {row["method"]: row for row in read_rows(rows_folder(tmp_path, "edit")).to_dicts()}
    for row in rows.values():
        assert row["error_after"] < 0.05 < 0.3 < row["error_before"]
    assert rows["emlp"]["mean_change"] < 0.4 * rows["mlp-relu"]["mean_change"]
    assert "figure:" in capsys.readouterr().out
    assert main(["report", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "report.html").stat().st_size > 20_000


@pytest.mark.slow
def test_a_damaged_store_file_is_named_and_its_runs_are_done_again(tmp_path):
    out = ("--out", str(tmp_path))
    assert main(["reproduce", "activations", *out, "--workers", "0"]) == 0
    victim = sorted(rows_folder(tmp_path, "activations").glob("*.parquet"))[0]
    victim.write_bytes(victim.read_bytes()[:100])
    again = elephant("reproduce", "activations", *out, "--workers", "0")
    assert again.returncode == 0
    assert victim.name in again.stderr
    assert "set-aside" in again.stderr
    assert "1 runs in" in again.stderr
    assert "4 were in the store" in again.stderr


def shell(line, **environment):
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.fixture(scope="module")
def small_store(tmp_path_factory):
    out = tmp_path_factory.mktemp("small")
    assert main(["reproduce", "activations", "--out", str(out), "--workers", "0"]) == 0
    return out


def test_output_may_be_cut_off_closed_or_full(small_store):
    show = f"{ELEPHANT} show activations --out {small_store}"
    cut = shell(f"{show} | head -1")
    assert cut.returncode == 0
    assert "Traceback" not in cut.stderr
    assert shell(f"{show} 2>&-").returncode == 0
    full = shell(f"{show} > /dev/full")
    assert full.returncode == 1
    assert "cannot write the output: No space left on device" in full.stderr
    assert "Traceback" not in full.stderr


def test_plain_ascii_terminals_are_served(small_store, tmp_path):
    table = TABLES["edit"]
    rows = [made_up(table, table.rows[0], seed, error_before=0.1 * seed) for seed in range(2)]
    write_rows(rows_folder(tmp_path, "edit"), "s", rows)
    for arguments in (f"show edit --out {tmp_path}", "--help", "reproduce --help"):
        plain = shell(f"{ELEPHANT} {arguments}", PYTHONIOENCODING="ascii")
        assert plain.returncode == 0, plain.stderr
        assert "Traceback" not in plain.stderr
    shown = shell(f"{ELEPHANT} show edit --out {tmp_path}", PYTHONIOENCODING="ascii").stdout
    assert "0.0500 +- 0.0500" in shown


def test_a_figure_that_cannot_be_written_does_not_hide_the_table(small_store, tmp_path, capsys):
    table = TABLES["activations"]
    rows = [made_up(table, row, 0, sparsity=0.5, slope_sparsity=0.5) for row in table.rows]
    write_rows(rows_folder(tmp_path, "activations"), "s", rows)
    (tmp_path / "activations" / "figures").write_text("a file where a folder should be")
    assert main(["reproduce", "activations", "--out", str(tmp_path), "--workers", "0"]) == 1
    printed = capsys.readouterr()
    assert "0.500" in printed.out
    assert "cannot write" in printed.err


def test_the_module_is_the_command():
    run = subprocess.run(
        [sys.executable, "-m", "elephant_nn", "--version"], capture_output=True, text=True
    )
    assert (run.returncode, run.stdout[:12]) == (0, "elephant-nn ")


def test_a_missing_extra_is_named():
    script = "import sys; sys.modules['tyro'] = None; from elephant_nn.cli import run; run()"
    run = subprocess.run([sys.executable, "-c", script, "list"], capture_output=True, text=True)
    assert run.returncode == 2
    assert 'pip install "elephant-nn[experiments]"' in run.stderr
    assert "Traceback" not in run.stderr


def test_report_of_a_mistyped_folder_fails(tmp_path, capsys):
    assert main(["report", "--out", str(tmp_path / "typo")]) == 1
    assert "there are no results in" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_stored_runs_need_no_data(tmp_path, capsys):
    """Everything is stored: neither data nor network are needed."""
    table = TABLES["split-mnist"]
    row = table.rows[0]
    stored = [
        made_up(table, row, seed, accuracy=0.5, class_statistics=False, passes=1) for seed in (0, 1)
    ]
    write_rows(rows_folder(tmp_path, "split-mnist"), "s", stored)
    run = shell(
        f"{ELEPHANT} reproduce split-mnist --methods mlp --neurons 1000 --seeds 2 --out {tmp_path}",
        ELEPHANT_NN_CACHE=str(tmp_path / "no-cache"),
    )
    assert run.returncode == 0, run.stderr
    assert "0.500" in run.stdout
    assert not (tmp_path / "no-cache").exists()


def test_show_without_a_sweep_says_what_to_run(tmp_path, capsys):
    out = tmp_path / "a b"
    assert main(["show", "sine", "--sweep", "--out", str(out)]) == 0
    assert f"elephant sweep sine --out '{out}'" in capsys.readouterr().err


SWEEP = ("sweep", "sine", "--methods", "emlp", "--seeds", "1", "--finalists", "3", "--workers", "2")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    out = tmp_path_factory.mktemp("unbroken")
    assert elephant(*SWEEP, "--out", str(out)).returncode == 0
    return read_rows(rows_folder(out, "sine")).sort("cell")


def started(out, **options):
    command = [ELEPHANT, *SWEEP, "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True, **options)


@pytest.mark.slow
def test_a_killed_sweep_is_finished_by_two_commands_at_once(tmp_path, unbroken):
    with started(tmp_path, stderr=subprocess.DEVNULL) as victim:
        folder, deadline = rows_folder(tmp_path, "sine"), time.monotonic() + 120
        while len(list(folder.glob("*.parquet"))) < 4:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        workers = children_of(victim.pid)
        os.kill(victim.pid, signal.SIGKILL)
    finished = {path: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}
    assert finished
    assert len(finished) < 11
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "workers outlive the command"
        time.sleep(0.1)
    both = [started(tmp_path, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [command.wait() for command in both] == [0, 0]
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert read_rows(folder).sort("cell").equals(unbroken)


@pytest.mark.parametrize("late", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_ctrl_c_stops_cleanly(tmp_path, late):
    with started(tmp_path, stderr=subprocess.PIPE, text=True) as command:
        deadline = time.monotonic() + (60 if late else 0.7)
        while time.monotonic() < deadline and not list(tmp_path.rglob("*.parquet")):
            time.sleep(0.01)
        os.killpg(command.pid, signal.SIGINT)  # as a terminal does: to the workers as well
        _, error = command.communicate(timeout=20)
    assert command.returncode == 130
    assert "the same command continues from here" in error
    assert "leaked" not in error
    assert "Traceback" not in error


@pytest.mark.slow
def test_the_sweep_finds_what_the_paper_found(unbroken):
    finalists = unbroken.filter(pl.col("seed") > 1000)
    assert finalists.group_by("hyper").len()["len"].to_list() == [3, 3, 3]
    chosen_on = unbroken.filter(pl.col("seed") == 1000)
    assert chosen_on.height == 150
    assert chosen_on["mse"].min() < 0.02
    assert np.median(chosen_on["mse"]) > 0.2
