"""Folders of images."""

import numpy as np
import pytest
from PIL import Image

from elephant_nn.data.loading import load
from elephant_nn.files import DataError


def grey_images(folder, mode, value):
    for part in ("train", "test"):
        for label in ("2", "10"):
            (folder / part / label).mkdir(parents=True)
            Image.new(mode, (3, 2), value).save(folder / part / label / "1.png")


def test_a_folder_of_images(tmp_path):
    def draw(part, label, name, size=(5, 4)):
        folder = tmp_path / part / label
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (10, 20, 30)).save(folder / name)

    for part in ("train", "test"):
        for label in ("cat", "dog"):
            draw(part, label, "1.png")
    images = load(str(tmp_path))
    assert images.x_train.shape == (2, 4, 5, 3)
    assert images.y_train.tolist() == [0, 1]
    assert images.names == ("cat", "dog")
    draw("train", "dog", "2.png", size=(6, 4))
    with pytest.raises(DataError, match=r"2\.png has 6x4 pixels of 8 bits, but .*1\.png has 5x4"):
        load(str(tmp_path))
    (tmp_path / "train" / "dog" / "2.png").write_bytes(b"not an image")
    with pytest.raises(DataError, match="cannot be read as an image"):
        load(str(tmp_path))


def test_the_camera_orientation_is_applied(tmp_path):
    grey_images(tmp_path, "L", 100)
    lying = Image.fromarray(np.array([[0, 50, 100], [150, 200, 250]], np.uint8)).rotate(
        90, expand=1
    )
    exif = Image.Exif()
    exif[0x0112] = 6  # rotate by 90 degrees clockwise
    lying.save(tmp_path / "train" / "2" / "0.png", exif=exif)
    images = load(tmp_path).x_train
    assert images.shape == (3, 2, 3, 1)
    np.testing.assert_array_equal(images[1, ..., 0], [[0, 50, 100], [150, 200, 250]])


def test_grey_images_have_one_channel_unless_one_is_coloured(tmp_path):
    grey_images(tmp_path, "L", 100)
    Image.new("L", (3, 2), 100).save(tmp_path / "test" / "10" / "palette.gif")
    images = load(tmp_path)
    np.testing.assert_array_equal(images.x_train, np.full((2, 2, 3, 1), 100, np.uint8))
    assert (images.x_test == 100).all()
    Image.new("RGB", (3, 2), (1, 2, 3)).save(tmp_path / "test" / "2" / "coloured.gif")
    mixed = load(tmp_path)
    assert mixed.x_train.shape == (2, 2, 3, 3)
    assert (mixed.x_train == 100).all()
    assert mixed.x_test[mixed.y_test == 0][1, 0, 0].tolist() == [1, 2, 3]


def test_misplaced_and_unsuitable_images_are_errors(tmp_path):
    grey_images(tmp_path, "L", 0)
    (tmp_path / "train" / "10" / ".hidden").write_bytes(b"")
    (tmp_path / "train" / "Thumbs.db").write_bytes(b"")
    load(tmp_path)
    stray = tmp_path / "train" / "stray.png"
    stray.write_bytes(b"")
    with pytest.raises(DataError, match=r"stray\.png is not a folder with images"):
        load(tmp_path)
    stray.unlink()
    other = tmp_path / "train" / "10" / "other"
    other.mkdir()
    with pytest.raises(DataError, match="contains a folder, 'other'"):
        load(tmp_path)
    other.rmdir()
    (tmp_path / "test" / "11").mkdir()
    with pytest.raises(DataError, match="11 is not a folder with images"):
        load(tmp_path)
    (tmp_path / "test" / "11").rmdir()
    Image.new("F", (3, 2), 0.5).save(other.with_suffix(".tif"))
    with pytest.raises(DataError, match=r"other\.tif has 32 bits per pixel"):
        load(tmp_path)
    frames = [Image.new("L", (3, 2), shade) for shade in (0, 9)]
    frames[0].save(other.with_suffix(".tif"), save_all=True, append_images=frames[1:])
    with pytest.raises(DataError, match=r"other\.tif has 2 frames"):
        load(tmp_path)
    other.with_suffix(".tif").unlink()
    Image.new("LA", (3, 2), (9, 255)).save(other.with_suffix(".png"))
    assert load(tmp_path).x_train.shape == (3, 2, 3, 1)
    Image.new("LA", (3, 2), (9, 254)).save(other.with_suffix(".png"))
    with pytest.raises(DataError, match=r"other\.png has transparent pixels"):
        load(tmp_path)


def test_sixteen_bits_are_kept_and_not_mixed_with_eight(tmp_path):
    grey_images(tmp_path, "I;16", 300)
    images = load(tmp_path)
    np.testing.assert_array_equal(images.x_train, np.full((2, 2, 3, 1), 300, np.float32))
    Image.new("L", (3, 2), 9).save(tmp_path / "test" / "2" / "other.png")
    with pytest.raises(DataError, match=r"other\.png has 3x2 pixels of 8 bits, but .* of 16 bits"):
        load(tmp_path)


def test_an_image_that_is_too_large_is_named(tmp_path, monkeypatch):
    grey_images(tmp_path, "L", 0)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1)
    with pytest.raises(DataError, match=r"1\.png cannot be read as an image: .*exceeds limit"):
        load(tmp_path)
