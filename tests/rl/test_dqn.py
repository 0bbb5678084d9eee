"""Replay by its properties; DQN on probe environments whose right answers are known."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elephant_nn import emlp, mlp
from elephant_nn.rl.dqn import Dqn, dqn
from elephant_nn.rl.envs.control import mountain_car
from elephant_nn.rl.envs.environment import Environment, Transition
from elephant_nn.rl.replay import empty_replay, recall, remember

KEY = jax.random.key(0)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 9), st.integers(1, 30))
def test_replay_holds_the_newest_rows(capacity, written):
    replay = empty_replay(capacity, 2)
    for i in range(1, written + 1):
        replay = remember(replay, jnp.array([i, -i], jnp.float32))
    kept = range(max(1, written - capacity + 1), written + 1)
    found = recall(replay, jnp.linspace(0, 1, 200, endpoint=False))
    assert {int(i) for i in found[:, 0]} == set(kept)  # all of them, and never an unwritten one
    np.testing.assert_array_equal(found[:, 0], -found[:, 1])
    assert recall(replay, jnp.ones(1))[0, 0] in kept  # a draw that was rounded up to 1


def test_replay_is_uniform_with_replacement():
    replay = empty_replay(50, 1)
    for i in range(5):
        replay = remember(replay, jnp.array([i], jnp.float32))
    found = recall(replay, jax.random.uniform(KEY, (10000,)))[:, 0]
    counts = np.bincount(np.asarray(found, int), minlength=5)
    assert len(counts) == 5
    assert np.abs(counts - 2000).max() < 150
    assert len(recall(replay, jnp.zeros(32))) == 32  # more than there are rows


@pytest.mark.parametrize(
    "wrong",
    [
        {"updates": 0},
        {"batch": 0},
        {"copy_every": 0},
        {"warm_up": 0},
        {"buffer": -1},
        {"discount": 9.0},
        {"explore": -3.0},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"Dqn: {name} must be"):
        Dqn(**wrong)


def test_a_network_of_the_wrong_size_is_refused():
    with pytest.raises(ValueError, match="it needs 2 inputs and 3 outputs"):
        dqn(mountain_car(), mlp((2, 5, 5)), optax.sgd(0.1))
    with pytest.raises(ValueError, match="does not take 2 numbers: it needs 2 inputs and 3"):
        dqn(mountain_car(), mlp((4, 5, 3)), optax.sgd(0.1))


def test_a_replay_of_nothing_is_refused():
    with pytest.raises(ValueError, match="capacity must be 1 or more, got 0"):
        empty_replay(0, 3)


# Probe environments: what Q must become is known.


def probe(name, advance, observe, actions=1, size=1):
    """A state is one number; `advance(state, action, chance)` gives new, reward, over, late."""

    def step(state, action, draws):
        new, reward, over, late = advance(state, action, draws)
        new = jnp.float32(new)
        return Transition(new, observe(new), jnp.float32(reward), jnp.array(over), jnp.array(late))

    begin = lambda draws: jnp.floor(2 * draws[0]) if name == "seen" else 0 * draws[0]
    bounds = ((-1.0,) * size, (1.0,) * size)
    return Environment(
        name, begin, step, observe, actions, size, 9, 1, 1, bounds, lambda state: None
    )


ONE = lambda state: jnp.ones(1)
SIGN = lambda state: jnp.stack([2 * state - 1])
QUICK = Dqn(buffer=200, warm_up=50, copy_every=10, explore=0.5)


def values(environment, network, points, steps=1500, settings=QUICK):
    agent = dqn(environment, network, optax.adam(3e-3), settings)
    state = agent.init(KEY)
    state, returns = jax.jit(partial(agent.train, steps=steps))(state, KEY, jnp.int32(0))
    return np.asarray(network.apply(state.mind.params, jnp.array(points))), returns, state


NETWORKS = [
    pytest.param(lambda size, actions: mlp((size, 50, actions), output_bias=True), id="mlp"),
    pytest.param(
        lambda size, actions: emlp((size, 50, actions), a=1.0, sigma_bias=1.0, output_bias=True),
        id="emlp",
    ),
]


@pytest.mark.parametrize("network", NETWORKS)
def test_constant_reward(network):
    end = lambda state, action, draws: (state, 1.0, True, False)
    found, returns, _ = values(probe("one", end, ONE), network(1, 1), [[1.0]])
    assert found == pytest.approx(1.0, abs=0.05)
    assert (returns == 1).all()


@pytest.mark.parametrize("network", NETWORKS)
def test_reward_by_what_is_seen(network):
    end = lambda state, action, draws: (state, 2 * state - 1, True, False)
    found, _, _ = values(probe("seen", end, SIGN), network(1, 1), [[-1.0], [1.0]])
    np.testing.assert_allclose(found[:, 0], [-1, 1], atol=0.1)


def test_credit_over_two_steps():
    walk = lambda state, action, draws: (1.0, state, state > 0.5, False)
    found, returns, _ = values(probe("two", walk, SIGN), NETWORKS[0].values[0](1, 1), [[-1.0], [1]])
    np.testing.assert_allclose(found[:, 0], [0.99, 1.0], atol=0.1)
    assert np.isnan(returns[::2]).all()
    assert (returns[1::2] == 1).all()


def test_the_better_action_is_found():
    end = lambda state, action, draws: (state, jnp.where(action == 1, 1.0, -1.0), True, False)
    network = NETWORKS[0].values[0](1, 2)
    found, returns, _ = values(probe("act", end, ONE, actions=2), network, [[1.0]])
    np.testing.assert_allclose(found[0], [-1, 1], atol=0.1)
    assert 0.6 < float(jnp.mean(returns[500:] == 1)) < 0.9  # half of the actions are random


@pytest.mark.parametrize(("late", "expected"), [(False, 1.0), (True, 1 / (1 - 0.5))])
def test_what_was_cut_short_has_a_future_and_what_ended_has_none(late, expected):
    end = lambda state, action, draws: (state, 1.0, not late, late)
    settings = Dqn(buffer=200, warm_up=50, copy_every=10, discount=0.5)
    found, returns, _ = values(
        probe("end", end, ONE), NETWORKS[0].values[0](1, 1), [[1.0]], settings=settings
    )
    assert found == pytest.approx(expected, abs=0.1)
    assert (returns == 1).all()


# The agent's letter


def one_step(settings, time, seed=0):
    environment = mountain_car()
    network = mlp((2, 20, 3), output_bias=True)
    agent = dqn(environment, network, optax.sgd(0.1), settings)
    before = agent.init(jax.random.key(seed))
    after, _ = agent.train(before, KEY, jnp.int32(time), 1)
    return before, after


def moved(before, after):
    leaves = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return any(not np.array_equal(a, b) for a, b in leaves)


def test_learning_begins_after_the_warm_up_and_the_target_follows_in_steps():
    for time, learns, copies in ((1000, False, False), (1001, True, False), (1100, True, True)):
        before, after = one_step(Dqn(), time)
        assert moved(before.mind.params, after.mind.params) == learns
        assert moved(before.mind.target, after.mind.target) == copies
        if copies:
            assert not moved(after.mind.params, after.mind.target)


def test_an_update_is_the_gradient_of_the_squared_error():
    settings = Dqn(updates=2)
    before, after = one_step(settings, 1001)
    network = mlp((2, 20, 3), output_bias=True)
    row = after.mind.replay.rows[0]
    state, action, reward, mask, ahead = row[:2], int(row[2]), row[3], row[4], row[5:]
    goal = reward + 0.99 * mask * network.apply(before.mind.target, ahead[None]).max()
    params = before.mind.params
    for _ in range(2):
        loss = lambda p: (network.apply(p, state[None])[0, action] - goal) ** 2
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6), params, after.mind.params
    )


def test_exploration_falls_over_the_warm_up():
    end = lambda state, action, draws: (state, action.astype(jnp.float32), True, False)
    environment = probe("act", end, ONE, actions=4)
    network = mlp((1, 20, 4), output_bias=True)
    agent = dqn(environment, network, optax.sgd(0.0), Dqn())
    _, returns = agent.train(agent.init(KEY), KEY, jnp.int32(0), 3000)
    greedy = int(np.bincount(np.asarray(returns[2000:], int)).argmax())
    share = lambda part: float(jnp.mean(part != greedy))
    assert share(returns[:100]) > 0.6  # three quarters of the random actions are others
    assert 0.25 < share(returns[400:600]) < 0.5
    assert share(returns[1000:]) < 0.02


def test_compiled_and_not_it_is_the_same_run():
    agent = dqn(mountain_car(), mlp((2, 20, 3)), optax.rmsprop(1e-3), Dqn(warm_up=20))
    state, keys = agent.init(KEY), jax.random.split(jax.random.key(1), 2)
    one, _ = agent.train(state, keys[0], jnp.int32(0), 50)
    two, _ = agent.train(one, keys[1], jnp.int32(50), 50)
    again, _ = jax.jit(agent.train, static_argnums=3)(state, keys[0], jnp.int32(0), 50)
    again, _ = jax.jit(agent.train, static_argnums=3)(again, keys[1], jnp.int32(50), 50)
    for a, b in zip(jax.tree.leaves(two), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
