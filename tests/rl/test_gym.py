"""The four environments in Gymnasium, with Gymnasium's own checks."""

import subprocess
import sys

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from elephant_nn.rl import make_environment
from elephant_nn.rl.gym import IDS, ElephantEnv, ElephantVectorEnv


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_checker_accepts_them(name):
    check_env(gymnasium.make(name, render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_episodes_depend_only_on_the_seed(name):
    env = gymnasium.make(name)

    def episode(seed):
        start = env.reset(seed=seed)[0]
        return np.array([start, *(env.step(step % 2)[0] for step in range(60))])

    first = episode(3)
    assert not np.array_equal(first, episode(4))
    np.testing.assert_array_equal(first, episode(3))


@pytest.mark.parametrize("name", IDS)
def test_render_shows_motion(name):
    env = gymnasium.make(name, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert first.dtype == np.uint8
    assert len(np.unique(first.reshape(-1, 3), axis=0)) >= 3
    for _ in range(12):
        env.step(1)
    assert (env.render() != first).any(-1).mean() > 0.0005


@pytest.mark.parametrize("name", IDS)
def test_vector_environments_reset_automatically(name):
    envs = gymnasium.make_vec(name, num_envs=5)
    observations, _ = envs.reset(seed=1)
    assert envs.observation_space.contains(observations)
    rng, episodes, done = np.random.default_rng(0), 0, None
    for _ in range(600):
        observations, reward, terminated, truncated, _ = envs.step(
            rng.integers(envs.single_action_space.n, size=5)
        )
        assert envs.observation_space.contains(observations)
        if done is not None:
            assert (reward[done] == 0).all()
            assert not (terminated | truncated)[done].any()
        done = terminated | truncated
        episodes += done.sum()
    assert episodes > 0 or "MountainCar" in name


def test_a_vector_step_equals_the_vmapped_step():
    environment = make_environment("catcher")
    envs = gymnasium.make_vec("elephant_nn/Catcher-v0", num_envs=3)
    envs.reset(seed=0)
    state = envs.unwrapped._state
    observations, *_ = envs.step([0, 1, 2])
    expected = jax.vmap(environment.step)(
        state, np.arange(3), jax.random.split(jax.random.key(0), 3)
    )
    np.testing.assert_allclose(observations[:, :2], expected.observation[:, :2], rtol=1e-6)


def test_human_rendering(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gymnasium.make("elephant_nn/Catcher-v0", render_mode="human")
    env.reset(seed=0)
    for _ in range(3):
        env.step(0)
    env.close()


def test_wrong_calls_are_rejected():
    env = ElephantEnv("catcher")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="an integer from 0 to 2, got 3"):
        env.step(3)
    with pytest.raises(ValueError, match="render_mode must be None or one of rgb_array, human"):
        ElephantEnv("catcher", render_mode="ascii")


def test_wrong_vector_calls_are_rejected():
    with pytest.raises(ValueError, match="render_mode must be None or one of rgb_array"):
        ElephantVectorEnv("catcher", num_envs=2, render_mode="human")
    with pytest.raises(ValueError, match="num_envs must be an integer, 1 or more, got 0"):
        ElephantVectorEnv("catcher", num_envs=0)
    envs = ElephantVectorEnv("catcher", num_envs=3)
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step([0, 0, 0])
    with pytest.raises(ValueError, match="got 2 seeds for 3 sub-environments"):
        envs.reset(seed=[1, 2])
    with pytest.raises(ValueError, match="reset_mask is not supported"):
        envs.reset(options={"reset_mask": np.array([True, False, True])})
    envs.reset(seed=0)
    with pytest.raises(ValueError, match="3 integers from 0 to 2"):
        envs.step([0.9, 1.7, 2.2])


def test_vector_seeds_equal_those_of_single_environments():
    envs = gymnasium.make_vec("elephant_nn/Acrobot-v0", num_envs=3)
    env = gymnasium.make("elephant_nn/Acrobot-v0")
    starts = lambda seeds: np.stack([env.reset(seed=seed)[0] for seed in seeds])
    np.testing.assert_array_equal(envs.reset(seed=7)[0], starts([7, 8, 9]))
    np.testing.assert_array_equal(envs.reset(seed=[5, 1, 5])[0], starts([5, 1, 5]))
    mixed, unseeded = envs.reset(seed=[5, None, 6])[0], envs.reset()[0]
    assert len(np.unique(np.concatenate([mixed[:2], unseeded]), axis=0)) == 5


def test_vector_episodes_equal_those_of_single_environments():
    envs = gymnasium.make_vec("elephant_nn/Pixelcopter-v0", num_envs=2)
    env = gymnasium.make("elephant_nn/Pixelcopter-v0")
    many, one = envs.reset(seed=np.array([4, 9]))[0], env.reset(seed=9)[0]
    done, steps = False, 0
    for _ in range(500):
        np.testing.assert_allclose(many[1], one, rtol=1e-6, atol=1e-6)
        if done:
            break
        action = int(one[3] < one[2])
        one, *_, terminated, truncated, _ = env.step(1 - action)
        many, *_ = envs.step(np.array([0, 1 - action]))
        done, steps = terminated or truncated, steps + 1
    assert steps > 20


def test_options_reach_the_environment():
    env = gymnasium.make("elephant_nn/Catcher-v0", max_steps=5, truncate_pixels=True)
    env.reset(seed=0)
    assert [env.step(2)[3] for _ in range(5)] == [False] * 4 + [True]


def test_asynchronous_vectors_can_fork():
    # In a process of its own: in this one JAX has run, and such a process must not fork.
    code = (
        "import gymnasium, elephant_nn.rl.gym\n"
        "envs = gymnasium.make_vec('elephant_nn/Pixelcopter-v0', 2, 'async')\n"
        "assert envs.reset(seed=0)[0].shape == (2, 7)\n"
        "envs.close()\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("module", ["elephant_nn.rl.gym", "elephant_nn.rl.train"])
def test_without_gymnasium_the_import_says_what_to_install(module):
    code = f"import sys; sys.modules['gymnasium'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f'ImportError: {module} needs Gymnasium: pip install "elephant-nn[gym]"'
    )
