import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from elephant_nn import calibrate, load
from elephant_nn.cli import main

KEPT = Path(__file__).parent.parent / "docs" / "results"
DIGITS = load("digits").x_train.reshape(-1, 64) / 255
SINE = np.linspace(0, 2, 200)[:, None]
FEW = np.random.default_rng(0).normal(size=(50, 3))


def swept(name, metric):
    """Of the published sweep: the best of all rates at every a and sigma_bias, and the best ReLU
    network."""
    rows = pl.read_parquet(KEPT / name / "rows.parquet").filter(pl.col("seed") >= 1000)
    hyper = [json.loads(text) for text in rows["hyper"]]
    names = ("a", "sigma_bias", "lr", "E", "scaling")
    rows = rows.with_columns(
        pl.Series(key, [h.get(key) for h in hyper], strict=False) for key in names
    )
    rows = rows.filter(pl.col("scaling").is_null())
    best = {}
    for method in ("emlp", "mlp", "mlp-relu"):
        mine = rows.filter(pl.col("method") == method)
        means = mine.group_by("a", "sigma_bias", "lr", "E").agg(pl.col(metric).mean())
        for a, sigma_bias, _, _, mean in means.iter_rows():
            score = -mean if metric == "mse" else mean
            key = (a, sigma_bias)
            best[key] = max(best.get(key, -np.inf), score)
    return best


@pytest.mark.parametrize(
    ("name", "x", "metric"), [("sine", SINE, "mse"), ("split-digits", DIGITS, "accuracy")]
)
def test_reaches_nine_tenths_of_what_a_sweep_reaches(name, x, metric):
    best, found = swept(name, metric), calibrate(x, 1000)
    relu = best.pop((None, None))
    apart = lambda point: math.hypot(
        math.log(point[0] / found.a), math.log(point[1] / found.sigma_bias)
    )
    near = best[min(best, key=apart)]
    assert (near - relu) / (max(best.values()) - relu) > 0.9


def test_settings_follow_the_scale_of_the_inputs():
    one, ten = calibrate(FEW, 500), calibrate(10 * FEW + 0.0, 500)
    assert ten.a == pytest.approx(10 * one.a)
    assert ten.sigma_bias == pytest.approx(10 * one.sigma_bias)
    assert (ten.active, ten.overlap) == pytest.approx((one.active, one.overlap))
    assert calibrate(FEW + 5, 500).a == pytest.approx(one.a)
    again = calibrate(np.concatenate([FEW, FEW]), 500)
    assert again.a == pytest.approx(one.a, rel=0.1)


@pytest.mark.parametrize("neurons", [1000, 10_000])
def test_about_as_many_units_respond_as_the_docstring_says(neurons):
    found = calibrate(DIGITS, neurons)
    assert 3.5 < found.active * math.sqrt(neurons) < 5.5
    assert found.sigma_bias == pytest.approx(found.a * math.sqrt(neurons / 60.75))


def test_a_step_moves_a_pre_activation_by_a_small_share_of_a():
    found = calibrate(DIGITS, 1000)
    moved = found.lr * (1 + np.abs(DIGITS).sum(1).mean())
    assert moved == pytest.approx(0.0075 * found.a)
    assert calibrate(DIGITS, 1000, head="ridge").lr is None
    assert calibrate(DIGITS, 1000, head="ridge").a > 2 * found.a


def test_says_what_it_found():
    assert str(calibrate(DIGITS)).startswith("a=0.0")
    assert "of the units respond to an input" in str(calibrate(DIGITS, head="ridge"))


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        (np.ones((5, 2)), {}, "all rows of x are the same"),
        (np.ones(5), {}, "two or more samples, got float64 in shape"),
        ([["a"], ["b"]], {}, "x must be numbers"),
        ([[1.0], [np.nan]], {}, "x has NaN or infinity in row 1"),
        (FEW, {"neurons": 0}, "neurons must be a whole number above 0, got 0"),
        (FEW, {"d": 1}, "d must be above 1, got 1"),
        (FEW, {"head": "none"}, "head must be one of"),
        (FEW * 1e35, {}, "too far from 1 for float32"),
    ],
)
def test_wrong_calls_are_refused(x, options, message):
    with pytest.raises(ValueError, match=message):
        calibrate(x, **options)


def test_the_command_reads_names_and_files(tmp_path, capsys):
    assert main(["calibrate", "digits", "--format", "json"]) == 0
    settings = json.loads(capsys.readouterr().out)
    assert settings["a"] == pytest.approx(calibrate(DIGITS).a, rel=0.1)
    table = pl.DataFrame({"a": FEW[:, 0], "b": FEW[:, 1] * 1e4, "c": FEW[:, 2], "kind": "oak"})
    table = table.with_columns(c=pl.when(pl.col("c") > 1.5).then(None).otherwise(pl.col("c")))
    table.write_csv(tmp_path / "trees.csv")
    table.write_parquet(tmp_path / "trees.parquet")
    np.save(tmp_path / "x.npy", FEW)
    np.savez(tmp_path / "x.npz", x=FEW, y=FEW[:, 0])
    shown = []
    for name in ("trees.csv", "trees.parquet", "x.npy", "x.npz"):
        assert main(["calibrate", str(tmp_path / name), "--neurons", "200"]) == 0
        shown.append(capsys.readouterr().out)
    assert "left out columns of text: kind" in shown[0]
    assert "rows with gaps" in shown[0]
    assert "standardise the inputs" in shown[0]
    assert shown[0] == shown[1]
    assert shown[2] == shown[3]
    options = ["--drop", "b,c", "--standardise", "--head", "ridge"]
    assert main(["calibrate", str(tmp_path / "trees.csv"), *options]) == 0
    assert "50 of 50 rows, 1 columns" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["nothing.csv"], 1, "there is no file nothing.csv"),
        (["nothing.npz"], 1, "there is no file nothing.npz"),
        (["fashion"], 1, "did you mean fashion-mnist?"),
        (["table.csv", "--drop", "z"], 2, "--drop z: the columns are a, kind"),
        (["table.csv", "--drop", "a"], 1, "has no columns of numbers"),
        (["table.csv", "--neurons", "0"], 2, "neurons must be a whole number above 0"),
        (["x.npz"], 1, "has the arrays one, two; name the inputs x_train or x"),
        (["broken.npy"], 1, "cannot read broken.npy"),
        (["digits", "--drop", "a"], 2, "--drop is for tables with columns"),
    ],
)
def test_wrong_files_are_one_sentence(arguments, status, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("a,kind\n1,x\n2,y\n")
    Path("broken.npy").write_bytes(b"\x93NUMPY")
    np.savez("x.npz", one=FEW, two=FEW)
    assert main(["calibrate", *arguments]) == status
    assert message in capsys.readouterr().err
