"""DQN in any Gymnasium environment, through a loop in Python."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from elephant_nn.nn.networks import emlp, mlp
from elephant_nn.rl.dqn import Dqn
from elephant_nn.rl.train import train


class Lamp(gymnasium.Env):
    """Shows 0 or 1; the action (10 or 11) that names it earns 1. Episodes have five steps."""

    observation_space = gymnasium.spaces.Box(0, 1, (1, 1))
    action_space = gymnasium.spaces.Discrete(2, start=10)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._show(), {}

    def _show(self):
        self.light = int(self.np_random.integers(2))
        return np.array([[self.light]], np.float32)

    def step(self, action):
        reward = float(action - 10 == self.light)
        self.time += 1
        return self._show(), reward, False, self.time == 5, {}


def test_it_learns_and_a_seed_is_a_life():
    network = emlp((1, 64, 2), a=0.3, sigma_bias=0.5, output_bias=True)
    optimiser = optax.rmsprop(1e-2, decay=0.999)
    settings = Dqn(warm_up=100, discount=0.0, explore=0.0)
    told = []
    first, second = (
        train(Lamp(), network, optimiser, settings, steps=1000, seed=3, report=report)
        for report in (lambda done, steps: told.append((done, steps)), lambda done, steps: None)
    )
    assert len(first.returns) == 200
    assert first.returns[-20:].mean() == 5
    np.testing.assert_array_equal(first.returns, second.returns)
    jax.tree.map(np.testing.assert_array_equal, first.params, second.params)
    np.testing.assert_array_equal(first.ends, np.arange(4, 1000, 5))
    assert told == [(1000, 1000)]
    values = network.apply(first.params, jnp.array([[0.0], [1.0]]))
    assert values.argmax(1).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"action_space": gymnasium.spaces.Box(0, 1, (2,))}, "a few numbered actions"),
        ({"observation_space": gymnasium.spaces.Discrete(4)}, "FlattenObservation"),
        ({"action_space": gymnasium.spaces.Discrete(5)}, "it needs 1 inputs and 5 outputs"),
        (
            {"observation_space": gymnasium.spaces.Box(0, 1, (3,))},
            "it needs 3 inputs and 2 outputs",
        ),
    ],
)
def test_environments_that_do_not_fit_are_named(change, says):
    game = Lamp()
    for name, value in change.items():
        setattr(game, name, value)
    with pytest.raises(ValueError, match=says):
        train(game, mlp((1, 4, 2)), optax.sgd(0.1), steps=1)


@pytest.mark.parametrize(
    ("shown", "says"),
    [
        ([[np.nan]], "not finite"),
        ([[1e300]], "not finite in float32"),
        ([0, 1], "showed 2 numbers"),
    ],
)
def test_observations_that_cannot_be_learned_are_refused(shown, says):
    game = Lamp()
    game._show = lambda: np.array(shown)
    with pytest.raises(ValueError, match=says):
        train(game, mlp((1, 4, 2)), optax.sgd(0.1), steps=1)


def test_rewards_that_are_not_finite_are_refused():
    game = gymnasium.wrappers.TransformReward(Lamp(), lambda reward: np.nan)
    with pytest.raises(ValueError, match="a reward that float32 cannot hold: nan"):
        train(game, mlp((1, 4, 2)), optax.sgd(0.1), steps=1)


def test_a_life_that_diverged_is_said_to():
    with pytest.raises(FloatingPointError, match="choose a lower rate"):
        train(Lamp(), mlp((1, 4, 2)), optax.sgd(np.nan), Dqn(warm_up=1), steps=10)
