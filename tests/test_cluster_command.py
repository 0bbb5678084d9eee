"""The commands with `--cluster`, on a cluster that was started by hand."""

import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import toy
from dask_processes import dask_processes, until
from support import children_of

from elephant_nn.cli import main
from elephant_nn.experiments.api import load_rows, work_of
from elephant_nn.experiments.tables import TABLES
from elephant_nn.files import StoreWarning
from elephant_nn.runs.answers import UNLIMITED, Done
from elephant_nn.runs.attempt import attempt
from elephant_nn.runs.description import describe, shard_of
from elephant_nn.runs.memory import PROCESS, estimate_memory
from elephant_nn.runs.shard import Shard, checkpoint_file, run_shard
from elephant_nn.runs.store import read_rows, rows_folder

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "my_rows.py"
ELEPHANT = [sys.executable, "-m", "elephant_nn"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cluster", "local:0"], "--cluster takes local:N with N of 1 or more, got 'local:0'"),
        (["--cluster", "nowhere.json"], "or a scheduler file, got 'nowhere.json'"),
        (["--cluster", "local:2", "--workers", "2"], "not both"),
        (["--send-data"], "--checkpoints and --send-data need --cluster"),
    ],
)
def test_wrong_calls_say_how_to_correct_them(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "activations", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_status_needs_an_address(capsys):
    for arguments in ([], ["--cluster", "local:2"], ["--cluster", "nowhere.json"]):
        assert main(["status", *arguments]) == 2
        assert "scheduler file" in capsys.readouterr().err


def test_status_and_workers_are_light():
    script = (
        "import sys; from elephant_nn.runs import connection, remote, status\n"
        "heavy = {'jax', 'polars', 'optax'} & set(sys.modules)\nassert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_missing_extra_is_named():
    script = "import sys; sys.modules['distributed'] = None; from elephant_nn.cli import run; run()"
    call = ["reproduce", "activations", "--cluster", "local:2"]
    run = subprocess.run([sys.executable, "-c", script, *call], capture_output=True, text=True)
    assert run.returncode == 2
    assert 'pip install "elephant-nn[cluster]"' in run.stderr


def test_rows_of_the_users_file_go_along(tmp_path):
    """The file is not on the worker's machine; rows and checkpoints are those of any place."""
    mine = Path(shutil.copy(EXAMPLE, tmp_path / "my_rows.py"))
    table = TABLES["split-digits"]
    (row,) = load_rows(table, mine)
    shard = Shard(work_of(table, row), (table.cell(row, row.settings, 0),), 1)
    sent, here = describe(shard), run_shard(shard, tmp_path / "here")
    mine.rename(tmp_path / "elsewhere.py")
    there = shard_of(sent, tmp_path / "worker")
    assert there.work.code == shard.work.code
    assert there.id == shard.id
    assert run_shard(there, tmp_path / "there") == here


def test_again_does_not_continue_a_checkpoint_of_a_shared_folder(tmp_path):
    shard = Shard(toy.work(), (toy.cell(),), 1)
    path = checkpoint_file(shard, tmp_path)
    options = {"memory": UNLIMITED, "send_data": False, "checkpoint_seconds": 10.0}
    for again in (True, False):
        path.write_bytes(b"not a checkpoint")
        with nullcontext() if again else pytest.warns(StoreWarning, match="is damaged"):
            answer = attempt(describe(shard), tmp_path, tmp_path, {**options, "again": again})
        assert isinstance(answer, Done)


def test_memory_grows_with_the_shapes():
    table = TABLES["split-digits"]
    row = next(row for row in table.rows if row.method == "mlp")
    work = work_of(table, row)
    cell = table.cell(row, row.settings, 0)
    one, many = (estimate_memory(Shard(work, (cell,), lanes)) - PROCESS for lanes in (1, 21))
    parameters = 4 * (65 + 11) * int(row.settings["neurons"])
    assert 20 * 2 * parameters <= many - one <= 20 * 10 * parameters


@pytest.mark.slow
def test_the_command_and_its_status(tmp_path):
    run = lambda *call: subprocess.run(
        [*ELEPHANT, *call], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    sine = ("reproduce", "sine", "--methods", "mlp-relu,emlp", "--seeds", "2")
    with dask_processes(tmp_path / "cluster") as cluster:
        cluster.scheduler()
        worker = cluster.worker()
        cluster.wait_for_workers(1)
        address = ("--cluster", str(cluster.file))
        idle = run("status", *address)
        assert idle.returncode == 0, idle.stderr
        assert "1 workers, 0 shards wait" in idle.stdout
        shared = ("--checkpoints", str(tmp_path / "shared"))
        command = subprocess.Popen(
            [*ELEPHANT, *sine, *address, *shared, "--out", str(tmp_path / "a")],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip

        def busy():
            shown = run("status", *address).stdout
            return shown if "runs, seed" in shown else ""

        assert " runs\n" in until(busy, "a shard in the status")
        _, error = command.communicate(timeout=120)
        assert command.returncode == 0, error
        assert "dashboard: http" in error
        assert children_of(worker.pid)  # it keeps its compiled programs
        assert not list((tmp_path / "shared").rglob("*.safetensors"))
        gone = run("status", "--cluster", "tcp://127.0.0.1:1")
        assert gone.returncode == 1
        assert "there is no scheduler to join at tcp://127.0.0.1:1" in gone.stderr
        assert "Traceback" not in gone.stderr
    assert run(*sine, "--workers", "2", "--out", str(tmp_path / "b")).returncode == 0
    rows = [read_rows(rows_folder(tmp_path / out, "sine")).sort("cell") for out in "ab"]
    assert rows[0].drop("threads").equals(rows[1].drop("threads"))
