"""The cache: written atomically, verified when fetched, memory-mapped when loaded."""

import json
import os
import shutil
import signal
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from small_data import FILES, SMALL, assert_same, flips, known, run, save, start

from elephant_nn import files
from elephant_nn.data.cache import STAMP
from elephant_nn.data.catalog import CATALOG, cache_path, cached, check, fetch, is_cached
from elephant_nn.data.dataset import PARTS
from elephant_nn.data.sources import Address, Folder
from elephant_nn.files import StorageError, StoreWarning, write_folder

NAMES = sorted([STAMP, *(f"{part}.npy" for part in PARTS)])


@pytest.fixture
def small(tmp_path):
    """A data set that is in the cache."""
    found = known(Folder(save(tmp_path / "files"), tuple(FILES)))
    fetch(found)
    return found


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


def rewrite(path, content):
    """Change the content, but not the modification time."""
    times = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def flip_last_byte(path, keep_time):
    content = path.read_bytes()
    (rewrite if keep_time else type(path).write_bytes)(
        path, next(flips(content, [len(content) - 1]))
    )


def assert_set_aside(small, cache, function=cached, match="set-aside, fetch it again"):
    with pytest.warns(StoreWarning, match=match):
        assert function(small) is None
    assert not is_cached("small")
    assert (cache / "set-aside" / "small").exists()
    assert_same(fetch(small), SMALL)


def test_fetched_verified_and_loaded_again(served, cache):
    address = known(Address(f"{served}/good", tuple(f"{name}.gz" for name in FILES)))
    assert not is_cached("small")
    assert cached(address) is None
    assert_same(fetch(address), SMALL)
    assert is_cached("small")
    assert_same(cached(address), SMALL)
    assert_same(check(address), SMALL)
    assert cache_path("small") == cache / "small"
    assert listed(cache / "small") == NAMES
    stamp = json.loads((cache / "small" / STAMP).read_text())
    assert stamp["sha256"] == dict(address.sha256)
    assert stamp["size"]["y_test.npy"] == (cache / "small" / "y_test.npy").stat().st_size


def test_arrays_are_read_only_memory_maps_that_jax_takes(small):
    for dataset in (fetch(small), cached(small), check(small)):
        for name, part in dataset.parts.items():
            assert isinstance(part, np.memmap)
            assert not part.flags.writeable
            np.testing.assert_array_equal(jnp.asarray(part), SMALL.parts[name])
        assert dataset.classes == 3


def test_loading_trusts_the_stamp_and_check_finds_a_damaged_byte(small, cache):
    flip_last_byte(cache / "small" / "x_train.npy", keep_time=True)
    assert cached(small) is not None
    assert_set_aside(small, cache, check, "checksum of train-images-idx3-ubyte does not match")


def test_a_changed_time_is_verified_once_and_recorded(small, cache, monkeypatch):
    stamp = cache / "small" / STAMP
    before = stamp.read_bytes()
    os.utime(cache / "small" / "x_test.npy")
    with monkeypatch.context() as patched:
        patched.setattr(files, "write_whole", fail)
        assert_same(cached(small), SMALL)  # even if the stamp cannot be written
        assert stamp.read_bytes() == before
    assert_same(cached(small), SMALL)
    assert stamp.read_bytes() != before
    assert listed(cache / "small") == NAMES
    monkeypatch.setattr("elephant_nn.data.cache.verify", fail)
    assert_same(cached(small), SMALL)


def fail(*arguments):
    raise StorageError("not now")


@pytest.mark.parametrize("name", ["x_test.npy", "y_test.npy"])
def test_a_changed_time_and_content_is_damage(small, cache, name):
    flip_last_byte(cache / "small" / name, keep_time=False)
    assert_set_aside(small, cache, match="small is damaged .wrong content")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", ["truncated", "longer", "empty", "missing"])
def test_files_of_the_wrong_size_are_damage(small, cache, name, damage):
    path = cache / "small" / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        changed = {"truncated": content[:-1], "longer": content + b"1", "empty": b""}
        rewrite(path, changed[damage])
    assert_set_aside(small, cache)


@pytest.mark.parametrize(
    "content",
    [b"rubbish", b"\xff", b"[]", b"null", b"{}", b'{"format": 1, "sha256": {}}', b"[" * 200_000],
)
def test_a_bad_stamp_is_damage(small, cache, content):
    (cache / "small" / STAMP).write_bytes(content)
    assert_set_aside(small, cache)


@pytest.mark.parametrize(("key", "value"), [("format", 0), ("sha256", {}), ("size", 1)])
def test_a_stamp_of_another_version_is_damage(small, cache, key, value):
    path = cache / "small" / STAMP
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    assert_set_aside(small, cache, match=f"{key} is not as recorded")


def test_damage_twice_is_set_aside_twice(small, cache):
    for _ in range(2):
        (cache / "small" / STAMP).unlink()
        assert_set_aside(small, cache, match="small is incomplete")


def test_fetch_replaces_a_damaged_data_set_and_keeps_an_intact_one(small, cache):
    before = (cache / "small").stat().st_ino
    assert_same(fetch(small), SMALL)
    assert (cache / "small").stat().st_ino == before
    flip_last_byte(cache / "small" / "x_train.npy", keep_time=True)
    with pytest.warns(StoreWarning, match="small is damaged"):
        assert_same(fetch(small), SMALL)
    assert_same(check(small), SMALL)


@pytest.mark.parametrize("kind", ["file", "empty folder"])
def test_something_else_in_its_place_is_replaced(small, cache, kind):
    shutil.rmtree(cache / "small")
    (cache / "small").touch() if kind == "file" else (cache / "small").mkdir()
    assert_set_aside(small, cache, match="small is incomplete")


def test_check_finds_every_damage_of_a_header(small, cache):
    path = cache / "small" / "x_train.npy"
    content, times = path.read_bytes(), path.stat()
    found = 0
    for damaged in flips(content, range(128), (1, 255)):
        rewrite(path, damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dataset = check(small)
        if dataset is None:
            found += 1
            (cache / "set-aside" / "small").rename(cache / "small")
        else:  # only the padding or the spacing has changed
            assert_same(dataset, SMALL)
        path.write_bytes(content)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert found > 100


def test_pickled_arrays_are_never_loaded(small, cache, tmp_path):
    class Harmful:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    path = cache / "small" / "y_train.npy"
    np.save(path, np.array([Harmful()] * 6, object), allow_pickle=True)
    stamp = json.loads((cache / "small" / STAMP).read_text())
    stamp["size"][path.name] = path.stat().st_size
    stamp["mtime_ns"][path.name] = path.stat().st_mtime_ns
    (cache / "small" / STAMP).write_text(json.dumps(stamp))
    assert_set_aside(small, cache, match="Python objects")
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("function", [cached, check])
@pytest.mark.parametrize("name", NAMES)
def test_a_data_set_that_cannot_be_read_is_left_alone(small, cache, function, name):
    (cache / "small" / name).unlink()
    (cache / "small" / name).symlink_to(name)  # refers to itself: no one can open it
    with pytest.raises(StorageError, match=r"cannot read .*small: Too many levels"):
        function(small)
    assert is_cached("small")


def test_a_cache_that_cannot_be_written_is_found_before_the_download(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("ELEPHANT_NN_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(StorageError, match="set \\$ELEPHANT_NN_CACHE to a folder"):
        fetch(known(Folder(tmp_path / "absent", tuple(FILES))))


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy
from small_data import known
from elephant_nn.data.catalog import fetch
module, name, calls = {"os": os, "numpy": numpy}[sys.argv[2]], sys.argv[3], int(sys.argv[4])
function = getattr(module, name)
def counted(*arguments, **options):
    global calls
    calls -= 1
    if calls < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments, **options)
setattr(module, name, counted)
fetch(known(), Path(sys.argv[1]))
"""


@pytest.mark.parametrize("call", ["numpy save 2", "os fsync 0", "os fsync 4", "os rename 0"])
def test_a_killed_fetch_leaves_no_part_of_a_data_set(tmp_path, cache, call):
    folder = save(tmp_path / "files")
    code, _, errors = run(KILLED, folder, *call.split())
    assert code == -signal.SIGKILL, errors
    assert not is_cached("small")
    assert cached(known()) is None
    (leftover,) = cache.iterdir()
    assert leftover.name.startswith(".small.")
    os.utime(leftover, (0, 0))
    assert_same(fetch(known(), folder), SMALL)
    assert listed(cache) == ["small"]


CONCURRENT = """
import sys, time
from pathlib import Path
import numpy
from small_data import SMALL, assert_same, known
from elephant_nn.data import cache
folder, own, other = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
write = cache._write
def together(*arguments):
    (folder / own).touch()
    while not (folder / other).exists():
        time.sleep(0.001)
    write(*arguments)
cache._write = together
for _ in range(2):
    assert_same(cache.fetch(known(), folder), SMALL)
"""


@pytest.mark.parametrize("damaged", [False, True])
def test_two_processes_that_fetch_at_the_same_time_do_no_harm(tmp_path, cache, damaged):
    folder = save(tmp_path / "files")
    if damaged:
        fetch(known(), folder)
        flip_last_byte(cache / "small" / "x_train.npy", keep_time=True)
    both = [start(CONCURRENT, folder, *names) for names in ("ab", "ba")]
    for process in both:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert_same(check(known()), SMALL)
    assert listed(cache) == (["set-aside"] if damaged else []) + ["small"]
    assert listed(cache / "small") == NAMES


FULL = """
import resource, signal, sys
from pathlib import Path
from small_data import known
from elephant_nn.data.catalog import fetch
from elephant_nn.files import StorageError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    fetch(known(), Path(sys.argv[1]))
except StorageError as error:
    print(error)
"""


def test_a_full_disk_is_a_clear_error_and_leaves_nothing(tmp_path, cache):
    code, output, errors = run(FULL, save(tmp_path / "files"))
    assert code == 0, errors
    assert "cannot write" in output
    assert "free disk space" in output
    assert not list(cache.iterdir())


def test_a_folder_is_written_once(tmp_path):
    path = tmp_path / "new" / "folder"
    write = lambda text: lambda folder: (folder / "file").write_text(text) and None

    def slow(folder):
        assert write_folder(path, write("first"))
        (folder / "file").write_text("second")

    assert not write_folder(path, slow)
    assert (path / "file").read_text() == "first"
    assert listed(path.parent) == ["folder"]


def test_absent_data_sets_are_not_cached():
    assert not any(is_cached(name) for name in CATALOG)
