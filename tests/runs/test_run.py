import multiprocessing
import os
import signal
import time
from dataclasses import replace
from functools import partial

import jax
import numpy as np
import polars as pl
import pytest
import toy
from support import QUICK_TO_COMPILE, children_of

from elephant_nn.files import StorageError, StoreWarning
from elephant_nn.runs import run as run_module, shard as shard_module
from elephant_nn.runs.checkpoint import load_checkpoint, save_checkpoint
from elephant_nn.runs.executors import LocalProcesses
from elephant_nn.runs.machine import cores
from elephant_nn.runs.program import cell_key
from elephant_nn.runs.run import local_executor, plan_shards, run_cells
from elephant_nn.runs.shard import Shard, compiled, run_shard
from elephant_nn.runs.store import read_rows, rows_folder, write_rows
from elephant_nn.streams.stream import named_key


def run(cells, out, lanes=4, workers=0, **options):
    outcome = run_cells(
        [(toy.work(cell.method), cell) for cell in cells],
        out,
        lanes=lambda cell: lanes,
        executor=local_executor(workers),
        **options,
    )
    return outcome, read_rows(rows_folder(out, "toy"))


def shard(seeds, lanes=3):
    return Shard(toy.work(), tuple(toy.cell(seed) for seed in range(seeds)), lanes)


def test_runs_are_stored_and_not_repeated(tmp_path):
    cells = [toy.cell(seed) for seed in range(6)]
    outcome, rows = run(cells, tmp_path)
    assert (outcome.ran, outcome.kept, outcome.failed) == (6, 0, {})
    assert rows["status"].to_list() == ["ok"] * 6
    assert rows["mse_curve"].list.len().to_list() == [20] * 6
    when = lambda: {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    written = when()
    outcome, again = run(cells, tmp_path)
    assert (outcome.ran, outcome.kept) == (0, 6)
    assert again.equals(rows)
    assert when() == written


def test_same_seed_same_bytes_and_other_seeds_differ(tmp_path):
    cells = [toy.cell(seed) for seed in range(5)]
    _, first = run(cells, tmp_path / "a")
    _, second = run(cells, tmp_path / "b")
    names = lambda out: sorted(path.name for path in rows_folder(out, "toy").iterdir())
    assert names(tmp_path / "a") == names(tmp_path / "b")  # names carry the content's checksum
    assert first.equals(second)
    assert first["mse"].n_unique() == 5


def test_a_run_does_not_depend_on_its_neighbours(tmp_path):
    cells = [toy.cell(seed, lr=lr) for lr in (1e-2, 3e-3, 1e-3) for seed in range(3)]
    _, together = run(cells, tmp_path / "together")
    for cell in cells:
        run([cell], tmp_path / "alone")
    alone = read_rows(rows_folder(tmp_path / "alone", "toy"))
    assert alone.sort("cell").equals(together.sort("cell"))


def test_one_lane_gives_the_same_up_to_rounding(tmp_path):
    cells = [toy.cell(seed) for seed in range(3)]
    _, many = run(cells, tmp_path / "many", lanes=3)
    _, one = run(cells, tmp_path / "one", lanes=1)
    np.testing.assert_allclose(one.sort("seed")["mse"], many.sort("seed")["mse"], rtol=1e-3)


def test_methods_and_settings_share_the_seeds_random_numbers():
    assert (cell_key("toy", 1) == cell_key("toy", 1)).all()
    keys = [cell_key("toy", 1), cell_key("toy", 2), cell_key("sine", 1)]
    keys += [named_key(keys[0], name) for name in ("init", "data", "explore")]
    assert len({tuple(jax.random.key_data(key).tolist()) for key in keys}) == 6


def test_a_diverged_run_is_a_row_and_its_neighbours_are_not_harmed(tmp_path):
    good, bad = toy.cell(0), toy.cell(0, lr=1e38)
    outcome, rows = run([good, bad], tmp_path)
    assert outcome.diverged == 1
    assert not outcome.failed
    row = rows.filter(pl.col("status") == "diverged").row(0, named=True)
    assert row["cell"] == bad.id
    assert row["mse"] is row["mse_curve"] is None
    assert "stopped being finite in chunk" in row["reason"]
    _, alone = run([good], tmp_path / "alone")
    assert rows.filter(pl.col("cell") == good.id)["mse"][0] == alone["mse"][0]


def test_a_shard_that_raises_is_reported_and_the_others_run(tmp_path):
    cells = [toy.cell(0), toy.cell(0, method="fail")]
    outcome, rows = run(cells, tmp_path, workers=2)
    assert rows["cell"].to_list() == [cells[0].id]
    (reason,) = outcome.failed.values()
    assert reason.startswith("RuntimeError: this method always fails (toy.py:")


def test_workers_give_the_same_rows_as_one_process(tmp_path, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", QUICK_TO_COMPILE)
    cells = [toy.cell(seed, lr=lr) for lr in (1e-2, 1e-3) for seed in range(5)]
    _, alone = run(cells, tmp_path / "alone")
    outcome, spread = run(cells, tmp_path / "spread", workers=2)
    assert outcome.ran == 10
    assert set(spread["threads"]) == {max(1, cores() // 2)}
    plain = lambda rows: rows.drop("threads").sort("cell")
    assert plain(spread).equals(plain(alone))


@pytest.mark.parametrize("seeds", [1, 3, 5])
def test_a_workers_threads_do_not_depend_on_how_much_is_left(tmp_path, monkeypatch, seeds):
    monkeypatch.setattr(run_module, "cores", lambda: 6)
    _, rows = run([toy.cell(s, "threads") for s in range(seeds)], tmp_path, lanes=1, workers=2)
    assert rows["mse"].to_list() == [3.0] * seeds


def test_a_lost_worker_is_replaced_and_its_shard_run_again(tmp_path):
    cells = [toy.cell(seed, method="slow") for seed in range(6)]
    killed = []

    def kill_one_worker(done, total):
        children = children_of(os.getpid())
        if done >= 2 and children and not killed:
            killed.append(children[0])
            os.kill(children[0], signal.SIGKILL)

    outcome, rows = run(cells, tmp_path, lanes=1, workers=2, report=kill_one_worker)
    assert len(killed) == 1
    assert (outcome.failed, outcome.settled) == ({}, 6)
    assert sorted(rows["seed"]) == list(range(6))


def test_a_shard_that_kills_its_workers_fails_alone(tmp_path):
    poison = toy.cell(0, method="die")
    cells = [toy.cell(0, method="slow"), poison, *(toy.cell(s, method="slow") for s in (1, 2, 3))]
    outcome, rows = run(cells, tmp_path, lanes=1, workers=2)
    assert outcome.failed == {poison: "its worker died twice (killed: out of memory?)"}
    assert sorted(rows["seed"]) == [0, 1, 2, 3]


def test_other_children_of_the_caller_are_left_alone(tmp_path):
    bystander = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    bystander.start()
    run([toy.cell(0)], tmp_path, workers=1)
    assert bystander.is_alive()
    bystander.terminate()
    bystander.join()


def test_a_raising_shard_is_reported_in_this_process_too(tmp_path):
    outcome, rows = run([toy.cell(0, method="fail"), toy.cell(0)], tmp_path, workers=0)
    assert "this method always fails" in next(iter(outcome.failed.values()))
    assert rows.height == 1


def test_revisions_are_different_cells_and_kept_apart(tmp_path):
    old, new = toy.cell(0), replace(toy.cell(0), revision=1)
    assert old.id == toy.cell(0).id != new.id
    outcome, rows = run([old, new], tmp_path)
    assert outcome.ran == 2
    assert rows["setting"].n_unique() == 2
    assert sorted(rows["revision"]) == [0, 1]


def test_again_replaces_stored_rows(tmp_path):
    cells = [toy.cell(seed) for seed in range(3)]
    run(cells, tmp_path)
    marked = read_rows(rows_folder(tmp_path, "toy")).with_columns(mse=pl.lit(9.0))
    for path in rows_folder(tmp_path, "toy").glob("*.parquet"):
        path.unlink()
    write_rows(rows_folder(tmp_path, "toy"), "old", marked.to_dicts())
    assert run(cells[:1], tmp_path)[0].kept == 1
    outcome, rows = run(cells[:1], tmp_path, again=True)
    assert outcome.ran == 1
    assert rows.sort("seed")["mse"].to_list()[1:] == [9.0, 9.0]
    assert rows.sort("seed")["mse"][0] != 9.0


def test_a_kill_before_old_rows_are_dropped_leaves_the_new_ones_valid(tmp_path, monkeypatch):
    run([toy.cell(0)], tmp_path)
    folder = rows_folder(tmp_path, "toy")
    (old,) = folder.glob("*.parquet")
    marked = read_rows(folder).with_columns(mse=pl.lit(9.0))
    old.unlink()
    for name in ("aaa", "zzz"):  # whatever its name, an older file does not win
        os.utime(write_rows(folder, name, marked.to_dicts()), (1, 1))
    monkeypatch.setattr(run_module, "drop_older", lambda *arguments: None)
    _, rows = run([toy.cell(0)], tmp_path, again=True)
    assert rows.height == 1
    assert rows["mse"][0] != 9.0


def test_a_checkpoint_of_other_code_is_not_continued(tmp_path, monkeypatch):
    def save_then_die(path, chunk, tree, *about):
        save_checkpoint(path, chunk, tree, *about)
        raise KeyboardInterrupt

    monkeypatch.setattr(shard_module, "save_checkpoint", save_then_die)
    with pytest.raises(KeyboardInterrupt):
        run_shard(shard(3), tmp_path, checkpoint_seconds=0)
    monkeypatch.undo()
    (path,) = tmp_path.glob("*.safetensors")
    chunk, tree = load_checkpoint(path, read_like(path), shard(3).work.code)
    assert chunk == 1
    other = replace(shard(3).work, evaluations=9.0)
    assert load_checkpoint(path, tree, other.code) is None


def read_like(path):
    steps, floats = compiled(shard(3))
    keys = jax.numpy.stack([cell_key("toy", seed) for seed in range(3)])
    shapes = jax.eval_shape(steps.start, keys, floats, steps.program.data)
    return shapes, shard_module._empty_outputs(steps, shapes, floats), np.zeros(3, int)


def test_a_worker_that_dies_while_idle_is_replaced(tmp_path):
    executor = LocalProcesses(1, 1)
    shards = [Shard(toy.work(), (toy.cell(seed),), 1) for seed in range(3)]
    done, others = [], set(children_of(os.getpid()))
    for one, result in executor.run(shards, tmp_path, 10.0, lambda running: None):
        done.append((one.cells[0].seed, len(result)))
        (worker,) = set(children_of(os.getpid())) - others
        os.kill(worker, signal.SIGKILL)
    assert done == [(0, 1), (1, 1), (2, 1)]


def test_negative_numbers_of_workers_are_refused():
    with pytest.raises(ValueError, match="workers must be 0 or more, got -1"):
        local_executor(-1)


def test_data_is_prepared_only_if_something_runs(tmp_path):
    prepared = []
    for _ in range(2):
        run([toy.cell(0)], tmp_path, prepare=lambda: prepared.append(1))
    assert prepared == [1]


def test_checkpoints_of_shards_that_were_cut_differently_are_removed(tmp_path):
    scratch = tmp_path / "toy" / "unfinished"
    for name, seeds in (("stored", (0, 1)), ("open", (1, 7))):
        cells = [toy.cell(seed).id for seed in seeds]
        save_checkpoint(scratch / f"{name}.safetensors", 1, {"x": np.zeros(2)}, cells)
    run([toy.cell(seed) for seed in range(3)], tmp_path)
    assert [path.stem for path in scratch.iterdir()] == ["open"]


def test_rows_record_versions_and_machine(tmp_path):
    _, rows = run([toy.cell(0)], tmp_path)
    row = rows.row(0, named=True)
    assert "elephant-nn" in row["versions"]
    assert "jax" in row["versions"]
    assert row["processor"]
    assert row["threads"] >= 1


def test_concrete_values_are_checked_before_anything_compiles(tmp_path):
    outcome, _ = run([toy.cell(0), toy.cell(0, a=-1.0)], tmp_path)
    assert outcome.ran == 0
    assert "a is the width of the bell" in next(iter(outcome.failed.values()))


def test_progress_counts_every_run(tmp_path):
    seen = []
    report = lambda done, total: seen.append((done, total))
    run([toy.cell(seed) for seed in range(5)], tmp_path, lanes=2, report=report)
    assert seen == [(0, 5), (2, 5), (4, 5), (5, 5)]


def test_no_cells_no_work(tmp_path):
    assert run([], tmp_path)[0].ran == 0
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("x")
    seen = []
    with pytest.raises(StorageError, match=r"cannot write to .*choose another with --out"):
        run([toy.cell()], tmp_path / "file", report=lambda done, total: seen.append(done))
    assert not seen


def test_shards_are_cut_within_groups():
    cells = [toy.cell(seed, neurons=n) for n in (3, 4) for seed in range(5)]
    shards = plan_shards([(toy.work(), cell) for cell in cells], lambda cell: 2)
    assert [len(shard.cells) for shard in shards] == [2, 2, 1, 2, 2, 1]
    assert len({shard.id for shard in shards}) == 6


def test_resume_in_the_middle_of_a_shard_gives_the_same_bytes(tmp_path, monkeypatch):
    unbroken = run_shard(shard(3), tmp_path / "unbroken")
    assert not list(tmp_path.glob("unbroken/*"))

    class KilledError(Exception):
        pass

    for stop_after in (1, 2, 3):
        scratch = tmp_path / str(stop_after)
        saved = []

        def save_then_die(path, chunk, tree, *about, saved=saved, stop_after=stop_after):
            save_checkpoint(path, chunk, tree, *about)
            saved.append(chunk)
            if chunk == stop_after:
                raise KilledError

        monkeypatch.setattr(shard_module, "save_checkpoint", save_then_die)
        with pytest.raises(KilledError):
            run_shard(shard(3), scratch, checkpoint_seconds=0)
        monkeypatch.undo()
        assert saved == list(range(1, stop_after + 1))
        assert run_shard(shard(3), scratch) == unbroken
        assert not list(scratch.iterdir())


def test_a_shard_killed_again_and_again_goes_on_from_its_last_checkpoint(tmp_path, monkeypatch):
    unbroken = run_shard(shard(3), tmp_path / "unbroken")
    saved = []

    def save_then_die(path, chunk, tree, *about):
        save_checkpoint(path, chunk, tree, *about)
        saved.append(chunk)
        raise KeyboardInterrupt

    monkeypatch.setattr(shard_module, "save_checkpoint", save_then_die)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            run_shard(shard(3), tmp_path / "killed", checkpoint_seconds=0)
    assert saved == [1, 2, 3]
    assert run_shard(shard(3), tmp_path / "killed") == unbroken


def test_damaged_checkpoints_are_set_aside(tmp_path):
    tree = {"a": jax.numpy.arange(3.0), "n": np.array([1, 2]), "s": np.array(3.0)}
    path = tmp_path / "s.safetensors"
    for _ in range(2):  # what was loaded is as good as what was saved
        save_checkpoint(path, 7, tree)
        chunk, restored = load_checkpoint(path, tree)
        assert chunk == 7
        jax.tree.map(partial(np.testing.assert_array_equal, strict=True), restored, tree)
        tree = restored
    with pytest.warns(StoreWarning, match=r"s\.safetensors is damaged or of another version"):
        assert load_checkpoint(path, {"a": tree["a"]}) is None
    assert (tmp_path / "set-aside" / path.name).exists()
    save_checkpoint(path, 7, tree)
    whole = path.read_bytes()
    for damaged in (b"rubbish", whole[:-4], whole[:-1] + bytes([whole[-1] ^ 1])):
        path.write_bytes(damaged)
        with pytest.warns(StoreWarning):
            assert load_checkpoint(path, tree) is None
    assert load_checkpoint(path, tree) is None  # nothing there
