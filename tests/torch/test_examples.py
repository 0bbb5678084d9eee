"""The scripts with Avalanche, Lightning and Stable-Baselines3, where these are installed."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from elephant_nn.torch import Elephant  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_split_mnist_of_avalanche():
    pytest.importorskip("avalanche")
    from elephant_nn.data.catalog import is_cached

    if not is_cached("mnist"):
        pytest.skip("needs elephant data fetch mnist")
    script = example("torch_avalanche")
    benchmark = script.SplitMNIST(5, seed=0, dataset_root=script.mnist_folder())
    found = script.run("elephant", benchmark, 1e-4, experiences=1)
    assert len(found) == 5
    assert found[0] > 0.9
    assert np.mean(found[1:]) < 0.1


def test_lightning():
    pytest.importorskip("lightning")
    report = example("torch_lightning").run("elephant")
    assert report.values.shape == (2, 2)
    assert report.learned > 0.9


def test_dqn_of_stable_baselines3():
    pytest.importorskip("stable_baselines3")
    script = example("torch_dqn")
    agent = script.agent("elephant", 1e-3, 0)
    before = [p.detach().clone() for p in agent.q_net.parameters()]
    agent.learn(500)
    assert all((a != b).any() for a, b in zip(before, agent.q_net.parameters(), strict=True))
    for net in (agent.q_net, agent.q_net_target):
        assert sum(isinstance(m, Elephant) for m in net.modules()) == 1
    assert agent.predict(agent.observation_space.sample())[0] in (0, 1)
