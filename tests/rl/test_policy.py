"""Greedy evaluation and recorded episodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from elephant_nn.nn.networks import Network, mlp
from elephant_nn.rl import make_environment
from elephant_nn.rl.policy import evaluate, record_episode, write_gif

PUMP = Network(
    init=lambda key: (),
    features=lambda params, x: x,
    head=lambda params, x: jnp.stack([-x[:, 1], 0 * x[:, 1] - 1, x[:, 1]], 1),
)
"""Pushes in the direction of motion, which solves MountainCar from every start."""


def test_returns_equal_those_of_a_manual_loop():
    environment = make_environment("mountain-car")
    key = jax.random.key(5)
    returns = evaluate(environment, PUMP, (), key, episodes=3)
    state = environment.reset(jax.random.split(jax.random.split(key, 3)[1])[0])
    steps, step = 0, jax.jit(environment.step)
    while True:
        steps += 1
        action = jnp.argmax(PUMP.apply((), environment.observe(state)[None])[0]).astype(jnp.int32)
        after = step(state, action, key)
        if after.terminated:
            break
        state = after.state
    assert returns[1] == -steps
    assert returns.shape == (3,)
    assert (returns > -250).all()


def test_a_recorded_episode_has_one_frame_per_state():
    environment = make_environment("mountain-car", max_steps=40)
    frames, episode_return = record_episode(environment, PUMP, (), jax.random.key(0))
    assert (len(frames), episode_return) == (41, -40)
    assert (frames[0] != frames[-1]).any()
    shorter, _ = record_episode(environment, PUMP, (), jax.random.key(0), frames=3)
    np.testing.assert_array_equal(shorter, frames[:3])


def test_write_gif(tmp_path):
    frames = [np.full((4, 6, 3), level, np.uint8) for level in (0, 100, 200)]
    with Image.open(write_gif(tmp_path / "episode.gif", frames, fps=20)) as gif:
        assert (gif.size, gif.n_frames) == ((6, 4), 3)
        assert gif.info["duration"] == 50


def test_write_gif_rejects_wrong_arguments(tmp_path):
    with pytest.raises(ValueError, match="frames is empty"):
        write_gif(tmp_path / "episode.gif", [])
    with pytest.raises(ValueError, match="fps must be above 0, got 0"):
        write_gif(tmp_path / "episode.gif", [np.zeros((2, 2, 3), np.uint8)], 0)


def test_evaluate_can_be_vmapped_over_agents():
    environment, key = make_environment("mountain-car", max_steps=50), jax.random.key(0)
    network = mlp((2, 4, 3))
    agents = jax.vmap(network.init)(jax.random.split(key, 3))
    returns = jax.vmap(lambda params: evaluate(environment, network, params, key, 2))(agents)
    assert returns.shape == (3, 2)


def test_networks_and_params_that_do_not_fit_are_rejected():
    environment, key = make_environment("mountain-car"), jax.random.key(0)
    larger = mlp((2, 4, 7))
    for run in (evaluate, record_episode):
        with pytest.raises(ValueError, match="build it with 2 inputs and 3 outputs"):
            run(environment, larger, larger.init(key), key)
    network = mlp((2, 4, 3))
    diverged = jax.tree.map(lambda leaf: leaf * jnp.nan, network.init(key))
    with pytest.raises(ValueError, match="training diverged"):
        evaluate(environment, network, diverged, key)


def test_counts_below_one_are_rejected():
    environment, key = make_environment("mountain-car"), jax.random.key(0)
    with pytest.raises(ValueError, match="episodes must be 1 or more, got 0"):
        evaluate(environment, PUMP, (), key, episodes=0)
    with pytest.raises(ValueError, match="frames must be 1 or more, got -5"):
        record_episode(environment, PUMP, (), key, frames=-5)
