"""The four environments: against Gymnasium, golden traces, the laws that follow from the rules."""

import math

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from elephant_nn.rl.envs.catcher import CatcherState, catcher
from elephant_nn.rl.envs.control import AcrobotState, MountainCarState, acrobot, mountain_car
from elephant_nn.rl.envs.pixelcopter import Block, cave, pixelcopter

KEY = jax.random.key(0)
ENVIRONMENTS = {
    "mountain-car": mountain_car,
    "acrobot": acrobot,
    "catcher": catcher,
    "pixelcopter": pixelcopter,
}


def i32(value):
    return jnp.int32(value)


def rollout(environment, state, actions, key=KEY):
    """States, observations, rewards, terminated, truncated after each action; ends do not stop."""

    def one(state, pair):
        transition = environment.step(state, *pair)
        return transition.state, transition

    keys = jax.random.split(key, len(actions))
    return jax.jit(lambda: jax.lax.scan(one, state, (jnp.asarray(actions), keys))[1])()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments_are_what_they_say(name):
    environment = ENVIRONMENTS[name]()
    keys = jax.random.split(KEY, 64)
    states = jax.vmap(environment.reset)(keys)
    low, high = map(np.array, environment.bounds)

    def one(states, k):
        action = jax.random.randint(k, (64,), 0, environment.actions)
        step = jax.vmap(environment.step)(states, action, jax.random.split(k, 64))
        fresh = jax.vmap(environment.reset)(jax.random.split(k, 64))
        over = step.terminated | step.truncated
        pick = lambda new, old: jnp.where(over.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        return jax.tree.map(pick, fresh, step.state), step

    _, steps = jax.lax.scan(one, states, jax.random.split(KEY, 300))
    assert steps.observation.shape == (300, 64, environment.size)
    assert steps.observation.dtype == jnp.float32
    assert (steps.observation >= low - 1e-5).all()
    assert (steps.observation <= high + 1e-5).all()
    assert not (steps.terminated & steps.truncated).any()


@pytest.mark.parametrize(("name", "cap"), [("mountain-car", 7), ("catcher", 9)])
def test_time_is_up_at_the_cap_and_not_before(name, cap):
    environment = ENVIRONMENTS[name](cap)
    steps = rollout(environment, environment.reset(KEY), np.zeros(cap, int))
    assert steps.truncated.tolist() == [False] * (cap - 1) + [True]


# MountainCar and Acrobot are Gymnasium's


def swing(position, velocity):
    return 2 if velocity >= 0 else 0


def energetic(angles, speeds):
    return 2 if speeds[0] < 0 else 0


@pytest.mark.parametrize("learned", [False, True])
def test_mountain_car_is_gymnasiums(learned):
    ours, theirs = mountain_car(), gymnasium.make("MountainCar-v0").unwrapped
    rng, ends = np.random.default_rng(1), 0
    step = jax.jit(ours.step)
    theirs.reset(seed=0)
    for _ in range(1500):
        state = MountainCarState(*map(jnp.float32, theirs.state), i32(0))
        action = swing(*theirs.state) if learned else int(rng.integers(3))
        seen, reward, over, _, _ = theirs.step(action)
        found = step(state, i32(action), KEY)
        np.testing.assert_allclose(found.observation, seen, atol=2e-7, rtol=1e-6)
        assert (float(found.reward), bool(found.terminated)) == (reward, over)
        if over:
            ends += 1
            theirs.reset()
    assert ends > 5 or not learned


@pytest.mark.parametrize("learned", [False, True])
def test_acrobot_is_gymnasiums(learned):
    ours, theirs = acrobot(), gymnasium.make("Acrobot-v1").unwrapped
    rng, ends = np.random.default_rng(1), 0
    step = jax.jit(ours.step)
    theirs.reset(seed=0)
    for _ in range(1500):
        angles, speeds = theirs.state[:2], theirs.state[2:]
        state = AcrobotState(jnp.float32(angles), jnp.float32(speeds), i32(0))
        action = energetic(angles, speeds) if learned else int(rng.integers(3))
        seen, reward, over, _, _ = theirs.step(action)
        found = step(state, i32(action), KEY)
        np.testing.assert_allclose(found.observation, seen, atol=2e-5, rtol=1e-5)
        assert (float(found.reward), bool(found.terminated)) == (reward, over)
        if over:
            ends += 1
            theirs.reset()
    assert ends > 5 or not learned


@pytest.mark.parametrize(
    ("ours", "theirs", "steps"),
    [(mountain_car, "MountainCar-v0", 900), (acrobot, "Acrobot-v1", 30)],
)
def test_whole_trajectories_agree(ours, theirs, steps):
    """From the same start with the same actions; Acrobot is chaotic, so not for long."""
    game = gymnasium.make(theirs).unwrapped
    game.reset(seed=3)
    start = np.array(game.state, np.float32)
    state = (
        MountainCarState(start[0], start[1], i32(0))
        if theirs.startswith("M")
        else AcrobotState(jnp.array(start[:2]), jnp.array(start[2:]), i32(0))
    )
    actions = np.random.default_rng(0).integers(0, 3, steps)
    seen = np.array([game.step(int(a))[0] for a in actions])
    state = jax.tree.map(jnp.asarray, state)
    np.testing.assert_allclose(rollout(ours(), state, actions).observation, seen, atol=1e-3)


def test_starts_are_spread_as_gymnasiums_are():
    keys = jax.random.split(KEY, 2000)
    positions = jax.vmap(mountain_car().reset)(keys).position
    assert (-0.6 <= positions.min() < -0.599) and (-0.401 < positions.max() <= -0.4)
    arms = jax.vmap(acrobot().reset)(keys)
    both = jnp.concatenate([arms.angles, arms.speeds], axis=1)
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
def test_catching_needs_the_paddle_below(apart, caught):
    step = catcher().step(paddle(fruit=(26 + apart, 58)), i32(2), KEY)
    assert step.reward == caught


@pytest.mark.parametrize(("y", "caught"), [(55, 0), (56, 1), (61, 1), (62, 0)])
def test_catching_needs_the_fruit_at_the_paddle(y, caught):
    step = catcher().step(paddle(fruit=(26, y)), i32(2), KEY)
    assert step.reward == caught
    assert (step.state.fruit_y < 0) == bool(caught)  # a new one, already moved


def test_misses_cost_a_life_and_the_last_one_more():
    step = catcher().step(paddle(fruit=(50, 64)), i32(2), KEY)
    assert (float(step.reward), int(step.state.lives), bool(step.terminated)) == (-1.0, 2, False)
    step = catcher().step(paddle(fruit=(50, 64), lives=1), i32(2), KEY)
    assert (float(step.reward), int(step.state.lives), bool(step.terminated)) == (-6.0, 0, True)


def test_start_and_fall_by_mode():
    assert catcher().reset(KEY).x == 26
    assert catcher(truncating=True).reset(KEY).x == 25
    old = catcher(truncating=True).step(paddle(fruit=(20, -8)), i32(2), KEY)
    assert old.state.fruit_y == -5
    old = catcher(truncating=True).step(paddle(fruit=(20, 8)), i32(2), KEY)
    assert old.state.fruit_y == 10


def test_fruit_comes_from_twelve_columns_and_seven_heights():
    states = jax.vmap(catcher().reset)(jax.random.split(KEY, 3000))
    assert sorted(set(states.fruit_x.tolist())) == list(range(8, 53, 4))
    assert sorted(set(states.fruit_y.tolist())) == list(range(-28, -3, 4))
    counts = np.bincount(states.fruit_x // 4)[2:]
    assert counts.min() > 180  # 250 each, on average


def play_catcher(policy, steps, episodes, truncating=False):
    """Returns, lengths and whether they ended, of episodes with a policy of the state."""
    game = catcher(truncating=truncating)

    def play(key):
        def one(carry, k):
            state, total, length, over = carry
            step = game.step(state, policy(state), k)
            keep = lambda new, old: jnp.where(over, old, new)
            return (
                jax.tree.map(keep, step.state, state),
                total + ~over * step.reward,
                length + ~over,
                over | step.terminated,
            ), None

        carry = (game.reset(key), jnp.float32(0), i32(0), jnp.array(False))
        return jax.lax.scan(one, carry, jax.random.split(key, steps))[0][1:]

    found = jax.jit(jax.vmap(play))(jax.random.split(KEY, episodes))
    return tuple(map(np.asarray, found))


@pytest.mark.parametrize(
    ("truncating", "longest", "parities"), [(False, 139, {1}), (True, 127, {0, 1})]
)
def test_episodes_without_a_catch_have_the_lengths_that_the_rules_predict(
    truncating, longest, parities
):
    """Three drops of (64 + |y|) / 2 ticks and one tick: odd, from 103 to 139, 121 on average.

    Where numbers are cut off, fruit falls faster above the picture: 103 to 127, even ones too.
    """
    away = lambda state: jnp.where(state.fruit_x > 26, 0, 1)
    totals, lengths, over = play_catcher(away, 150, 600, truncating)
    losers = lengths[over & (totals == -8)]
    assert len(losers) > 100
    assert set((losers % 2).tolist()) == parities
    assert losers.min() >= 103
    assert losers.max() <= longest
    if not truncating:
        assert abs(losers.mean() - 121) < 2


@pytest.mark.parametrize(("truncating", "best"), [(False, 55.05), (True, 58.9)])
def test_good_play_earns_what_the_rules_allow(truncating, best):
    """Fruit falls at its own pace, so 2,000 steps bring about 55 of it (59 where it is cut off)."""

    def chase(state):
        ahead = state.fruit_x - (state.x + 9 * state.velocity)  # where friction would leave it
        return jnp.where(ahead < -2, 0, jnp.where(ahead > 2, 1, 2))

    totals, lengths, over = play_catcher(chase, 2000, 50, truncating)
    assert not over.any()
    assert abs(totals.mean() - best) < 0.6
    assert (lengths == 2000).all()


# Pixelcopter


def flat(block=(48, 30), y=24.0):
    """The start of the golden trace: a state, and an environment whose cave is level."""
    state = pixelcopter().reset(KEY)
    return state._replace(y=jnp.float32(y), block=Block(*map(i32, (*block, 0))))


def test_pixelcopter_golden_trace(monkeypatch):
    import elephant_nn.rl.envs.pixelcopter as module

    monkeypatch.setattr(module.jnp, "sin", lambda x: 0.0 * x)  # every middle at 24
    level = pixelcopter()
    actions = [1] * 6 + [0]
    steps = rollout(level, flat(), actions)
    y = [24.057024, 24.170502, 24.339869, 24.564566, 24.84404, 25.177744, 24.953711]
    p = [0.057024, 0.113478, 0.169367, 0.224697, 0.279474, 0.333704, -0.224033]
    np.testing.assert_allclose(steps.observation[:, 0], y, atol=1e-5)
    np.testing.assert_allclose(steps.observation[:, 1], p, atol=1e-5)
    np.testing.assert_allclose(steps.observation[:2, 4], [31.36, 30.72], atol=1e-5)
    np.testing.assert_allclose(steps.observation[:, 2], steps.observation[:, 0] - 12, atol=1e-5)
    hover = [1] * 9 + [0]  # ten ticks of -.56 and .0576 nearly cancel
    steps = rollout(level, flat(block=(48, 35), y=18.0), (hover * 6)[:54])
    rewarded = [tick + 1 for tick in np.flatnonzero(steps.reward == 1)]
    assert rewarded == [10, 16, 22, 29, 35, 41, 47, 50, 54]  # at 50 the block is left behind


class Copter:
    """The rules again, word for word, on lists and doubles; the chances are taken from ours."""

    def __init__(self, state, height, truncating):
        self.truncating, self.height = truncating, height
        self.y, self.p, self.t = 24.0, 0.0, 0
        self.blocks = [[float(state.block.born), int(state.block.y)]]
        self.columns, self.count = [], 0
        self.terrain(0)

    def terrain(self, start):
        for k in range(48):
            self.columns.append([float(start + 2 + 4 * k), self.height(self.count)])
            self.count += 1

    def whole(self, z):
        return int(z) if self.truncating else int(math.copysign(math.floor(abs(z) + 0.5), z))

    def under(self):
        return [c for c in self.columns if self.whole(c[0]) - 2 < 17 and self.whole(c[0]) + 2 > 15]

    def step(self, action, fresh):
        reward, lives = 0, 1
        self.p = 0.99 * (self.p + (-0.56 if action == 0 else 0.0576))
        self.y += self.p
        for thing in (*self.blocks, *self.columns):
            thing[0] -= 0.6400000000000001
        row = self.whole(self.y)
        for x, by in self.blocks:
            beside = self.whole(x) - 2 < 17 and self.whole(x) + 2 > 15
            lives -= beside and by - 4 < row + 1 and by + 5 > row - 1
        for _, middle in self.under():
            lives -= self.y - 2.4 <= middle - 12
            lives -= self.y >= middle + 12
        if self.blocks[0][0] <= 16 and len(self.blocks) == 1:
            reward += 1
            self.blocks.append(list(fresh))
        self.blocks = [block for block in self.blocks if block[0] > -4]
        before = len(self.columns)
        self.columns = [column for column in self.columns if column[0] > -4]
        reward += before - len(self.columns)
        lives -= (self.y < 6) + (self.y > 42)
        if len(self.columns) <= 13:
            self.terrain(48)
        middle = self.under()[0][1]
        nearest = min((b for b in self.blocks if b[0] > 16), key=lambda b: b[0])
        seen = (
            self.y, self.p, self.y - (middle - 12), middle + 12 - self.y,
            nearest[0] - 16, nearest[1], nearest[1] + 9,
        )  # fmt: skip
        return seen, reward - 5 * (lives <= 0), lives <= 0


SEE = jax.jit(
    jax.vmap(lambda state, t: pixelcopter().observe(state._replace(time=t)), in_axes=(None, 0))
)


def middles(state):
    """The middles of all columns, read off our own observations of a copter that never crashes."""
    scene = cave(500, False)
    found = {}
    seen = np.asarray(SEE(state, jnp.arange(501)))
    for tick in range(501):
        found[int(scene.under[tick, 0])] = round(float(seen[tick, 0] - seen[tick, 2])) + 12
    return found


@pytest.mark.parametrize("truncating", [False, True])
def test_pixelcopter_follows_the_rules_word_for_word(truncating):
    environment = pixelcopter(truncating=truncating)
    reset, observe, step = map(jax.jit, (environment.reset, environment.observe, environment.step))
    rng, lengths = np.random.default_rng(0), []
    for episode in range(12):
        key = jax.random.key(episode)
        state = reset(key)
        known = middles(state)
        game = Copter(state, lambda column, known=known: known.get(column, 24), truncating)
        for tick in range(500):
            key = jax.random.fold_in(key, tick)
            seen = np.asarray(observe(state))
            safe = 0 if float(seen[3] - seen[2]) < 0 else 1  # towards the middle
            action = safe if rng.random() < 0.9 else int(rng.integers(2))
            found = step(state, i32(action), key)
            fresh = (float(found.state.block.born), int(found.state.block.y))
            expected, reward, over = game.step(action, fresh)
            np.testing.assert_allclose(found.observation, expected, atol=2e-3)
            assert (float(found.reward), bool(found.terminated)) == (reward, over), tick
            state = found.state
            if over:
                break
        lengths.append(tick)
    assert max(lengths) > 100


def test_a_whole_flight_passes_79_columns():
    """With a block every 50 to 86 ticks that makes about 86 points."""
    scene = cave(500, False)
    assert scene.left.sum() == 79
    assert np.flatnonzero(scene.left)[:8].tolist() == [10, 16, 22, 29, 35, 41, 47, 54]
    gaps = np.diff(np.flatnonzero(scene.left))
    assert set(gaps.tolist()) == {3, 6, 7}  # 3 where a new batch begins


def test_the_cave_is_drawn_as_the_rules_say():
    observe = jax.jit(
        lambda key: (lambda s: (s.y - pixelcopter().observe(s)[2] + 12, s.block))(
            pixelcopter().reset(key)
        )
    )
    keys = jax.random.split(KEY, 3000)
    heights, blocks = jax.vmap(observe)(keys)
    assert sorted(set(blocks.born.tolist())) == list(range(48, 72))
    assert sorted(set(blocks.y.tolist())) == list(range(12, 36))
    wave, offset = np.random.default_rng(0).uniform((-0.01, 0), (0.01, 0.5), (200000, 2)).T
    expected = np.floor(24 + 6 * np.sin((4.5 / 48 + wave) * 14 + offset))
    for height in np.unique(expected):
        share = np.mean(np.round(np.asarray(heights)) == height)
        assert share == pytest.approx(np.mean(expected == height), abs=0.03)
