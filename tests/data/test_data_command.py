"""`elephant data`."""

import dataclasses

import pytest

from elephant_nn.cli import main
from elephant_nn.data.catalog import CATALOG


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
    output = capsys.readouterr()
    assert "no data set, file or folder is named 'nowhere.npz'" in output.err
    assert "digits: ready" in output.out
    assert main(["data", "fetch"]) == 2
    assert main(["data", "fetch", "mnits"]) == 2
    assert "did you mean mnist?" in capsys.readouterr().err
    assert main(["data", "fetch", "mnist", "--from", "/nonexistent"]) == 1
    assert "folder /nonexistent: the folder does not exist\n" in capsys.readouterr().err


@pytest.mark.slow
def test_one_data_set_that_cannot_be_fetched_does_not_stop_the_others(
    capsys, monkeypatch, tmp_path
):
    for name in ("mnist", "cifar10"):
        monkeypatch.setitem(CATALOG, name, dataclasses.replace(CATALOG[name], sources=()))
    assert main(["data", "fetch", "mnist", "cifar10", "digits"]) == 1
    output = capsys.readouterr()
    assert "mnist could not be fetched" in output.err
    assert "cifar10 could not be fetched" in output.err
    assert "digits: ready" in output.out
    run = ["reproduce", "split-mnist", "activations", "--out", str(tmp_path), "--workers", "0"]
    assert main(run) == 1
    output = capsys.readouterr()
    assert "mnist could not be fetched" in output.err
    assert "Sparsity of activation functions" in output.out
