"""Greedy play: returns and films."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elephant_nn.nn.networks import Network, mlp
from elephant_nn.rl import make_environment
from elephant_nn.rl.policy import evaluate, film, write_gif

PUMP = Network(
    init=lambda key: (),
    features=lambda params, x: x,
    head=lambda params, x: jnp.stack([-x[:, 1], 0 * x[:, 1] - 1, x[:, 1]], 1),
)
"""Always pushes where the car is going already: it reaches the flag from everywhere."""


def test_returns_are_those_of_stepping_by_hand():
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


def test_a_film_is_as_long_as_the_episode():
    environment = make_environment("mountain-car", cap=40)
    pictures, earned = film(environment, PUMP, (), jax.random.key(0))
    assert (len(pictures), earned) == (41, -40)
    assert (pictures[0] != pictures[-1]).any()
    shorter, _ = film(environment, PUMP, (), jax.random.key(0), frames=3)
    np.testing.assert_array_equal(shorter, pictures[:3])


def test_a_film_of_nothing_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no pictures"):
        write_gif(tmp_path / "film.gif", [])


def test_many_agents_play_side_by_side():
    environment, key = make_environment("mountain-car", cap=50), jax.random.key(0)
    network = mlp((2, 4, 3))
    agents = jax.vmap(network.init)(jax.random.split(key, 3))
    returns = jax.vmap(lambda params: evaluate(environment, network, params, key, 2))(agents)
    assert returns.shape == (3, 2)


def test_agents_that_cannot_play_are_refused(tmp_path):
    environment, key = make_environment("mountain-car"), jax.random.key(0)
    larger = mlp((2, 4, 7))
    for act in (evaluate, film):
        with pytest.raises(ValueError, match="it needs 2 inputs and 3 outputs"):
            act(environment, larger, larger.init(key), key)
    fitting = mlp((2, 4, 3))
    diverged = jax.tree.map(lambda leaf: leaf * jnp.nan, fitting.init(key))
    with pytest.raises(ValueError, match="its training diverged"):
        evaluate(environment, fitting, diverged, key)
    with pytest.raises(ValueError, match="episodes must be 1 or more, got 0"):
        evaluate(environment, PUMP, (), key, episodes=0)
    with pytest.raises(ValueError, match="frames must be 1 or more, got -5"):
        film(environment, PUMP, (), key, frames=-5)
    with pytest.raises(ValueError, match="frames_a_second must be above 0, got 0"):
        write_gif(tmp_path / "film.gif", [np.zeros((2, 2, 3), np.uint8)], 0)
