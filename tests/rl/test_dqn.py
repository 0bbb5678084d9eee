"""The replay buffer by its properties; DQN on probe environments with known values."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings, strategies as st

from elephant_nn.nn.networks import emlp, mlp
from elephant_nn.rl.dqn import DQNConfig, dqn
from elephant_nn.rl.envs.control import mountain_car
from elephant_nn.rl.envs.environment import Environment, Transition
from elephant_nn.rl.replay import add, empty_buffer, sample

KEY = jax.random.key(0)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 9), st.integers(1, 30))
def test_the_buffer_holds_the_newest_rows(capacity, written):
    buffer = empty_buffer(capacity, 2)
    for i in range(1, written + 1):
        buffer = add(buffer, jnp.array([i, -i], jnp.float32))
    newest = range(max(1, written - capacity + 1), written + 1)
    rows = sample(buffer, jnp.linspace(0, 1, 200, endpoint=False))
    assert {int(i) for i in rows[:, 0]} == set(newest)  # all of them, and no unwritten row
    np.testing.assert_array_equal(rows[:, 0], -rows[:, 1])
    assert sample(buffer, jnp.ones(1))[0, 0] in newest  # a number that was rounded up to 1


def test_sampling_is_uniform_with_replacement():
    buffer = empty_buffer(50, 1)
    for i in range(5):
        buffer = add(buffer, jnp.array([i], jnp.float32))
    rows = sample(buffer, jax.random.uniform(KEY, (10000,)))[:, 0]
    counts = np.bincount(np.asarray(rows, int), minlength=5)
    assert len(counts) == 5
    assert np.abs(counts - 2000).max() < 150
    assert len(sample(buffer, jnp.zeros(32))) == 32  # more than there are rows


def test_a_buffer_without_capacity_is_rejected():
    with pytest.raises(ValueError, match="capacity must be 1 or more, got 0"):
        empty_buffer(0, 3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("updates", 0),
        ("batch_size", 0),
        ("target_update", 0),
        ("warm_up", 0),
        ("buffer_size", -1),
        ("discount", 9.0),
        ("epsilon", -3.0),
    ],
)
def test_config_values_out_of_range_are_rejected(name, value):
    with pytest.raises(ValueError, match=f"DQNConfig: {name} must be .*, got {value}"):
        DQNConfig(**{name: value})


def test_a_network_of_the_wrong_size_is_rejected():
    advice = "build it with 2 inputs and 3 outputs"
    with pytest.raises(ValueError, match=rf"shape \(5,\) per observation.* {advice}"):
        dqn(mountain_car(), mlp((2, 5, 5)), optax.sgd(0.1))
    with pytest.raises(ValueError, match=f"does not accept observations of 2 numbers; {advice}"):
        dqn(mountain_car(), mlp((4, 5, 3)), optax.sgd(0.1))


# Probe environments, whose values are known.


def probe(advance, observe, actions=1, random_start=False):
    """The state is one number; `advance(state, action)` returns the fields of a transition."""

    def step(state, action, uniforms):
        new, reward, terminated, truncated = advance(state, action)
        new = jnp.float32(new)
        return Transition(
            new, observe(new), jnp.float32(reward), jnp.array(terminated), jnp.array(truncated)
        )

    return Environment(
        name="probe",
        start=lambda u: jnp.floor(2 * u[0]) if random_start else 0 * u[0],
        advance=step,
        observe=observe,
        actions=actions,
        size=1,
        max_steps=9,
        reset_uniforms=1,
        step_uniforms=1,
        bounds=((-1.0,), (1.0,)),
        render=lambda state: None,
    )


ONE = lambda state: jnp.ones(1)
SIGN = lambda state: jnp.stack([2 * state - 1])
QUICK = DQNConfig(buffer_size=200, warm_up=50, target_update=10, epsilon=0.5)


def learned_values(environment, network, observations, config=QUICK):
    agent = dqn(environment, network, optax.adam(3e-3), config)
    train = jax.jit(partial(agent.train, steps=1500))
    state, returns = train(agent.init(KEY), KEY, jnp.int32(0))
    return np.asarray(network.apply(state.dqn.params, jnp.array(observations))), returns


def small_mlp(actions):
    return mlp((1, 50, actions), output_bias=True)


NETWORKS = [small_mlp(1), emlp((1, 50, 1), a=1.0, sigma_bias=1.0, output_bias=True)]


@pytest.mark.parametrize("network", NETWORKS, ids=["mlp", "emlp"])
def test_value_of_a_constant_reward(network):
    advance = lambda state, action: (state, 1.0, True, False)
    values, returns = learned_values(probe(advance, ONE), network, [[1.0]])
    assert values == pytest.approx(1.0, abs=0.05)
    assert (returns == 1).all()


@pytest.mark.parametrize("network", NETWORKS, ids=["mlp", "emlp"])
def test_value_depends_on_the_observation(network):
    advance = lambda state, action: (state, 2 * state - 1, True, False)
    environment = probe(advance, SIGN, random_start=True)
    values, _ = learned_values(environment, network, [[-1.0], [1.0]])
    np.testing.assert_allclose(values[:, 0], [-1, 1], atol=0.1)


def test_value_of_a_reward_two_steps_ahead():
    advance = lambda state, action: (1.0, state, state > 0.5, False)
    values, returns = learned_values(probe(advance, SIGN), small_mlp(1), [[-1.0], [1]])
    np.testing.assert_allclose(values[:, 0], [0.99, 1.0], atol=0.1)
    assert np.isnan(returns[::2]).all()
    assert (returns[1::2] == 1).all()


def test_the_better_action_has_the_higher_value():
    advance = lambda state, action: (state, jnp.where(action == 1, 1.0, -1.0), True, False)
    values, returns = learned_values(probe(advance, ONE, actions=2), small_mlp(2), [[1.0]])
    np.testing.assert_allclose(values[0], [-1, 1], atol=0.1)
    assert 0.6 < float(jnp.mean(returns[500:] == 1)) < 0.9  # half of the actions are random


@pytest.mark.parametrize(("truncated", "expected"), [(False, 1.0), (True, 1 / (1 - 0.5))])
def test_targets_bootstrap_after_truncation_but_not_after_termination(truncated, expected):
    advance = lambda state, action: (state, 1.0, not truncated, truncated)
    config = DQNConfig(buffer_size=200, warm_up=50, target_update=10, discount=0.5)
    values, returns = learned_values(probe(advance, ONE), small_mlp(1), [[1.0]], config)
    assert values == pytest.approx(expected, abs=0.1)
    assert (returns == 1).all()


# Details of the algorithm


def one_step(config, step):
    network = mlp((2, 20, 3), output_bias=True)
    agent = dqn(mountain_car(), network, optax.sgd(0.1), config)
    before = agent.init(KEY)
    after, _ = agent.train(before, KEY, jnp.int32(step), 1)
    return before.dqn, after.dqn


def differ(before, after):
    leaves = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return any(not np.array_equal(a, b) for a, b in leaves)


@pytest.mark.parametrize(
    ("step", "learns", "copies"), [(1000, False, False), (1001, True, False), (1100, True, True)]
)
def test_learning_starts_after_the_warm_up_and_the_target_is_copied_periodically(
    step, learns, copies
):
    before, after = one_step(DQNConfig(), step)
    assert differ(before.params, after.params) == learns
    assert differ(before.target, after.target) == copies
    if copies:
        assert not differ(after.params, after.target)


def test_an_update_follows_the_gradient_of_the_squared_td_error():
    before, after = one_step(DQNConfig(updates=2), 1001)
    network = mlp((2, 20, 3), output_bias=True)
    row = after.buffer.rows[0]
    observation, action, reward, mask, following = row[:2], int(row[2]), row[3], row[4], row[5:]
    target = reward + 0.99 * mask * network.apply(before.target, following[None]).max()
    params = before.params
    for _ in range(2):
        loss = lambda p: (network.apply(p, observation[None])[0, action] - target) ** 2
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6), params, after.params)


def test_epsilon_falls_over_the_warm_up():
    advance = lambda state, action: (state, action.astype(jnp.float32), True, False)
    environment = probe(advance, ONE, actions=4)
    agent = dqn(environment, small_mlp(4), optax.sgd(0.0), DQNConfig())
    _, returns = agent.train(agent.init(KEY), KEY, jnp.int32(0), 3000)
    greedy = int(np.bincount(np.asarray(returns[2000:], int)).argmax())
    share = lambda part: float(jnp.mean(part != greedy))
    assert share(returns[:100]) > 0.6  # three quarters of the random actions are not greedy
    assert 0.25 < share(returns[400:600]) < 0.5
    assert share(returns[1000:]) < 0.02


def test_jit_does_not_change_a_run():
    agent = dqn(mountain_car(), mlp((2, 20, 3)), optax.rmsprop(1e-3), DQNConfig(warm_up=20))
    state, keys = agent.init(KEY), jax.random.split(jax.random.key(1), 2)

    def run(train):
        middle, _ = train(state, keys[0], jnp.int32(0), 50)
        return train(middle, keys[1], jnp.int32(50), 50)[0]

    plain, compiled = run(agent.train), run(jax.jit(agent.train, static_argnums=3))
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), plain, compiled)
