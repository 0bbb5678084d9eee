"""Data sets by name or path, and the user's own arrays."""

import io
import zipfile

import numpy as np
import pytest
from small_data import SMALL, flips, run, save

from elephant_nn.data.dataset import Dataset
from elephant_nn.data.loading import from_arrays, load
from elephant_nn.files import DataError


def test_digits_are_built_in():
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


def test_arrays_of_three_dimensions_are_grey_images():
    y = np.array([0, 1])
    for kind in (np.uint8, np.float64):
        assert from_arrays(*[np.ones((2, 4, 5), kind), y] * 2).x_train.shape == (2, 4, 5, 1)


def test_rows_with_bad_values_are_named():
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
        ({"y_train": np.zeros(3)}, r"x_train has shape \(6, 2\) and y_train has shape \(3,\)"),
        ({"x_train": np.full((6, 2), np.nan)}, "x_train has NaN"),
        ({"y_test": np.array([7.0, 0.0])}, r"labels that are not in y_train: \[7.0\]"),
        ({"x_train": np.array([{}] * 6)}, "not an .npz file of plain arrays"),
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
    with pytest.raises(DataError, match=r"not an \.npz file; write x_train, .* with np\.savez"):
        load(str(tmp_path / "one.npy"))
    names = ("x_train", "y_train", "x_test", "y_test")
    np.savez_compressed(tmp_path / "mine.npz", **{name: np.arange(500) for name in names})
    intact = (tmp_path / "mine.npz").read_bytes()
    for damaged in flips(intact, range(60, 200, 10)):
        (tmp_path / "damaged.npz").write_bytes(damaged)
        with pytest.raises(DataError):
            load(str(tmp_path / "damaged.npz"))


def test_labels_in_a_column_are_labels():
    x, y = np.zeros((4, 3)), np.array([[0], [1], [0], [1]])
    assert from_arrays(x, y, x, y).y_train.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("x_train", "x_test", "y", "message"),
    [
        (np.zeros((6, 4)), np.zeros((6, 9)), np.zeros(6), "give both the same shape"),
        (np.full((6, 4), "a"), np.full((6, 4), "a"), np.zeros(6), "expected numbers"),
        (np.zeros((6, 4)), np.zeros((6, 4)), np.zeros((6, 2)), "expected one label per row"),
        (np.zeros((6, 4)), np.zeros((6, 4)), np.full(6, np.nan), "y_train has NaN"),
        (np.full((6, 4), 1e300), np.zeros((6, 4)), np.zeros(6), "too large for float32"),
    ],
)
def test_arrays_of_the_wrong_kind_are_named(x_train, x_test, y, message):
    with pytest.raises(DataError, match=message):
        from_arrays(x_train, y, x_test, y)


def test_a_header_with_an_impossible_shape_is_a_damaged_file(tmp_path):
    header = io.BytesIO()
    claim = {"descr": "<f8", "fortran_order": False, "shape": (10**13, 5)}
    np.lib.format.write_array_header_1_0(header, claim)
    with zipfile.ZipFile(tmp_path / "own.npz", "w") as archive:
        for name in ("x_train", "y_train", "x_test", "y_test"):
            archive.writestr(f"{name}.npy", header.getvalue())
    with pytest.raises(
        DataError, match=r"own.npz is not an \.npz file of plain arrays: Unable to alloc"
    ):
        load(tmp_path / "own.npz")


def test_wrong_names_and_absent_data_say_what_to_do(tmp_path):
    with pytest.raises(DataError, match="did you mean mnist"):
        load("mnits")
    with pytest.raises(DataError, match="elephant data fetch mnist"):
        load("mnist")
    with pytest.raises(DataError, match=r"needs images in train/<class>/"):
        load(str(tmp_path))


def test_bytes_and_other_numbers_do_not_mix():
    pixels, scaled = SMALL.x_test, SMALL.x_test / 255.0
    with pytest.raises(DataError, match=r"x_train are uint8 .* x_test float64"):
        from_arrays(SMALL.x_train, SMALL.y_train, scaled, SMALL.y_test)
    with pytest.raises(DataError, match=r"x_train are float64 .* x_test uint8"):
        from_arrays(SMALL.x_train / 255.0, SMALL.y_train, pixels, SMALL.y_test)
    mine = from_arrays(SMALL.x_train.astype(int), SMALL.y_train, pixels * 1.0, SMALL.y_test)
    assert mine.x_train.dtype == mine.x_test.dtype == np.float32


def test_held_out_rows_are_every_nth_of_each_class():
    y = np.array([0, 1, 0, 1, 0, 1, 0, 1, 1], np.int32)
    dataset = Dataset("own", np.arange(9.0)[:, None], y, np.ones((1, 1)), y[:1])
    kept, held = dataset.held_out_rows(2)
    assert (kept.tolist(), held.tolist()) == ([0, 1, 4, 5, 8], [2, 3, 6, 7])
    assert kept.dtype == held.dtype == np.int32
    split = dataset.held_out(2)
    np.testing.assert_array_equal(split.x_train, dataset.x_train[kept])
    np.testing.assert_array_equal(split.x_test, dataset.x_train[held])
    np.testing.assert_array_equal(split.y_test, y[held])
    with pytest.raises(ValueError, match="2 or more, got 1"):
        dataset.held_out_rows(1)


def own(y):
    x = np.ones((len(y), 2))
    return from_arrays(x, y, x, y)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (np.array(["b", "a", "b"], object), ("a", "b")),
        (np.array(["b", "a"], np.dtypes.StringDType()), ("a", "b")),
        (np.array([3, 1, np.int64(3)], object), (1, 3)),
        (np.array([True, False], object), (False, True)),
        (np.array([2.0, 1.0]), (1.0, 2.0)),
        (np.arange(300.0) % 25, tuple(map(float, range(25)))),
        (np.arange(300), tuple(range(300))),
    ],
)
def test_labels_that_are_accepted(labels, names):
    mine = own(labels)
    assert mine.names == names
    assert mine.y_train.dtype == np.int32
    assert [mine.names[label] for label in mine.y_train] == labels.tolist()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([b"a", b"\xff"]), r"values \(\|S1\)"),
        (np.zeros(3, "V4"), r"values \(\|V4\)"),
        (np.zeros(3, [("a", int), ("b", "U3")]), "expected numbers or names"),
        (np.array(["a", 1, None], object), "Python objects"),
        (np.array([b"a", b"b"], object), "Python objects"),
        (np.array([2**70, 1], object), "Python objects"),
        (np.array([1j, 2]), "complex numbers"),
        (np.array(["2020-01-01", "2021-01-01"], "datetime64[D]"), "dates"),
        (np.array([1, 2], "timedelta64[s]"), "time differences"),
    ],
)
def test_the_advice_for_labels_works(labels, message):
    with pytest.raises(DataError, match=message) as caught:
        own(labels)
    assert "np.array([str(label) for label in y])" in str(caught.value)
    assert own(np.array([str(label) for label in labels])).classes == len(set(map(str, labels)))


def test_one_hot_labels_are_refused_with_advice_that_works():
    one_hot = np.eye(3)[[0, 2, 1, 0]]
    with pytest.raises(DataError, match=r"argmax\(axis=1\)"):
        own(one_hot)
    assert own(one_hot.argmax(axis=1)).y_train.tolist() == [0, 2, 1, 0]


@pytest.mark.parametrize(
    "targets", [np.array([0.5, 1.0, 2.0]), np.arange(21.0), np.linspace(0, 1e6, 300).round()]
)
def test_numbers_to_predict_are_not_classes(targets):
    with pytest.raises(DataError, match=r"numbers to predict, not classes.*sample_stream\(x, y\)"):
        own(targets)
    own(np.round(targets).astype(int))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones((2, 2), "datetime64[s]"), r"dates .*x\.astype\(\"int64\"\)"),
        (np.ones((2, 2), "timedelta64[s]"), r"time differences .*x\.astype\(\"int64\"\)"),
        (np.ones((2, 2), complex), r"complex numbers .*np\.abs\(x\)"),
        (np.ones((2, 2), object), "Python objects"),
        (np.ones(2), r"in shape \(2,\), expected numbers in shape \(samples, features\)"),
    ],
)
def test_inputs_that_are_refused(x, message):
    y = np.array([0, 1])
    with pytest.raises(DataError, match=message):
        from_arrays(x, y, x, y)
    for kind, convert in (("Mm", lambda x: x.astype("int64")), ("c", np.abs)):
        if x.dtype.kind in kind:
            assert from_arrays(convert(x), y, convert(x), y).x_train.shape == (2, 2)


def test_float32_and_bytes_are_not_copied():
    y = np.array([0, 1])
    for x in (np.ones((2, 3), np.float32), np.ones((2, 3), np.uint8), np.ones((2, 3, 3), np.uint8)):
        assert np.shares_memory(from_arrays(x, y, x, y).x_train, x)


CORE_ONLY = """
import sys
for name in ("polars", "PIL", "sklearn", "matplotlib", "rich", "tyro", "pandas"):
    sys.modules[name] = None
from pathlib import Path
import numpy as np
from small_data import SMALL, assert_same, known
from elephant_nn.data.catalog import CATALOG, fetch
from elephant_nn.data.formats import from_cifar_strips
from elephant_nn.data.loading import load
from elephant_nn.files import DataError
folder = Path(sys.argv[1])
CATALOG["small"] = known()
fetch(CATALOG["small"], folder / "files")
assert_same(load("small"), SMALL)
np.savez(folder / "own.npz", **SMALL.parts)
assert_same(load(folder / "own.npz"), SMALL)
for attempt in (
    lambda: load("digits"),
    lambda: load(folder / "images"),
    lambda: from_cifar_strips("cifar10", {}),
):
    try:
        attempt()
    except DataError as error:
        print(error)
"""


def test_loading_needs_the_core_dependencies_only(tmp_path):
    save(tmp_path / "files")
    for part in ("train", "test"):
        save(tmp_path / "images" / part / "cat", {"1.png": b""})
    code, output, errors = run(CORE_ONLY, tmp_path)
    assert code == 0, errors
    install = 'install it with: pip install "elephant-nn[experiments]"'
    assert output.splitlines() == [
        f"the data set digits needs scikit-learn; {install}",
        f"a folder of images needs Pillow; {install}",
        f"this copy of cifar10 needs Pillow; {install}",
    ]
