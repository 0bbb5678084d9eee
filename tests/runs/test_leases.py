"""Two commands on one store: no cell is run twice at the same time; a kill gives leases back."""

import subprocess
import sys
import time

import pytest
import toy

from elephant_nn.runs.leases import Leases, leases
from elephant_nn.runs.run import local_executor, run_cells
from elephant_nn.runs.store import read_rows, rows_folder, write_rows

HOLD = """
import sys
from pathlib import Path
import toy
from elephant_nn.runs.leases import leases
with leases(Path(sys.argv[1])) as leased:
    print(leased.take([toy.cell(int(seed)) for seed in sys.argv[2:]]), flush=True)
    sys.stdin.read()
"""


class Other:
    """Another process that holds the leases of some seeds."""

    def __init__(self, path, *seeds):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path), *map(str, seeds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={"PYTHONPATH": ":".join(sys.path)},
        )  # fmt: skip
        assert self.process.stdout.readline() == "True\n"

    def kill(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def other(tmp_path):
    held = []

    def hold(path, *seeds):
        held.append(Other(path, *seeds))
        return held[-1]

    yield hold
    for one in held:
        one.kill()


def test_all_or_none_and_a_kill_gives_them_back(tmp_path, other):
    cells, path = [toy.cell(seed) for seed in range(4)], tmp_path / "leases"
    holder = other(path, 2)
    with leases(path) as leased:
        assert not leased.take(cells)
        assert leased.take(cells[:2])
        assert not leased.free(cells[2:])
        holder.kill()
        assert leased.free(cells[2:])
        assert leased.take(cells)


def test_without_locks_every_lease_is_granted():
    assert Leases(99_999).take([toy.cell(0)])


def run(cells, out, **options):
    return run_cells(
        [(toy.work(), cell) for cell in cells], out, lanes=lambda cell: 2,
        executor=local_executor(0), **options,
    )  # fmt: skip


def test_what_another_command_runs_is_waited_for(tmp_path, other):
    """It stores one run and dies in the middle of the other."""
    cells, seen = [toy.cell(seed) for seed in range(4)], []
    run(cells[2:3], tmp_path / "elsewhere")
    (theirs,) = read_rows(rows_folder(tmp_path / "elsewhere", "toy")).to_dicts()
    holder = other(tmp_path / "toy" / "leases", 2, 3)

    def report(done, total):
        seen.append(done)
        if done == 2 and holder.process.poll() is None:
            write_rows(rows_folder(tmp_path, "toy"), "theirs", [theirs])
            holder.kill()

    outcome = run(cells, tmp_path, report=report)
    assert (outcome.ran, outcome.kept, outcome.failed) == (3, 1, {})
    assert seen[-1] == 4
    assert sorted(read_rows(rows_folder(tmp_path, "toy"))["seed"]) == [0, 1, 2, 3]


def test_a_command_that_waits_for_another_says_so_once(tmp_path, other):
    holder, said = other(tmp_path / "toy" / "leases", 0, 1), []

    def notice(text):
        said.append(text)
        holder.kill()

    assert run([toy.cell(0), toy.cell(1)], tmp_path, notice=notice).ran == 2
    assert said == ["toy: waiting for runs of another command on the same store"]


def test_leases_end_with_the_command(tmp_path, other):
    run([toy.cell(0)], tmp_path)
    other(tmp_path / "toy" / "leases", 0)
    started = time.monotonic()
    assert run([toy.cell(0)], tmp_path).kept == 1  # stored runs need no lease
    assert time.monotonic() - started < 5
