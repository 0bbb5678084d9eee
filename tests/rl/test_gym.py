"""The four environments as Gymnasium's, held to Gymnasium's own checks."""

import subprocess
import sys

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from elephant_nn.rl import TASKS, make_environment
from elephant_nn.rl.gym import NAMES, Game, Games

IDS = [f"elephant_nn/{name}" for name in NAMES]


@pytest.mark.parametrize("name", IDS)
def test_gymnasium_finds_them_and_finds_no_fault(name):
    check_env(gymnasium.make(name, render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_the_same_seed_gives_the_same_episode(name):
    def episode(seed):
        game = gymnasium.make(name)
        start = game.reset(seed=seed)[0]
        return np.array([start, *(game.step(step % 2)[0] for step in range(60))])

    np.testing.assert_array_equal(episode(3), episode(3))
    assert not np.array_equal(episode(3), episode(4))


@pytest.mark.parametrize("name", IDS)
def test_pictures_show_what_moves(name):
    game = gymnasium.make(name, render_mode="rgb_array")
    game.reset(seed=0)
    first = game.render()
    assert first.dtype == np.uint8
    assert len(np.unique(first.reshape(-1, 3), axis=0)) >= 3
    for _ in range(12):
        game.step(1)
    assert (game.render() != first).any(-1).mean() > 0.0005


@pytest.mark.parametrize("name", IDS)
def test_vectors_of_them_start_anew_by_themselves(name):
    games = gymnasium.make_vec(name, num_envs=5)
    seen, _ = games.reset(seed=1)
    assert games.observation_space.contains(seen)
    rng, ended, after_end = np.random.default_rng(0), 0, None
    for _ in range(600):
        seen, reward, terminated, truncated, _ = games.step(
            rng.integers(games.single_action_space.n, size=5)
        )
        assert games.observation_space.contains(seen)
        if after_end is not None:
            assert (reward[after_end] == 0).all()
            assert not (terminated | truncated)[after_end].any()
        after_end = terminated | truncated
        ended += after_end.sum()
    assert ended > 0 or "MountainCar" in name


def test_one_step_of_a_vector_is_that_of_the_function():
    environment = make_environment("catcher")
    games = gymnasium.make_vec("elephant_nn/Catcher-v0", num_envs=3)
    games.reset(seed=0)
    state = games.unwrapped._state
    seen, *_ = games.step([0, 1, 2])
    expected = jax.vmap(environment.step)(
        state, np.arange(3), jax.random.split(jax.random.key(0), 3)
    )
    np.testing.assert_allclose(seen[:, :2], expected.observation[:, :2], rtol=1e-6)


def test_a_window_opens(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    game = gymnasium.make("elephant_nn/Catcher-v0", render_mode="human")
    game.reset(seed=0)
    for _ in range(3):
        game.step(0)
    game.close()


def test_wrong_calls_say_how_to_put_them_right():
    game = gymnasium.make("elephant_nn/Catcher-v0").unwrapped
    with pytest.raises(gymnasium.error.ResetNeeded):
        game.step(0)
    game.reset(seed=0)
    with pytest.raises(ValueError, match="from 0 to 2, got 3"):
        game.step(3)
    with pytest.raises(ValueError, match="render_mode must be None"):
        Game("catcher", render_mode="ascii")
    with pytest.raises(ValueError, match="there is no task 'pong'; there are: mountain-car"):
        make_environment("pong")
    with pytest.raises(ValueError, match="mountain-car has no option truncating; it has: cap"):
        make_environment("mountain-car", truncating=True)
    with pytest.raises(ValueError, match="cap must be a whole number of steps, 1 or more, got 0"):
        make_environment("catcher", cap=0)
    assert len(TASKS) == 4


def test_seeds_of_a_vector_are_those_of_single_games():
    games = gymnasium.make_vec("elephant_nn/Acrobot-v0", num_envs=3)
    alone = gymnasium.make("elephant_nn/Acrobot-v0")
    starts = lambda seeds: np.stack([alone.reset(seed=seed)[0] for seed in seeds])
    np.testing.assert_array_equal(games.reset(seed=7)[0], starts([7, 8, 9]))
    np.testing.assert_array_equal(games.reset(seed=[5, 1, 5])[0], starts([5, 1, 5]))
    mixed, once_more = games.reset(seed=[5, None, 6])[0], games.reset()[0]
    assert len(np.unique(np.concatenate([mixed[:2], once_more]), axis=0)) == 5


def test_an_episode_of_a_vector_is_that_of_a_single_game():
    games = gymnasium.make_vec("elephant_nn/Pixelcopter-v0", num_envs=2)
    alone = gymnasium.make("elephant_nn/Pixelcopter-v0")
    many, one = games.reset(seed=np.array([4, 9]))[0], alone.reset(seed=9)[0]
    over, seen = False, 0
    for _ in range(500):
        np.testing.assert_allclose(many[1], one, rtol=1e-6, atol=1e-6)
        if over:
            break
        action = int(one[3] < one[2])
        one, *_, terminated, truncated, _ = alone.step(1 - action)
        many, *_ = games.step(np.array([0, 1 - action]))
        over, seen = terminated or truncated, seen + 1
    assert seen > 20


def test_vectors_refuse_other_calls():
    games = gymnasium.make_vec("elephant_nn/Acrobot-v0", num_envs=3)
    with pytest.raises(ValueError, match="3 environments, but 2 seeds"):
        games.reset(seed=[1, 2])
    with pytest.raises(ValueError, match="reset_mask is for environments that wait"):
        games.reset(options={"reset_mask": np.array([True, False, True])})


def test_processes_can_be_forked_for_them():
    # In a process of its own: here JAX has run, and what has run must not be forked.
    code = (
        "import gymnasium, elephant_nn.rl.gym\n"
        "games = gymnasium.make_vec('elephant_nn/Pixelcopter-v0', 2, 'async')\n"
        "assert games.reset(seed=0)[0].shape == (2, 7)\n"
        "games.close()\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=120)


def test_wrong_vectors_are_refused():
    with pytest.raises(ValueError, match="render_mode must be None or one of rgb_array"):
        Games("catcher", num_envs=2, render_mode="human")
    with pytest.raises(ValueError, match="num_envs must be a whole number, 1 or more, got 0"):
        Games("catcher", num_envs=0)
    games = Games("catcher", num_envs=3)
    games.reset(seed=0)
    with pytest.raises(ValueError, match="3 whole numbers from 0 to 2"):
        games.step([0.9, 1.7, 2.2])


def test_options_reach_the_environment():
    game = gymnasium.make("elephant_nn/Catcher-v0", cap=5, truncating=True)
    game.reset(seed=0)
    assert [game.step(2)[3] for _ in range(5)] == [False] * 4 + [True]
