"""DQN (Mnih et al. 2015) as pure functions of one state, to be compiled and mapped over lanes."""

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from elephant_nn.nn.networks import Network, Params
from elephant_nn.rl import is_whole
from elephant_nn.rl.envs.environment import Environment, whole
from elephant_nn.rl.replay import Replay, empty_replay, recall, remember


@dataclass(frozen=True)
class Dqn:
    """Settings of the agent; the defaults are the paper's.

    Attributes:
        buffer: how many transitions are remembered.
        batch: transitions of one update, drawn with replacement.
        updates: gradient steps on the same transitions a step (the paper's E).
        warm_up: learning begins after this many steps, and exploration falls over them.
        copy_every: the target network is copied whenever the step is a multiple of this.
        explore: share of random actions after the warm-up.
    """

    buffer: int = 32
    batch: int = 32
    updates: int = 1
    discount: float = 0.99
    warm_up: int = 1000
    copy_every: int = 100
    explore: float = 0.01

    def __post_init__(self) -> None:
        for name in ("buffer", "batch", "updates", "warm_up", "copy_every"):
            value = getattr(self, name)
            if not is_whole(value) or value < 1:
                raise ValueError(f"Dqn: {name} must be a whole number, 1 or more, got {value!r}")
        for name in ("discount", "explore"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real) or not 0 <= float(value) <= 1:
                raise ValueError(f"Dqn: {name} must be a number from 0 to 1, got {value!r}")


class Mind(NamedTuple):
    """What the agent knows: values, their optimiser's memory, the target, the transitions."""

    params: Params
    optimiser: Any
    target: Params
    replay: Replay


class Learning(NamedTuple):
    """DQN without its environment: three functions that any loop can call, compiled or not.

    `act(params, observation, time, draws)` is epsilon-greedy, by two uniform numbers;
    `experience(mind, row, time, draws)` remembers a transition and learns from the memory, by as
    many uniform numbers as a batch has; `init(key)` is a mind that knows nothing.
    """

    init: Callable[[Key[Array, ""]], Mind]
    act: Callable[[Params, Array, Array, Array], Int[Array, ""]]
    experience: Callable[[Mind, Array, Array, Array], Mind]


def q_learning(
    size: int,
    actions: int,
    network: Network,
    optimiser: optax.GradientTransformation,
    settings: Dqn = Dqn(),  # noqa: B008
) -> Learning:
    """Q-learning with replay and a target network, epsilon-greedy, on squared TD errors.

    Targets are masked where an episode terminated; a truncated one is continued by its value. The
    exploration falls from 1 to `explore` over the first `warm_up` steps.
    """
    if not isinstance(settings, Dqn):
        raise TypeError(f"settings must be a Dqn, such as Dqn(buffer=32), got {settings!r}")
    check_fit(network, size, actions)

    def init(key: Array) -> Mind:
        params = network.init(key)
        target = jax.tree.map(jnp.copy, params)
        replay = empty_replay(settings.buffer, 2 * size + 3)
        return Mind(params, optimiser.init(params), target, replay)

    def act(params: Params, observation: Array, time: Array, draws: Array) -> Array:
        values = network.apply(params, observation[None])[0]
        random = jnp.maximum(1 - (1 - settings.explore) * time / settings.warm_up, settings.explore)
        greedy = jnp.argmax(values).astype(jnp.int32)
        return jnp.where(draws[0] < random, whole(draws[1], actions), greedy)

    def loss(params: Params, rows: Array, goals: Array) -> Array:
        values = network.apply(params, rows[:, :size])
        taken = jax.nn.one_hot(rows[:, size].astype(jnp.int32), actions)
        return jnp.mean((jnp.sum(values * taken, 1) - goals) ** 2)

    def learn(params: Params, memory: Any, target: Params, rows: Array) -> tuple[Params, Any]:
        ahead = network.apply(target, rows[:, size + 3 :]).max(1)
        goals = rows[:, size + 1] + settings.discount * rows[:, size + 2] * ahead

        def update(_: Array, carry: tuple[Params, Any]) -> tuple[Params, Any]:
            params, memory = carry
            change, memory = optimiser.update(jax.grad(loss)(params, rows, goals), memory, params)
            return optax.apply_updates(params, change), memory

        if settings.updates == 1:
            return update(jnp.int32(0), (params, memory))
        return jax.lax.fori_loop(0, settings.updates, update, (params, memory))

    def experience(mind: Mind, row: Array, time: Array, draws: Array) -> Mind:
        replay = remember(mind.replay, row)
        rows = recall(replay, draws)  # not inside the cond, which would copy the whole buffer
        learning = time > settings.warm_up
        params, memory = jax.lax.cond(
            learning,
            lambda: learn(mind.params, mind.optimiser, mind.target, rows),
            lambda: (mind.params, mind.optimiser),
        )
        copy = learning & (time % settings.copy_every == 0)
        target = jax.tree.map(lambda new, old: jnp.where(copy, new, old), params, mind.target)
        return Mind(params, memory, target, replay)

    return Learning(init, act, experience)


def check_fit(network: Network, size: int, actions: int) -> None:
    """A network must take an observation's numbers and give a value for every action."""
    needed = f"it needs {size} inputs and {actions} outputs"
    try:
        values = jax.eval_shape(
            lambda key, x: network.apply(network.init(key), x),
            jax.random.key(0),
            jax.ShapeDtypeStruct((1, size), jnp.float32),
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"the network does not take {size} numbers: {needed} ({error})") from error
    if values.shape != (1, actions):
        raise ValueError(
            f"the network makes {values.shape[1:]} values of {size} numbers, but there are "
            f"{actions} actions: {needed}"
        )


def transition_row(
    observation: Array, action: Array, reward: Array, terminated: Array, after: Array
) -> Float[Array, " width"]:
    """A transition as one row of the memory."""
    facts = jnp.stack([action.astype(jnp.float32), reward, 1.0 - terminated])
    return jnp.concatenate([observation, facts, after])


class DqnState(NamedTuple):
    mind: Mind
    environment: Any
    observation: Float[Array, " size"]
    earned: Float[Array, ""]


class Agent(NamedTuple):
    """`init(key)`, and `train(state, key, start, steps)`: the state after some steps, and returns.

    `returns` has a number for every step: the return of the episode that ended there, else NaN.
    """

    init: Callable[[Key[Array, ""]], DqnState]
    train: Callable[[DqnState, Key[Array, ""], Int[Array, ""], int], tuple[DqnState, Array]]


def dqn(
    environment: Environment,
    network: Network,
    optimiser: optax.GradientTransformation,
    settings: Dqn = Dqn(),  # noqa: B008
) -> Agent:
    """An agent of `q_learning` in one of our environments, the whole life as one program."""
    learning = q_learning(environment.size, environment.actions, network, optimiser, settings)

    def init(key: Array) -> DqnState:
        init_key, reset_key = jax.random.split(key)
        start = environment.reset(reset_key)
        return DqnState(learning.init(init_key), start, environment.observe(start), jnp.float32(0))

    draws_of = (2, environment.step_draws, environment.reset_draws, settings.batch)

    def step(state: DqnState, moment: tuple[Array, Array]) -> tuple[DqnState, Array]:
        time, draws = moment
        choice, chance, fresh, sample = jnp.split(draws, _ends(draws_of))
        action = learning.act(state.mind.params, state.observation, time, choice)
        after = environment.advance(state.environment, action, chance)
        row = transition_row(
            state.observation, action, after.reward, after.terminated, after.observation
        )
        mind = learning.experience(state.mind, row, time, sample)
        over = after.terminated | after.truncated
        start = environment.begin(fresh)
        pick = lambda new, old: jnp.where(over, new, old)
        earned = state.earned + after.reward
        new = DqnState(
            mind,
            jax.tree.map(pick, start, after.state),
            pick(environment.observe(start), after.observation),
            pick(jnp.float32(0), earned),
        )
        return new, jnp.where(over, earned, jnp.nan)

    def train(state: DqnState, key: Array, start: Array, steps: int) -> tuple[DqnState, Array]:
        # All chances of a stretch at once: drawn step by step they would cost as much as learning.
        draws = jax.random.uniform(key, (steps, sum(draws_of)))
        return jax.lax.scan(step, state, (start + jnp.arange(steps), draws))

    return Agent(init, train)


def _ends(lengths: tuple[int, ...]) -> list[int]:
    return [sum(lengths[: i + 1]) for i in range(len(lengths) - 1)]
