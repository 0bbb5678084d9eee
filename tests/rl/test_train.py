"""DQN in Gymnasium environments, with a loop in Python."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from elephant_nn.nn.networks import emlp, mlp
from elephant_nn.rl.dqn import DQNConfig
from elephant_nn.rl.train import train


class Match(gymnasium.Env):
    """Shows 0 or 1; the matching action (10 or 11) has reward 1. Episodes last five steps."""

    observation_space = gymnasium.spaces.Box(0, 1, (1, 1))
    action_space = gymnasium.spaces.Discrete(2, start=10)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.observe(), {}

    def observe(self):
        self.shown = int(self.np_random.integers(2))
        return np.array([[self.shown]], np.float32)

    def step(self, action):
        reward = float(action - 10 == self.shown)
        self.time += 1
        return self.observe(), reward, False, self.time == 5, {}


def test_train_learns_and_is_reproducible():
    network = emlp((1, 64, 2), a=0.3, sigma_bias=0.5, output_bias=True)
    optimiser = optax.rmsprop(1e-2, decay=0.999)
    config = DQNConfig(warm_up=100, discount=0.0, epsilon=0.0)
    reports = []
    first, second = (
        train(Match(), network, optimiser, config, steps=1000, seed=3, report=report)
        for report in (lambda done, steps: reports.append((done, steps)), None)
    )
    assert len(first.returns) == 200
    assert first.returns[-20:].mean() == 5
    np.testing.assert_array_equal(first.returns, second.returns)
    jax.tree.map(np.testing.assert_array_equal, first.params, second.params)
    np.testing.assert_array_equal(first.episode_ends, np.arange(4, 1000, 5))
    assert reports == [(1000, 1000)]
    values = network.apply(first.params, jnp.array([[0.0], [1.0]]))
    assert values.argmax(1).tolist() == [0, 1]


class OneStep(gymnasium.Env):
    """Episodes of one step with reward 1, which terminate or are truncated."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,))
    action_space = gymnasium.spaces.Discrete(1)

    def __init__(self, truncated):
        self.truncated = truncated

    def reset(self, *, seed=None, options=None):
        return np.ones(1, np.float32), {}

    def step(self, action):
        return np.ones(1, np.float32), 1.0, not self.truncated, self.truncated, {}


@pytest.mark.parametrize(("truncated", "expected"), [(False, 1.0), (True, 1 / (1 - 0.5))])
def test_targets_bootstrap_after_truncation_but_not_after_termination(truncated, expected):
    network = mlp((1, 50, 1), output_bias=True)
    config = DQNConfig(warm_up=50, target_update=10, discount=0.5)
    result = train(OneStep(truncated), network, optax.adam(3e-3), config, steps=800)
    assert network.apply(result.params, jnp.ones((1, 1))) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"action_space": gymnasium.spaces.Box(0, 1, (2,))}, "needs a Discrete action space"),
        ({"observation_space": gymnasium.spaces.Discrete(4)}, "FlattenObservation"),
        ({"action_space": gymnasium.spaces.Discrete(5)}, "build it with 1 inputs and 5 outputs"),
        (
            {"observation_space": gymnasium.spaces.Box(0, 1, (3,))},
            "build it with 3 inputs and 2 outputs",
        ),
    ],
)
def test_spaces_that_do_not_fit_are_rejected(change, message):
    env = Match()
    for name, value in change.items():
        setattr(env, name, value)
    with pytest.raises(ValueError, match=message):
        train(env, mlp((1, 4, 2)), optax.sgd(0.1), steps=1)


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        ([[np.nan]], "not finite"),
        ([[1e300]], "not finite in float32"),
        ([0, 1], "an observation of 2 numbers, but its observation space has 1"),
    ],
)
def test_observations_that_do_not_fit_are_rejected(observation, message):
    env = Match()
    env.observe = lambda: np.array(observation)
    with pytest.raises(ValueError, match=message):
        train(env, mlp((1, 4, 2)), optax.sgd(0.1), steps=1)


def test_rewards_that_are_not_finite_are_rejected():
    env = gymnasium.wrappers.TransformReward(Match(), lambda reward: np.nan)
    with pytest.raises(ValueError, match="the reward nan, which is not finite in float32"):
        train(env, mlp((1, 4, 2)), optax.sgd(0.1), steps=1)


@pytest.mark.parametrize("steps", [0, True])
def test_steps_must_be_a_positive_integer(steps):
    with pytest.raises(ValueError, match="steps must be an integer, 1 or more, got"):
        train(Match(), mlp((1, 4, 2)), optax.sgd(0.1), steps=steps)


def test_divergence_is_an_error():
    with pytest.raises(FloatingPointError, match="use a lower learning rate"):
        train(Match(), mlp((1, 4, 2)), optax.sgd(np.nan), DQNConfig(warm_up=1), steps=10)
