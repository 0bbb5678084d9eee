import pytest
from hypothesis import given, strategies as st

from elephant_nn.runs.cells import Cell, digest, grid

values = st.one_of(
    st.integers(-10, 10**6), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5)
)
hypers = st.dictionaries(st.text("abcdefg", min_size=1, max_size=3), values, max_size=5)


def test_the_id_is_pinned():
    # Stored results are found by this id: a change here orphans every store.
    cell = Cell.of("sine", "emlp", {"lr": 1e-4, "a": 0.04, "d": 8}, 3)
    assert (
        cell.id == digest("sine", "emlp", {"a": 0.04, "d": 8, "lr": 1e-4}, 3) == "958d2d662c98df0a"
    )


@given(hypers, st.integers(0, 100))
def test_the_id_does_not_depend_on_the_order_of_settings(hyper, seed):
    backwards = dict(reversed(hyper.items()))
    assert Cell.of("e", "m", hyper, seed).id == Cell.of("e", "m", backwards, seed).id


@given(hypers, st.integers(0, 100))
def test_every_part_counts(hyper, seed):
    cell = Cell.of("e", "m", hyper, seed)
    others = (
        Cell.of("f", "m", hyper, seed),
        Cell.of("e", "n", hyper, seed),
        Cell.of("e", "m", {**hyper, "zz": 1}, seed),
        Cell.of("e", "m", hyper, seed + 1),
    )
    assert cell.id not in {other.id for other in others}


@given(hypers, st.integers(0, 100))
def test_the_setting_id_leaves_out_the_seed_only(hyper, seed):
    cell = Cell.of("e", "m", hyper, seed)
    assert cell.setting == Cell.of("e", "m", hyper, seed + 1).setting
    assert cell.setting != Cell.of("e", "n", hyper, seed).setting
    assert cell.setting != Cell.of("e", "m", hyper, seed, revision=1).setting


def test_grid_is_the_product():
    assert list(grid({"a": (1, 2), "b": ("x", "y")})) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]


def test_nan_is_not_a_setting():
    with pytest.raises(ValueError, match="not JSON compliant"):
        _ = Cell.of("e", "m", {"lr": float("nan")}, 0).id
