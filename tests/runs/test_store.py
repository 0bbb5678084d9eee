import hashlib
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from elephant_nn.files import StorageError, StoreWarning, remove_leftovers, write_whole
from elephant_nn.runs.store import done_cells, read_rows, row_files, write_rows

ROW = {"cell": "c1", "method": "m", "mse": 0.5, "mse_curve": [1.0, 0.5], "kernel": [[1.0], [2.0]]}


def test_rows_come_back_as_they_were(tmp_path):
    write_rows(tmp_path, "s1", [ROW, {**ROW, "cell": "c2", "mse": None}])
    rows = read_rows(tmp_path)
    assert rows.to_dicts() == [ROW, {**ROW, "cell": "c2", "mse": None}]
    assert done_cells(tmp_path) == {"c1", "c2"}
    assert done_cells(tmp_path, besides=row_files(tmp_path)) == set()
    assert read_rows(tmp_path, ["cell", "absent"]).columns == ["cell"]


def test_the_same_rows_are_the_same_file(tmp_path):
    assert write_rows(tmp_path, "s1", [ROW]) == write_rows(tmp_path, "s1", [ROW])
    assert len(list(tmp_path.iterdir())) == 1


def test_a_cell_stored_twice_is_read_once(tmp_path):
    write_rows(tmp_path, "s1", [ROW])
    write_rows(tmp_path, "s2", [ROW, {**ROW, "cell": "c2"}])
    assert sorted(read_rows(tmp_path)["cell"]) == ["c1", "c2"]


def test_rows_with_other_columns_are_joined(tmp_path):
    write_rows(tmp_path, "s1", [ROW])
    write_rows(tmp_path, "s2", [{"cell": "c2", "accuracy": 0.9}])
    assert set(read_rows(tmp_path).columns) == {*ROW, "accuracy"}


def test_an_absent_store_is_empty(tmp_path):
    assert read_rows(tmp_path / "nothing").height == 0
    assert done_cells(tmp_path / "nothing") == set()


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "foreign"])
def test_damaged_files_are_named_and_set_aside(tmp_path, damage):
    write_rows(tmp_path, "good", [{**ROW, "cell": "c0"}])
    path = write_rows(tmp_path, "bad", [ROW])
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(
        {
            "cut": content[:middle],
            "flip": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "empty": b"",
            "foreign": b"not a table at all",
        }[damage]
    )
    with pytest.warns(StoreWarning, match=rf"{path.name} is damaged.*moved to .*set-aside"):
        rows = read_rows(tmp_path)
    assert rows["cell"].to_list() == ["c0"]
    assert not path.exists()
    assert (tmp_path / "set-aside" / path.name).exists()
    assert read_rows(tmp_path).height == 1  # said once, not for ever


def test_a_file_put_there_by_hand_is_set_aside(tmp_path):
    pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "mine.parquet")
    with pytest.warns(StoreWarning, match=r"mine\.parquet"):
        assert read_rows(tmp_path).height == 0


def test_a_whole_file_that_is_no_table_is_set_aside(tmp_path):
    content = b"whole but foreign"
    name = f"x-{hashlib.sha256(content).hexdigest()[:16]}.parquet"
    (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.parquet").mkdir()
    with pytest.warns(StoreWarning, match="is not a Parquet file"):
        assert read_rows(tmp_path).height == 0


def test_half_written_files_are_not_read_and_old_ones_go(tmp_path):
    old, young = tmp_path / ".a.parquet.x.part", tmp_path / ".b.parquet.x.part"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert read_rows(tmp_path).height == 0
    remove_leftovers(tmp_path)
    assert not old.exists()
    assert young.exists()


def test_nothing_is_left_when_writing_fails(tmp_path):
    target = tmp_path / "taken"
    target.mkdir()
    (target / "file").write_text("x")
    with pytest.raises(StorageError, match=r"cannot write .*taken.*choose another folder"):
        write_whole(target, b"content")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_folder_that_is_a_file_is_one_clear_sentence(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match=r"cannot write .*Not a directory"):
        write_whole(tmp_path / "file" / "rows" / "x", b"content")


def test_a_full_disk_is_one_clear_sentence_and_leaves_nothing(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("needs a system with resource limits")
    script = (
        "import resource, sys; from pathlib import Path\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from elephant_nn.files import StorageError, write_whole\n"
        "try: write_whole(Path(sys.argv[1]) / 'big', bytes(5000))\n"
        "except StorageError as error: print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "cannot write" in run.stdout
    assert "free disk space" in run.stdout
    assert list(tmp_path.iterdir()) == []
