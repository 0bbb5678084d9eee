"""Embeddings by frozen encoders: the file, resuming, and what is refused."""

import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from elephant_nn.cli import main
from elephant_nn.data import embedding
from elephant_nn.data.catalog import CATALOG
from elephant_nn.data.dataset import Dataset
from elephant_nn.data.embedding import about_embedding, embed, make_projection
from elephant_nn.data.encoders import BATCH, load_encoder
from elephant_nn.data.loading import load
from elephant_nn.files import DataError

RNG = np.random.default_rng(0)
IMAGES = Dataset(
    "small",
    RNG.integers(0, 256, (70, 16, 16, 3), np.uint8),
    np.arange(70, dtype=np.int32) % 3,
    RNG.integers(0, 256, (10, 16, 16, 3), np.uint8),
    np.arange(10, dtype=np.int32) % 3,
    names=("ant", "bee", "cat"),
)


@pytest.fixture
def own(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    return load_encoder("own_encoder:quarters")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(embedding, "BLOCK", BATCH)


def test_the_file_has_embeddings_labels_and_how_they_were_made(tmp_path, own):
    from own_encoder import quarters

    path = embed(IMAGES, own, tmp_path / "small.npz")
    found = load(path)
    np.testing.assert_allclose(found.x_train, quarters(IMAGES.x_train), rtol=1e-6)
    np.testing.assert_allclose(found.x_test, quarters(IMAGES.x_test), rtol=1e-6)
    assert found.y_train.tolist() == IMAGES.y_train.tolist()
    about = about_embedding(path)
    assert about["encoder"] == own.name
    assert own.name.startswith("own_encoder-quarters-")
    assert about["weights_sha256"] == own.sha256
    assert about["samples"] == [70, 10]
    assert list(tmp_path.iterdir()) == [path]  # nothing is left over


def test_features_are_a_random_projection_that_knows_nothing_of_the_data(tmp_path, own):
    whole = load(embed(IMAGES, own, tmp_path / "whole.npz"))
    path = embed(IMAGES, own, tmp_path / "few.npz", features=5)
    projection = make_projection(12, 5, 0)
    np.testing.assert_allclose(load(path).x_test, whole.x_test @ projection, rtol=1e-5, atol=1e-6)
    with np.load(path, allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["projection"], projection)
    other = load(embed(IMAGES, own, tmp_path / "other.npz", features=5, seed=1))
    assert not np.allclose(other.x_test, load(path).x_test)
    lengths = np.linalg.norm(np.eye(1000)[:20] @ make_projection(1000, 400, 3), axis=1)
    assert abs(lengths.mean() - 1) < 0.03
    with pytest.raises(DataError, match="the encoder gives 12 numbers per image; choose fewer"):
        embed(IMAGES, own, tmp_path / "many.npz", features=12)


def test_images_are_resized_and_grey_ones_get_three_channels(tmp_path, own):
    grey = Dataset("grey", *(v[..., :1] if v.ndim == 4 else v for v in IMAGES.parts.values()))
    found = load(embed(grey, own, tmp_path / "grey.npz", image_size=32))
    assert found.x_train.shape == (70, 12)
    parts = found.x_train.reshape(70, 4, 3)
    np.testing.assert_array_equal(parts[..., 0], parts[..., 1])


def test_a_killed_call_continues_and_gives_the_same_bytes(tmp_path, own):
    expected = embed(IMAGES, own, tmp_path / "expected.npz", features=5).read_bytes()

    class KillError(Exception):
        pass

    def stop_after_two_blocks(done, total):
        if done >= 2 * BATCH:
            raise KillError

    path = tmp_path / "killed.npz"
    with pytest.raises(KillError):
        embed(IMAGES, own, path, features=5, report=stop_after_two_blocks)
    assert not path.exists()
    (blocks,) = tmp_path.glob(".killed*.blocks")
    assert len(list(blocks.iterdir())) == 2
    damaged = min(blocks.iterdir())
    damaged.write_bytes(damaged.read_bytes()[:40])
    seen = []
    embed(IMAGES, own, path, features=5, report=lambda done, total: seen.append(done))
    assert path.read_bytes() == expected
    assert seen == [32, 64, 70, 80]
    assert not list(tmp_path.glob(".killed*"))


def test_blocks_of_other_images_are_not_continued(tmp_path, own):
    def stop(done, total):
        if done:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        embed(IMAGES, own, tmp_path / "small.npz", report=stop)
    one_pixel = IMAGES.x_train.copy()
    one_pixel[3, 0, 0, 0] ^= 1
    others = dataclasses.replace(IMAGES, x_train=one_pixel)
    found = load(embed(others, own, tmp_path / "small.npz"))
    fresh = load(embed(others, own, tmp_path / "fresh.npz"))
    np.testing.assert_array_equal(found.x_train, fresh.x_train)


def test_a_file_with_something_else_is_never_replaced(tmp_path, own):
    path = embed(IMAGES, own, tmp_path / "small.npz")
    before = path.stat()
    assert embed(IMAGES, own, path) == path
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    mine = tmp_path / "mine.npz"
    np.savez(mine, **IMAGES.parts)
    for there, more in ((path, {"features": 5}), (path, {"image_size": 32}), (mine, {}),
                        (tmp_path, {})):  # fmt: skip
        with pytest.raises(DataError, match="exists and holds something else"):
            embed(IMAGES, own, there, **more)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    np.testing.assert_array_equal(load(mine).x_train, IMAGES.x_train)


def test_what_cannot_be_embedded_is_refused(tmp_path, own):
    floats = Dataset("f", *(v / 255 if v.ndim == 4 else v for v in IMAGES.parts.values()))
    with pytest.raises(DataError, match="an encoder takes images of type uint8"):
        embed(floats, own, tmp_path / "x.npz")
    with pytest.raises(DataError, match="image_size must be between 8 and 4096"):
        embed(IMAGES, own, tmp_path / "x.npz", image_size=4)
    with pytest.raises(DataError, match="features must be 1 or more"):
        embed(IMAGES, own, tmp_path / "x.npz", features=-1)
    with pytest.raises(DataError, match=r"gave shape \(1,\) for 1 images"):
        embed(IMAGES, load_encoder("own_encoder:wrong_shape"), tmp_path / "x.npz")
    with pytest.raises(DataError, match="gave NaN or infinity"):
        embed(IMAGES, load_encoder("own_encoder:gives_nan"), tmp_path / "x.npz")
    assert not (tmp_path / "x.npz").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("efficientnet", "no encoder is named 'efficientnet'"),
        ("no_such_module:f", "cannot import no_such_module"),
        ("own_encoder:absent", "own_encoder has no function 'absent'"),
        ("timm:", "no encoder is named 'timm:'"),
    ],
)
def test_unknown_encoders_are_named(own, name, message):
    with pytest.raises(DataError, match=message):
        load_encoder(name)


def test_the_command_embeds_a_data_set_and_finds_it_again(own, capsys, tmp_path, cache):
    run = ["data", "embed", "digits", "--encoder", "own_encoder:quarters"]
    assert main(run) == 0
    made = cache / "embeddings" / "digits" / f"{own.name}.npz"
    assert f"digits: embeddings {own.name}, {made}" in capsys.readouterr().out
    assert load("digits", own.name).x_train.shape == (1442, 12)
    assert main(run) == 0
    assert "are ready" in capsys.readouterr().out
    assert main(["data", "list"]) == 0
    assert f"embedded {own.name}" in capsys.readouterr().out
    with pytest.raises(DataError, match="no embeddings 'other' of digits; there are: own_encoder"):
        load("digits", "other")
    with pytest.raises(DataError, match="no embeddings of 'digit'; did you mean digits"):
        load("digit", own.name)


def test_the_command_takes_embeddings_of_ones_own(capsys, tmp_path, cache, monkeypatch):
    digits = load("digits")
    mine = tmp_path / "mine.npz"
    parts = {n: v.reshape(len(v), -1) / 16 if v.ndim > 1 else v for n, v in digits.parts.items()}
    np.savez(mine, **parts)
    assert main(["data", "embed", "digits", "--encoder", str(mine)]) == 0
    (kept,) = (cache / "embeddings" / "digits").glob("mine-*.npz")
    assert kept.stem in capsys.readouterr().out
    assert load("digits", kept.stem).x_train.shape == (1442, 64)
    assert about_embedding(kept) == {}
    np.savez(
        mine, **{**parts, "x_train": parts["x_train"][:, None], "x_test": parts["x_test"][:, None]}
    )
    assert main(["data", "embed", "digits", "--encoder", str(mine)]) == 1
    assert "expected one row of features per image" in capsys.readouterr().err
    known = dataclasses.replace(CATALOG["mnist"], name="small", names=())
    monkeypatch.setitem(CATALOG, "small", known)
    monkeypatch.setattr(embedding, "cached", lambda known: IMAGES)
    np.savez(mine, **parts)
    assert main(["data", "embed", "small", "--encoder", str(mine)]) == 1
    assert "y_train has 1442 samples in 10 classes; small has 70 in 3" in capsys.readouterr().err
    assert main(["data", "embed", "mnist", "--encoder", str(tmp_path / "no.npz")]) == 1
    assert "no.npz" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["embed"], "say what to embed"),
        (["embed", "digits"], "say what to embed"),
        (["embed", "digits", "mnist", "--encoder", "x:y", "--out", "a.npz"], "one data set"),
        (["list", "--encoder", "x:y"], "are for embed, not for list"),
        (["embed", "digits", "--encoder", "a.npz", "--features", "3"], "do not apply to an .npz"),
    ],
)
def test_the_command_refuses_wrong_calls(arguments, message, capsys):
    assert main(["data", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_efficientnet_gives_the_known_features(tmp_path):
    encoder = load_encoder("efficientnet-lite0")
    from sklearn.datasets import load_sample_image

    images = np.stack([load_sample_image(name)[:400, :400] for name in ("china.jpg", "flower.jpg")])
    pair = Dataset("pair", images, np.array([0, 1], np.int32), images[:1], np.array([0], np.int32))
    path = embed(pair, encoder, tmp_path / "pair.npz")
    x = load(path).x_train
    assert x.shape == (2, 1280)
    assert x.min() >= 0  # ReLU6, then a mean
    assert about_embedding(path)["image_size"] == 128
    np.testing.assert_allclose(load(path).x_test[0], x[0], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_killed_command_continues(tmp_path, cache):
    """kill -9 in the middle of embedding the digits, with the real encoder."""
    command = [sys.executable, "-m", "elephant_nn", "data", "embed", "digits",
               "--encoder", "efficientnet-lite0", "--image-size", "64"]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list(cache.rglob("train-*.npy")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.communicate()
    made = cache / "embeddings" / "digits" / "efficientnet-lite0-64px.npz"
    assert list(cache.rglob("train-*.npy"))
    assert not made.exists()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ": 1,024 of 1,797 images, " in done.stderr
    with np.load(made, allow_pickle=False) as archive:
        assert json.loads(str(archive["about"]))["samples"] == [1442, 355]
    assert not list(cache.rglob("*.blocks"))


@pytest.mark.slow
def test_timm_that_is_not_installed_is_one_clear_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(DataError, match=r"needs timm; install it with: pip install \"timm>=1.0.20"):
        load_encoder("timm:convmixer_768_32.in1k")
