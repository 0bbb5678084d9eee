"""The official formats, intact and damaged."""

import dataclasses
import json

import numpy as np
import pytest
from small_data import CIFAR, FILES, GZ, SMALL, archived, assert_same, flips, save, strips

from elephant_nn.data.catalog import CATALOG, fetch
from elephant_nn.data.formats import (
    from_cifar_archive,
    from_cifar_binary,
    from_cifar_strips,
    from_idx,
    from_mnist_csv,
    to_cifar_binary,
    to_idx,
)
from elephant_nn.data.sources import Folder
from elephant_nn.files import DataError


def test_formats_round_trip():
    assert_same(from_idx("small", FILES), SMALL)
    assert_same(from_idx("small", GZ), SMALL)
    assert_same(from_cifar_binary("cifar", dict(to_cifar_binary(CIFAR))), CIFAR)


def test_every_form_of_cifar_gives_the_same_arrays():
    folder = "cifar-10-batches-bin"
    tar = archived({f"{folder}/{name}": part for name, part in to_cifar_binary(CIFAR)})
    assert_same(from_cifar_archive("cifar", {"x.tar.gz": tar}), CIFAR)
    assert_same(from_cifar_strips("cifar", strips()), CIFAR)


def csv(x, y):
    rows = np.column_stack([y, x.reshape(len(x), -1)])
    lines = [",".join(["label", *map(str, range(784))]), *(",".join(map(str, r)) for r in rows)]
    return ("\n".join(lines) + "\n").encode()


def test_csv_gives_the_same_arrays():
    files = {
        "mnist_train.csv": csv(SMALL.x_train, SMALL.y_train),
        "mnist_test.csv": csv(SMALL.x_test, SMALL.y_test),
    }
    dataset = from_mnist_csv("small", files)
    assert_same(dataset, SMALL)
    assert dict(to_idx(dataset)) == FILES


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-500],
        lambda text: text.replace(b",", b";"),
        lambda text: text.replace(b"\n0,", b"\n1000,"),
        lambda text: text.replace(b"\n0,", b"\n\xff,"),
        lambda text: b"",
    ],
)
@pytest.mark.filterwarnings("ignore:loadtxt")
def test_damaged_csv_is_a_clear_error(tmp_path, damage):
    files = {
        "mnist_train.csv": damage(csv(SMALL.x_train, SMALL.y_train)),
        "mnist_test.csv": csv(SMALL.x_test, SMALL.y_test),
    }
    source = Folder(save(tmp_path / "files", files), tuple(files))
    with pytest.raises(DataError, match=r"cannot be decoded|wrong content"):
        fetch_from(source, from_mnist_csv, "mnist")


def fetch_from(source, decode, name):
    fetch(dataclasses.replace(CATALOG[name], sources=((source, decode),)))


@pytest.mark.parametrize(
    "labels",
    [
        json.dumps(labels).encode()
        for labels in (CIFAR.y_train.tolist()[:-1], [None] * 10, {"no": "list"}, [1e99] * 10)
    ]
    + [b"[" * 200_000],
)
def test_labels_that_do_not_fit_are_a_clear_error(tmp_path, labels):
    files = {**strips(), "train_lables.json": labels}
    source = Folder(save(tmp_path / "files", files), tuple(files))
    with pytest.raises(DataError, match="cannot be decoded"):
        fetch_from(source, from_cifar_strips, "cifar10")


def test_a_damaged_image_is_a_clear_error(tmp_path):
    files = strips()
    source = Folder(save(tmp_path / "files", files), tuple(files))
    length_and_type = range(33, 41)  # of the first chunk of pixels in a PNG
    for damaged in flips(files["test_batch.png"], length_and_type, (1, 2, 4, 8, 16, 32, 64)):
        (tmp_path / "files" / "test_batch.png").write_bytes(damaged)
        with pytest.raises(DataError):
            fetch_from(source, from_cifar_strips, "cifar10")
