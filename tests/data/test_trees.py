"""Image data sets in the forms people keep them."""

import dataclasses
import pickle
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_data import archived, assert_same, flips

from elephant_nn.cli import main
from elephant_nn.data import trees
from elephant_nn.data.catalog import CATALOG, fetch
from elephant_nn.data.dataset import Dataset
from elephant_nn.data.formats import checksums
from elephant_nn.data.trees import (
    ImageSet,
    canonical,
    canonical_parts,
    read_archive,
    read_image_set as read_set,
)
from elephant_nn.files import DataError

KIND = ImageSet(
    "small", ("ant", "bee", "train"), 8, (4, 2), label_bytes=2,
    members={"train": "train", "test": "test"}, archives=("small-binary", "small-python"),
)  # fmt: skip
RNG = np.random.default_rng(0)


def made(kind, rng=RNG):
    """Random images in canonical order."""
    arrays = {}
    for part, count in zip(("train", "test"), kind.per_class, strict=True):
        y = np.repeat(np.arange(len(kind.classes), dtype=np.int32), count)
        x = rng.integers(0, 256, (len(y), kind.side, kind.side, 3), np.uint8)
        arrays |= {f"x_{part}": x[canonical(x, y)], f"y_{part}": y}
    return Dataset(kind.name, **arrays, names=kind.classes)


SMALL = made(KIND)


def read(source, kind=KIND):
    return read_set(kind, source, lambda text: None)


def records(x, y, order):
    """Two label bytes, then pixels channel by channel, as in CIFAR-100's binary files."""
    pixels = x.transpose(0, 3, 1, 2).reshape(len(x), -1)
    return np.column_stack([np.full(len(y), 7, np.uint8), y.astype(np.uint8), pixels])[
        order
    ].tobytes()


def binary():
    order = {"train": RNG.permutation(12), "test": RNG.permutation(6)}
    return {
        f"small-binary/{part}.bin": records(
            SMALL.parts[f"x_{part}"], SMALL.parts[f"y_{part}"], order[part]
        )
        for part in order
    }


def pickled(protocol):
    """CIFAR-100's Python files: a dictionary with bytes of pixels and lists of labels."""
    files = {}
    for part in ("train", "test"):
        x, y = SMALL.parts[f"x_{part}"], SMALL.parts[f"y_{part}"]
        content = {
            "filenames": [f"{i}.png" for i in y],
            "fine_labels": [int(label) for label in y],
            "coarse_labels": [9] * len(y),
            "data": x.transpose(0, 3, 1, 2).reshape(len(x), -1),
        }
        files[f"small-python/{part}"] = pickle.dumps(content, protocol=protocol)
    return files


def pickled_by_python_2():
    """The same with the opcodes of Python 2, which wrote the official files."""
    short = lambda text: b"U" + bytes([len(text)]) + text
    files = {}
    for part in ("train", "test"):
        x, y = SMALL.parts[f"x_{part}"], SMALL.parts[f"y_{part}"]
        pixels = x.transpose(0, 3, 1, 2).tobytes()
        labels = b"](" + b"".join(b"K" + bytes([label]) for label in y) + b"e"
        other = b"](" + b"K\x09" * len(y) + b"e"
        data = b"T" + len(pixels).to_bytes(4, "little") + pixels
        items = short(b"fine_labels") + labels + short(b"coarse_labels") + other
        files[f"small-python/{part}"] = b"\x80\x02}(" + items + short(b"data") + data + b"u."
    return files


def class_folders(folder, suffix=".png", test="test"):
    for part, name in (("train", "train"), ("test", test)):
        for i, (image, label) in enumerate(
            zip(SMALL.parts[f"x_{part}"], SMALL.parts[f"y_{part}"], strict=True)
        ):
            path = folder / name / KIND.classes[label] / f"{i}{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path)
    return folder


def save(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


FORMS = ["tar", "tree", "zip", "python tar", "python tree", "python 2 tree"]


@pytest.mark.parametrize("form", FORMS)
def test_official_files_give_the_same_arrays_in_every_form(tmp_path, form):
    files = pickled(2) if form.startswith("python") else binary()
    if form == "python 2 tree":
        files = pickled_by_python_2()
    if "tree" in form:
        source = save(tmp_path / "tree", files)
    elif form == "zip":
        source = tmp_path / "small.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    else:
        source = tmp_path / "small.tar.gz"
        source.write_bytes(archived(files))
    assert_same(read(source), SMALL)


def test_a_folder_that_holds_the_archive_is_enough(tmp_path):
    (tmp_path / "small-binary.tar.gz").write_bytes(archived(binary()))
    assert_same(read(tmp_path), SMALL)
    (tmp_path / "another.zip").write_bytes(b"")
    assert_same(read(tmp_path), SMALL)  # the official name counts
    (tmp_path / "small-binary.tar.gz").rename(tmp_path / "mine.tar.gz")
    with pytest.raises(DataError, match=r"several archives: another.zip, mine.tar.gz; name the"):
        read(tmp_path)


def test_files_of_other_data_sets_in_the_same_folder_do_not_matter(tmp_path):
    """As in a folder of data sets of PyTorch: CIFAR-10 and CIFAR-100 beside each other."""
    save(tmp_path, {**binary(), "cifar-10-batches-bin/data_batch_1.bin": b"other records"})
    assert_same(read(tmp_path), SMALL)


def test_an_archive_inside_an_archive_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "outer.zip", "w") as archive:
        archive.writestr("small-binary.tar.gz", archived(binary()))
    with pytest.raises(DataError, match=r"outer.zip contains small-binary.tar.gz; extract it"):
        read(tmp_path / "outer.zip")


def test_hidden_files_of_a_mac_are_ignored(tmp_path):
    folder = class_folders(tmp_path / "png")
    with zipfile.ZipFile(tmp_path / "mac.zip", "w") as archive:
        for path in folder.rglob("*.png"):
            archive.write(path, path.relative_to(folder))
            archive.writestr(f"__MACOSX/{path.relative_to(folder).parent}/._{path.name}", b"\0\5")
    assert_same(read(tmp_path / "mac.zip"), SMALL)


def test_class_folders_give_the_same_arrays_though_a_class_is_named_train(tmp_path):
    assert_same(read(class_folders(tmp_path / "png")), SMALL)
    assert_same(read(class_folders(tmp_path / "bmp", ".bmp", "Validation")), SMALL)
    shutil.make_archive(str(tmp_path / "zipped"), "zip", tmp_path / "png")
    assert_same(read(tmp_path / "zipped.zip"), SMALL)


@pytest.mark.parametrize("labels", ["numbers", "names"])
def test_an_npz_file_gives_the_same_arrays(tmp_path, labels):
    order = RNG.permutation(12)
    name = (lambda y: np.array(KIND.classes)[y]) if labels == "names" else (lambda y: y)
    np.savez(
        tmp_path / "small.npz", x_train=SMALL.x_train[order], y_train=name(SMALL.y_train[order]),
        x_test=SMALL.x_test, y_test=name(SMALL.y_test),
    )  # fmt: skip
    assert_same(read(tmp_path / "small.npz"), SMALL)
    assert_same(read(tmp_path), SMALL)


def tiny_tree(folder, annotations=True):
    """Tiny ImageNet's tree: JPEG images, some of them grey, labels of validation in a text."""
    kind = dataclasses.replace(KIND, classes=("n01", "n02"), label_bytes=0)
    rows, rng = [], np.random.default_rng(1)
    for label, wnid in enumerate(kind.classes):
        for i in range(4):
            path = folder / "train" / wnid / "images" / f"{wnid}_{i}.JPEG"
            path.parent.mkdir(parents=True, exist_ok=True)
            shape = (8, 8) if i == 0 else (8, 8, 3)
            Image.fromarray(rng.integers(0, 256, shape, np.uint8)).save(path, "JPEG")
        for i in range(2):
            path = folder / "val" / "images" / f"val_{2 * label + i}.JPEG"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(path, "JPEG")
            rows.append(f"{path.name}\t{wnid}\t0\t0\t7\t7")
    unlabelled = folder / "test" / "images" / "test_0.JPEG"
    unlabelled.parent.mkdir(parents=True)
    Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(unlabelled, "JPEG")
    if annotations:
        (folder / "val" / "val_annotations.txt").write_text("\n".join(rows))
    return kind


def test_the_tree_of_tiny_imagenet_with_grey_images_and_annotated_validation(tmp_path):
    kind = tiny_tree(tmp_path / "tiny")
    found = read(tmp_path / "tiny", kind)
    assert found.x_train.shape == (8, 8, 8, 3)
    assert found.y_test.tolist() == [0, 0, 1, 1]
    grey = (found.x_train == found.x_train[..., :1]).all((1, 2, 3))
    assert grey.sum() == 2
    with zipfile.ZipFile(tmp_path / "tiny.zip", "w") as archive:
        for path in sorted((tmp_path / "tiny").rglob("*"), reverse=True):  # images before labels
            archive.write(path, f"tiny-imagenet-200/{path.relative_to(tmp_path / 'tiny')}")
    assert_same(read(tmp_path / "tiny.zip", kind), found)
    from_bytes = read_archive(kind, "tiny", {"tiny.zip": (tmp_path / "tiny.zip").read_bytes()})
    assert_same(from_bytes, found)


def test_validation_images_without_their_labels_are_missed(tmp_path):
    kind = tiny_tree(tmp_path, annotations=False)
    with pytest.raises(DataError, match="test has 0 images of 'n01', expected 2"):
        read(tmp_path, kind)


def test_incomplete_and_foreign_data_are_named(tmp_path):
    folder = class_folders(tmp_path / "png")
    (folder / "train" / "bee" / "4.png").unlink()
    with pytest.raises(DataError, match=r"png is not complete.* train has 3 .* of 'bee', exp.* 4"):
        read(folder)
    Image.fromarray(SMALL.x_train[0][:6]).save(folder / "train" / "bee" / "4.png")
    with pytest.raises(DataError, match=r"bee/4.png has 8x6 pixels, expected 8x8"):
        read(folder)
    (folder / "train" / "bee" / "4.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"bee/4.png is damaged"):
        read(folder)
    (folder / "train" / "cow").mkdir()
    (folder / "train" / "bee" / "4.png").rename(folder / "train" / "cow" / "4.png")
    Image.fromarray(SMALL.x_train[0]).save(folder / "train" / "cow" / "4.png")
    with pytest.raises(DataError, match="small has no class 'cow'"):
        read(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty has no images of small; expected the official"):
        read(tmp_path / "empty")
    (tmp_path / "text.txt").write_text("not an archive")
    with pytest.raises(DataError, match=r"text.txt is damaged or not an archive"):
        read(tmp_path / "text.txt")
    np.savez(tmp_path / "grey.npz", x_train=SMALL.x_train[..., 0], y_train=SMALL.y_train,
             x_test=SMALL.x_test[..., 0], y_test=SMALL.y_test)  # fmt: skip
    with pytest.raises(DataError, match=r"grey.npz: x_train holds uint8 of shape \(8, 8, 1\)"):
        read(tmp_path / "grey.npz")


@pytest.mark.parametrize("files", [binary(), pickled(2)], ids=["binary", "python"])
def test_damaged_official_files_are_named(tmp_path, files):
    name = next(iter(files))
    for cut in (0, 1, len(files[name]) // 2, len(files[name]) - 3):
        source = save(tmp_path / "cut", {**files, name: files[name][:cut]})
        with pytest.raises(DataError, match=f"{name.rpartition('/')[2]}|cut is not complete"):
            read(source)


@pytest.mark.parametrize("form", ["tar", "zip"])
def test_a_damaged_archive_is_a_clear_error_or_other_pixels(tmp_path, form):
    """Whatever byte it is; checksums find damage that can be read."""
    path = tmp_path / f"small.{form}"
    if form == "tar":
        path.write_bytes(archived(binary()))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in binary().items():
                archive.writestr(name, content)
    content, readable = path.read_bytes(), 0
    for damaged in flips(content, [*range(60), *range(60, len(content), 97)]):
        path.write_bytes(damaged)
        try:
            readable += read(path).x_train.shape == SMALL.x_train.shape
        except DataError as error:
            assert str(path) in str(error) or ".bin" in str(error)
    assert readable < len(content) / 97


class Boom:
    def __reduce__(self):
        return (exec, ("raise SystemExit('the pickle was run')",))


def test_pickles_are_never_run(tmp_path):
    files = {f"small-python/{part}": pickle.dumps(Boom()) for part in ("train", "test")}
    with pytest.raises(DataError, match="damaged or not an official file"):
        read(save(tmp_path, files))


def test_a_fetch_keeps_only_the_official_pixels(tmp_path, monkeypatch):
    known = dataclasses.replace(
        CATALOG["cifar100"], name="small", sources=(), names=KIND.classes,
        sha256=checksums(canonical_parts(SMALL)),
        from_path=lambda path, notice: read_set(KIND, path, notice),
    )  # fmt: skip
    folder = class_folders(tmp_path / "png")
    assert_same(fetch(known, folder), SMALL)
    Image.fromarray(255 - SMALL.x_train[0]).save(folder / "train" / "ant" / "0.png")
    with pytest.raises(DataError, match="complete, but its pixels are not the official ones"):
        fetch(known, folder)
    with pytest.raises(DataError, match="there is no file or folder"):
        fetch(known, tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"(?s)could not be fetched.*--from PATH"):
        fetch(known)


def test_the_command_names_what_is_missing(tmp_path, capsys):
    class_folders(tmp_path / "png")
    assert main(["data", "fetch", "cifar100", "--from", str(tmp_path / "png")]) == 1
    assert "test/ant/0.png has 8x8 pixels, expected 32x32" in capsys.readouterr().err


def test_an_order_puts_canonical_samples_in_their_official_places(monkeypatch):
    official = replace(SMALL, **{n: v[::-1] for n, v in SMALL.parts.items()})
    order = RNG.permutation(12)
    official = replace(official, x_train=SMALL.x_train[order], y_train=SMALL.y_train[order])
    found = canonical(official.x_train, official.y_train)
    places = np.concatenate([found, canonical(official.x_test, official.y_test)])
    monkeypatch.setattr(np, "load", lambda *arguments, **more: places)
    assert_same(trees._in_official_order(SMALL, "any.npy"), official)


def test_the_places_of_cifar10_are_a_permutation():
    places = np.load(Path(trees.__file__).with_name("cifar10-order.npy"))
    assert np.array_equal(np.sort(places[:50000]), np.arange(50000))
    assert np.array_equal(np.sort(places[50000:]), np.arange(10000))
