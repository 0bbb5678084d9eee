"""Benchmarks run at all; what they measure is for `elephant bench`."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def checkout(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


def test_the_activation_is_measured(monkeypatch, capsys):
    from benchmarks import activation, table

    monkeypatch.setattr(activation, "ROUNDS", 2)
    monkeypatch.setattr(activation, "ELEMENTS", 1000)
    text = table.run_benchmarks(["activation"])
    assert text.count("| elephant forward and backward, d = ") == 7
    assert "training step of an EMLP" in text


def test_a_step_of_pytorch_is_measured(monkeypatch):
    pytest.importorskip("torch")
    from benchmarks import torch_step

    monkeypatch.setattr(torch_step, "ROUNDS", 2)
    monkeypatch.setattr(torch_step, "SIZES", (8, 9, 3))
    lines = torch_step.measure()
    assert len(lines) == 4
    assert all(line.ratio > 0 for line in lines)


@pytest.mark.slow
def test_dqn_is_measured(monkeypatch):
    pytest.importorskip("gymnasium")
    from benchmarks import rl

    for name, few in (("CHUNKS", 1), ("LOOP_STEPS", 1100), ("LANES", 1)):
        monkeypatch.setattr(rl, name, few)
    for rate in (rl._our_rate, rl._typical_rate, rl._lean_rate, rl._arithmetic_rate):
        assert rate("catcher") > 0


@pytest.mark.slow
def test_the_sine_grid_is_measured(monkeypatch):
    from benchmarks import sine_grid

    table = sine_grid.TABLES["sine"]
    few = [
        row if row.method != "emlp" else type(row)(**{**vars(row), "grid": {"lr": (1e-3, 1e-4)}})
        for row in table.rows
    ]
    small = type(table)(**{**vars(table), "rows": tuple(few), "seeds": 2})
    monkeypatch.setitem(sine_grid.TABLES, "sine", small)
    monkeypatch.setattr(sine_grid, "LEAN_RUNS", 2)
    lines = sine_grid.measure()
    assert len(lines) == 4
    assert all(line.ratio > 0 for line in lines)


@pytest.mark.slow
def test_class_incremental_learning_is_measured(monkeypatch):
    pytest.importorskip("elephant_nn.experiments.problems")
    from benchmarks import split
    from elephant_nn.data.catalog import is_cached

    if not is_cached("mnist"):
        pytest.skip("MNIST is not in the cache")
    monkeypatch.setattr(split, "ROUNDS", 1)
    (line, *_) = split._steps("emlp", 50, "EMLP", 1.0)
    assert line.ratio > 0
    assert sys.modules["benchmarks.split"] is split


@pytest.mark.slow
def test_embeddings_are_measured(monkeypatch):
    from benchmarks import embedding

    monkeypatch.setattr(embedding, "IMAGES", 32)
    monkeypatch.setattr(embedding, "SIDE", 32)
    (encoder,) = embedding._encoder()
    assert encoder.ratio > 0
    assert embedding._step(1000).ratio > 0
    assert 0 < embedding._peak(1000) < 8


def test_more_machines_are_never_slower_in_the_model():
    from benchmarks import cluster

    assert cluster.finish_time([3.0, 2.0, 2.0], 2) == 4.0
    lines = cluster._model()
    hours = [float(line.ours.removesuffix(" h")) for line in lines]
    assert hours == sorted(hours, reverse=True)
    longest = max(max(phase) for phase in cluster.phases("split-mnist"))
    assert hours[-1] >= round(longest / 60, 1)


@pytest.mark.slow
def test_executors_are_measured():
    from benchmarks import cluster

    shards = cluster.waiting_shards(4, 0.01)
    timed = [cluster.run(make, 2, shards) for make in (cluster.local_pool, cluster.local_cluster)]
    assert timed[0].files == timed[1].files
    assert all(one.rate(2) > 0 and one.processor(2) >= 0 for one in timed)
