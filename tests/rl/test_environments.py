"""The four environments: compared with Gymnasium, golden traces and the rules of the games."""

import math

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elephant_nn.rl import TASKS, make_environment
from elephant_nn.rl.envs.catcher import CatcherState, catcher
from elephant_nn.rl.envs.control import AcrobotState, MountainCarState, acrobot, mountain_car
from elephant_nn.rl.envs.pixelcopter import Block, cave_schedule, pixelcopter

KEY = jax.random.key(0)


def i32(value):
    return jnp.int32(value)


def rollout(environment, state, actions, key=KEY):
    """The transition of each action, stacked. The ends of episodes are ignored."""

    def one_step(state, pair):
        transition = environment.step(state, *pair)
        return transition.state, transition

    keys = jax.random.split(key, len(actions))
    return jax.jit(lambda: jax.lax.scan(one_step, state, (jnp.asarray(actions), keys))[1])()


@pytest.mark.parametrize("task", TASKS)
def test_observations_have_the_declared_size_and_bounds(task):
    environment = make_environment(task)
    keys = jax.random.split(KEY, 64)
    states = jax.vmap(environment.reset)(keys)
    low, high = map(np.array, environment.bounds)

    def one_step(states, key):
        action = jax.random.randint(key, (64,), 0, environment.actions)
        after = jax.vmap(environment.step)(states, action, jax.random.split(key, 64))
        starts = jax.vmap(environment.reset)(jax.random.split(key, 64))
        done = after.terminated | after.truncated
        pick = lambda new, old: jnp.where(done.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        return jax.tree.map(pick, starts, after.state), after

    _, steps = jax.lax.scan(one_step, states, jax.random.split(KEY, 300))
    assert steps.observation.shape == (300, 64, environment.size)
    assert steps.observation.dtype == jnp.float32
    assert (steps.observation >= low - 1e-5).all()
    assert (steps.observation <= high + 1e-5).all()
    assert not (steps.terminated & steps.truncated).any()


@pytest.mark.parametrize(("task", "max_steps"), [("mountain-car", 7), ("catcher", 9)])
def test_episodes_are_truncated_after_max_steps(task, max_steps):
    environment = make_environment(task, max_steps=max_steps)
    steps = rollout(environment, environment.reset(KEY), np.zeros(max_steps, int))
    assert steps.truncated.tolist() == [False] * (max_steps - 1) + [True]


def test_make_environment_rejects_wrong_arguments():
    with pytest.raises(
        ValueError, match="unknown task 'pong'; choose one of mountain-car, acrobot"
    ):
        make_environment("pong")
    message = "mountain-car has no option truncate_pixels; its options are max_steps"
    with pytest.raises(ValueError, match=message):
        make_environment("mountain-car", truncate_pixels=True)
    with pytest.raises(ValueError, match="max_steps must be an integer, 1 or more, got 0"):
        make_environment("catcher", max_steps=0)


# MountainCar and Acrobot equal Gymnasium's.


def car_state(values):
    return MountainCarState(*map(jnp.float32, values), i32(0))


def arm_state(values):
    return AcrobotState(jnp.float32(values[:2]), jnp.float32(values[2:]), i32(0))


CONTROL = [
    pytest.param(
        mountain_car(),
        "MountainCar-v0",
        car_state,
        lambda state: 2 if state[1] >= 0 else 0,
        {"atol": 2e-7, "rtol": 1e-6},
        id="mountain-car",
    ),
    pytest.param(
        acrobot(),
        "Acrobot-v1",
        arm_state,
        lambda state: 2 if state[2] < 0 else 0,
        {"atol": 2e-5, "rtol": 1e-5},
        id="acrobot",
    ),
]


@pytest.mark.parametrize(("ours", "name", "as_state", "policy", "tolerance"), CONTROL)
@pytest.mark.parametrize("solving", [False, True])
def test_every_step_equals_gymnasiums(ours, name, as_state, policy, tolerance, solving):
    """With random actions, and with a policy that reaches the goal."""
    theirs = gymnasium.make(name).unwrapped
    rng, episodes = np.random.default_rng(1), 0
    step = jax.jit(ours.step)
    theirs.reset(seed=0)
    for _ in range(1500):
        state = as_state(theirs.state)
        action = policy(theirs.state) if solving else int(rng.integers(3))
        observation, reward, terminated, _, _ = theirs.step(action)
        after = step(state, i32(action), KEY)
        np.testing.assert_allclose(after.observation, observation, **tolerance)
        assert (float(after.reward), bool(after.terminated)) == (reward, terminated)
        if terminated:
            episodes += 1
            theirs.reset()
    assert episodes > 5 or not solving


@pytest.mark.parametrize(
    ("ours", "name", "as_state", "steps"),
    [
        (mountain_car(), "MountainCar-v0", car_state, 900),
        (acrobot(), "Acrobot-v1", arm_state, 30),  # chaotic, so not for long
    ],
    ids=["mountain-car", "acrobot"],
)
def test_trajectories_equal_gymnasiums(ours, name, as_state, steps):
    theirs = gymnasium.make(name).unwrapped
    theirs.reset(seed=3)
    state = as_state(np.array(theirs.state, np.float32))
    actions = np.random.default_rng(0).integers(0, 3, steps)
    expected = np.array([theirs.step(int(action))[0] for action in actions])
    np.testing.assert_allclose(rollout(ours, state, actions).observation, expected, atol=1e-3)


def test_initial_states_are_distributed_as_gymnasiums():
    keys = jax.random.split(KEY, 2000)
    positions = jax.vmap(mountain_car().reset)(keys).position
    assert (-0.6 <= positions.min() < -0.599) and (-0.401 < positions.max() <= -0.4)
    arms = jax.vmap(acrobot().reset)(keys)
    both = jnp.concatenate([arms.angles, arms.velocities], axis=1)
    assert (both.min(0) < -0.099).all()
    assert (both.max(0) > 0.099).all()
    assert np.abs(np.corrcoef(both.T) - np.eye(4)).max() < 0.1


# Catcher


def paddle(x=26, velocity=0.0, fruit=(20, -8), lives=3):
    return CatcherState(i32(x), jnp.float32(velocity), *map(i32, fruit), i32(lives), i32(0))


def test_catcher_golden_trace():
    actions = [0] * 6 + [2] * 4 + [1] * 12
    states = rollout(catcher(), paddle(), actions).state
    assert states.x.tolist() == [
        25, 23, 20, 16, 11, 5, 0, 0, 0, 0, 1, 3, 6, 10, 15, 21, 27, 34, 41, 49, 51, 51,
    ]  # fmt: skip
    left = [-1.2096, -2.29824, -3.278016, -4.159814, -4.953433, -5.66769]
    np.testing.assert_allclose(states.velocity[:6], left, rtol=1e-6)
    assert (states.velocity[6:10] == 0).all()
    right = [6.310521, 6.889069, 7.409762, 7.878386]
    np.testing.assert_allclose(states.velocity[16:20], right, rtol=1e-6)
    assert states.fruit_y.tolist() == list(range(-6, 38, 2))


@pytest.mark.parametrize(("apart", "caught"), [(-8, 0), (-7, 1), (8, 1), (9, 0)])
def test_a_fruit_is_caught_above_the_paddle(apart, caught):
    step = catcher().step(paddle(fruit=(26 + apart, 58)), i32(2), KEY)
    assert step.reward == caught


@pytest.mark.parametrize(("y", "caught"), [(55, 0), (56, 1), (61, 1), (62, 0)])
def test_a_fruit_is_caught_at_the_height_of_the_paddle(y, caught):
    step = catcher().step(paddle(fruit=(26, y)), i32(2), KEY)
    assert step.reward == caught
    assert (step.state.fruit_y < 0) == bool(caught)  # a new fruit, already moved


def test_a_miss_costs_a_life_and_the_last_life_costs_more():
    step = catcher().step(paddle(fruit=(50, 64)), i32(2), KEY)
    assert (float(step.reward), int(step.state.lives), bool(step.terminated)) == (-1.0, 2, False)
    step = catcher().step(paddle(fruit=(50, 64), lives=1), i32(2), KEY)
    assert (float(step.reward), int(step.state.lives), bool(step.terminated)) == (-6.0, 0, True)


def test_truncate_pixels_changes_start_and_fall():
    assert catcher().reset(KEY).x == 26
    old = catcher(truncate_pixels=True)
    assert old.reset(KEY).x == 25
    assert old.step(paddle(fruit=(20, -8)), i32(2), KEY).state.fruit_y == -5
    assert old.step(paddle(fruit=(20, 8)), i32(2), KEY).state.fruit_y == 10


def test_fruit_starts_in_twelve_columns_at_seven_heights():
    states = jax.vmap(catcher().reset)(jax.random.split(KEY, 3000))
    assert sorted(set(states.fruit_x.tolist())) == list(range(8, 53, 4))
    assert sorted(set(states.fruit_y.tolist())) == list(range(-28, -3, 4))
    counts = np.bincount(states.fruit_x // 4)[2:]
    assert counts.min() > 180  # 250 on average


def play_catcher(policy, steps, episodes, truncate_pixels=False):
    """Returns and lengths of episodes, and whether they terminated; `policy` sees the state."""
    environment = catcher(truncate_pixels=truncate_pixels)

    def play(key):
        def one_step(carry, key):
            state, total, length, done = carry
            after = environment.step(state, policy(state), key)
            keep = lambda new, old: jnp.where(done, old, new)
            return (
                jax.tree.map(keep, after.state, state),
                total + ~done * after.reward,
                length + ~done,
                done | after.terminated,
            ), None

        carry = (environment.reset(key), jnp.float32(0), i32(0), jnp.array(False))
        return jax.lax.scan(one_step, carry, jax.random.split(key, steps))[0][1:]

    return tuple(map(np.asarray, jax.jit(jax.vmap(play))(jax.random.split(KEY, episodes))))


@pytest.mark.parametrize(
    ("truncate_pixels", "longest", "parities"), [(False, 139, {1}), (True, 127, {0, 1})]
)
def test_episodes_without_a_catch_have_the_lengths_of_the_rules(truncate_pixels, longest, parities):
    """Three falls of (64 + |y|) / 2 steps and one step: odd, from 103 to 139, 121 on average.

    With truncated pixels fruit falls faster above the screen: 103 to 127, even or odd.
    """
    avoid = lambda state: jnp.where(state.fruit_x > 26, 0, 1)
    totals, lengths, terminated = play_catcher(avoid, 150, 600, truncate_pixels)
    lost = lengths[terminated & (totals == -8)]
    assert len(lost) > 100
    assert set((lost % 2).tolist()) == parities
    assert lost.min() >= 103
    assert lost.max() <= longest
    if not truncate_pixels:
        assert abs(lost.mean() - 121) < 2


@pytest.mark.parametrize(("truncate_pixels", "best"), [(False, 55.05), (True, 58.9)])
def test_good_play_has_the_best_return_of_the_rules(truncate_pixels, best):
    """Fruit falls at a fixed speed: about 55 per 2,000 steps, 59 with truncated pixels."""

    def chase(state):
        ahead = state.fruit_x - (state.x + 9 * state.velocity)  # where friction stops the paddle
        return jnp.where(ahead < -2, 0, jnp.where(ahead > 2, 1, 2))

    totals, lengths, terminated = play_catcher(chase, 2000, 50, truncate_pixels)
    assert not terminated.any()
    assert abs(totals.mean() - best) < 0.6
    assert (lengths == 2000).all()


# Pixelcopter


def copter(block=(48, 30), y=24.0):
    """The initial state of a golden trace."""
    state = pixelcopter().reset(KEY)
    return state._replace(y=jnp.float32(y), block=Block(*map(i32, (*block, 0))))


def test_pixelcopter_golden_trace(monkeypatch):
    import elephant_nn.rl.envs.pixelcopter as module

    monkeypatch.setattr(module.jnp, "sin", lambda x: 0.0 * x)  # a level cave, centred at 24
    level = pixelcopter()
    actions = [1] * 6 + [0]
    steps = rollout(level, copter(), actions)
    y = [24.057024, 24.170502, 24.339869, 24.564566, 24.84404, 25.177744, 24.953711]
    p = [0.057024, 0.113478, 0.169367, 0.224697, 0.279474, 0.333704, -0.224033]
    np.testing.assert_allclose(steps.observation[:, 0], y, atol=1e-5)
    np.testing.assert_allclose(steps.observation[:, 1], p, atol=1e-5)
    np.testing.assert_allclose(steps.observation[:2, 4], [31.36, 30.72], atol=1e-5)
    np.testing.assert_allclose(steps.observation[:, 2], steps.observation[:, 0] - 12, atol=1e-5)
    hover = [1] * 9 + [0]  # ten ticks of -.56 and .0576 nearly cancel
    steps = rollout(level, copter(block=(48, 35), y=18.0), (hover * 6)[:54])
    rewarded = [tick + 1 for tick in np.flatnonzero(steps.reward == 1)]
    assert rewarded == [10, 16, 22, 29, 35, 41, 47, 50, 54]  # at 50 the block is passed


@pytest.mark.parametrize(
    ("block_y", "y", "crashed"), [(29, 24, False), (29, 25, True), (20, 25, True), (20, 26, False)]
)
def test_a_block_reaches_four_pixels_up_and_five_down(block_y, y, crashed):
    """The copter, which is two pixels high, crashes from four rows above to five rows below."""
    state = copter(block=(48, block_y), y=y)._replace(momentum=jnp.float32(-0.0576))
    beside = state._replace(block=state.block._replace(age=i32(48)))
    after = pixelcopter().step(beside, i32(1), KEY)
    assert after.state.y == y
    assert bool(after.terminated) == crashed


class ReferenceCopter:
    """The rules of the original on lists and doubles; `centre(column)` is the cave's shape."""

    def __init__(self, state, centre, truncate):
        self.truncate, self.centre = truncate, centre
        self.y, self.momentum = 24.0, 0.0
        self.blocks = [[float(state.block.start_x), int(state.block.y)]]
        self.columns, self.count = [], 0
        self.add_columns(0)

    def add_columns(self, start):
        for k in range(48):
            self.columns.append([float(start + 2 + 4 * k), self.centre(self.count)])
            self.count += 1

    def pixel(self, x):
        return int(x) if self.truncate else int(math.copysign(math.floor(abs(x) + 0.5), x))

    def at_player(self, x):
        return self.pixel(x) - 2 < 17 and self.pixel(x) + 2 > 15

    def under(self):
        return [column for column in self.columns if self.at_player(column[0])]

    def step(self, action, new_block):
        reward, lives = 0, 1
        self.momentum = 0.99 * (self.momentum + (-0.56 if action == 0 else 0.0576))
        self.y += self.momentum
        for thing in (*self.blocks, *self.columns):
            thing[0] -= 0.6400000000000001
        row = self.pixel(self.y)
        for x, y in self.blocks:
            lives -= self.at_player(x) and y - 4 < row + 1 and y + 5 > row - 1
        for _, centre in self.under():
            lives -= self.y - 2.4 <= centre - 12
            lives -= self.y >= centre + 12
        if self.blocks[0][0] <= 16 and len(self.blocks) == 1:
            reward += 1
            self.blocks.append(list(new_block))
        self.blocks = [block for block in self.blocks if block[0] > -4]
        before = len(self.columns)
        self.columns = [column for column in self.columns if column[0] > -4]
        reward += before - len(self.columns)
        lives -= (self.y < 6) + (self.y > 42)
        if len(self.columns) <= 13:
            self.add_columns(48)
        centre = self.under()[0][1]
        x, y = min((b for b in self.blocks if b[0] > 16), key=lambda b: b[0])
        above, below = self.y - (centre - 12), centre + 12 - self.y
        observation = (self.y, self.momentum, above, below, x - 16, y, y + 9)
        return observation, reward - 5 * (lives <= 0), lives <= 0


OBSERVE_AT = jax.jit(
    jax.vmap(lambda state, t: pixelcopter().observe(state._replace(time=t)), in_axes=(None, 0))
)


def column_centres(state):
    """The cave's centre per column, taken from our own observations at every step."""
    cave = cave_schedule(500, False)
    seen = np.asarray(OBSERVE_AT(state, jnp.arange(501)))
    centres = np.round(seen[:, 0] - seen[:, 2]).astype(int) + 12
    return dict(zip(cave.under[:, 0].tolist(), centres.tolist(), strict=True))


@pytest.mark.parametrize("truncate_pixels", [False, True])
def test_pixelcopter_equals_the_reference(truncate_pixels):
    environment = pixelcopter(truncate_pixels=truncate_pixels)
    reset, observe, step = map(jax.jit, (environment.reset, environment.observe, environment.step))
    rng, lengths = np.random.default_rng(0), []
    for episode in range(12):
        key = jax.random.key(episode)
        state = reset(key)
        known = column_centres(state)
        centre = lambda column, known=known: known.get(column, 24)
        reference = ReferenceCopter(state, centre, truncate_pixels)
        for tick in range(500):
            key = jax.random.fold_in(key, tick)
            seen = np.asarray(observe(state))
            safe = 0 if float(seen[3] - seen[2]) < 0 else 1  # towards the centre
            action = safe if rng.random() < 0.9 else int(rng.integers(2))
            after = step(state, i32(action), key)
            new_block = (float(after.state.block.start_x), int(after.state.block.y))
            expected, reward, terminated = reference.step(action, new_block)
            np.testing.assert_allclose(after.observation, expected, atol=2e-3)
            assert (float(after.reward), bool(after.terminated)) == (reward, terminated), tick
            state = after.state
            if terminated:
                break
        lengths.append(tick)
    assert max(lengths) > 100


def test_a_full_episode_passes_79_columns():
    """With one block per 50 to 86 steps that gives a return of about 86."""
    exited = cave_schedule(500, False).exited
    assert exited.sum() == 79
    assert np.flatnonzero(exited)[:8].tolist() == [10, 16, 22, 29, 35, 41, 47, 54]
    gaps = np.diff(np.flatnonzero(exited))
    assert set(gaps.tolist()) == {3, 6, 7}  # 3 where a new batch starts


def test_caves_and_blocks_have_the_distribution_of_the_rules():
    environment = pixelcopter()

    def first_centre_and_block(key):
        state = environment.reset(key)
        return state.y - environment.observe(state)[2] + 12, state.block

    centres, blocks = jax.jit(jax.vmap(first_centre_and_block))(jax.random.split(KEY, 3000))
    assert sorted(set(blocks.start_x.tolist())) == list(range(48, 72))
    assert sorted(set(blocks.y.tolist())) == list(range(12, 36))
    wave, offset = np.random.default_rng(0).uniform((-0.01, 0), (0.01, 0.5), (200000, 2)).T
    expected = np.floor(24 + 6 * np.sin((4.5 / 48 + wave) * 14 + offset))
    for centre in np.unique(expected):
        share = np.mean(np.round(np.asarray(centres)) == centre)
        assert share == pytest.approx(np.mean(expected == centre), abs=0.03)
