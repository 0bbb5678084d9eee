"""DQN (Mnih et al. 2015) as pure functions of a state, ready for `jax.jit` and `jax.vmap`."""

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
from elephant_nn.rl.envs.environment import Environment, uniform_to_int
from elephant_nn.rl.replay import ReplayBuffer, add, empty_buffer, sample


@dataclass(frozen=True)
class DQNConfig:
    """Hyperparameters of DQN. The defaults are the paper's.

    Attributes:
        buffer_size: capacity of the replay buffer, in transitions.
        batch_size: transitions per update, sampled with replacement.
        updates: gradient steps per environment step, all on the same batch (the paper's E).
        warm_up: learning starts after this many steps. Over them epsilon falls linearly from 1.
        target_update: steps between two copies to the target network.
        epsilon: probability of a random action after the warm-up.
    """

    buffer_size: int = 32
    batch_size: int = 32
    updates: int = 1
    discount: float = 0.99
    warm_up: int = 1000
    target_update: int = 100
    epsilon: float = 0.01

    def __post_init__(self) -> None:
        for name in ("buffer_size", "batch_size", "updates", "warm_up", "target_update"):
            value = getattr(self, name)
            if not is_whole(value) or value < 1:
                raise ValueError(f"DQNConfig: {name} must be an integer, 1 or more, got {value!r}")
        for name in ("discount", "epsilon"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real) or not 0 <= float(value) <= 1:
                raise ValueError(f"DQNConfig: {name} must be a number from 0 to 1, got {value!r}")


class DQNState(NamedTuple):
    """State of the learner; `target` are the parameters of the target network."""

    params: Params
    optimiser: Any
    target: Params
    buffer: ReplayBuffer


class QLearning(NamedTuple):
    """DQN without an environment: three pure functions to call from any loop, compiled or not.

    Attributes:
        init: `init(key)` returns the initial `DQNState`.
        act: `act(params, observation, step, uniforms)` returns an epsilon-greedy action. It takes
            two uniform numbers in [0, 1).
        update: `update(state, row, step, uniforms)` stores a transition, made by `transition_row`,
            and learns from a batch. It takes `batch_size` uniform numbers in [0, 1).
    """

    init: Callable[[Key[Array, ""]], DQNState]
    act: Callable[[Params, Array, Array, Array], Int[Array, ""]]
    update: Callable[[DQNState, Array, Array, Array], DQNState]


def q_learning(
    size: int, actions: int, network: Network, optimiser: optax.GradientTransformation,
    config: DQNConfig = DQNConfig(),  # noqa: B008
) -> QLearning:  # fmt: skip
    """Create the functions of epsilon-greedy Q-learning with replay and a target network.

    The loss is the mean squared TD error. Targets bootstrap from the next observation unless the
    episode terminated there; they do so where it was truncated. The network maps the `size` numbers
    of an observation to one value per action.
    """
    if not isinstance(config, DQNConfig):
        raise TypeError(
            f"config must be a DQNConfig, such as DQNConfig(buffer_size=32), got {config!r}"
        )
    check_network(network, size, actions)

    def init(key: Array) -> DQNState:
        params = network.init(key)
        target = jax.tree.map(jnp.copy, params)
        buffer = empty_buffer(config.buffer_size, 2 * size + 3)
        return DQNState(params, optimiser.init(params), target, buffer)

    def act(params: Params, observation: Array, step: Array, uniforms: Array) -> Array:
        values = network.apply(params, observation[None])[0]
        epsilon = jnp.maximum(1 - (1 - config.epsilon) * step / config.warm_up, config.epsilon)
        greedy = jnp.argmax(values).astype(jnp.int32)
        return jnp.where(uniforms[0] < epsilon, uniform_to_int(uniforms[1], actions), greedy)

    def loss(params: Params, rows: Array, targets: Array) -> Array:
        values = network.apply(params, rows[:, :size])
        taken = jax.nn.one_hot(rows[:, size].astype(jnp.int32), actions)
        return jnp.mean((jnp.sum(values * taken, 1) - targets) ** 2)

    def learn(params: Params, opt_state: Any, target: Params, rows: Array) -> tuple[Params, Any]:
        next_values = network.apply(target, rows[:, size + 3 :]).max(1)
        targets = rows[:, size + 1] + config.discount * rows[:, size + 2] * next_values

        def gradient_step(_: Array, carry: tuple[Params, Any]) -> tuple[Params, Any]:
            params, opt_state = carry
            gradient = jax.grad(loss)(params, rows, targets)
            change, opt_state = optimiser.update(gradient, opt_state, params)
            return optax.apply_updates(params, change), opt_state

        if config.updates == 1:
            return gradient_step(jnp.int32(0), (params, opt_state))
        return jax.lax.fori_loop(0, config.updates, gradient_step, (params, opt_state))

    def update(state: DQNState, row: Array, step: Array, uniforms: Array) -> DQNState:
        buffer = add(state.buffer, row)
        rows = sample(buffer, uniforms)  # not inside the cond, which would copy the whole buffer
        params, opt_state = jax.lax.cond(
            step > config.warm_up,
            lambda: learn(state.params, state.optimiser, state.target, rows),
            lambda: (state.params, state.optimiser),
        )
        target = optax.periodic_update(params, state.target, step, config.target_update)
        return DQNState(params, opt_state, target, buffer)

    return QLearning(init, act, update)


def check_network(network: Network, size: int, actions: int) -> None:
    """Raise ValueError unless the network maps `size` inputs to `actions` outputs."""
    advice = f"build it with {size} inputs and {actions} outputs"
    try:
        x = jax.ShapeDtypeStruct((1, size), jnp.float32)
        values = jax.eval_shape(lambda x: network.apply(network.init(jax.random.key(0)), x), x)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the network does not accept observations of {size} numbers; {advice} ({error})"
        ) from error
    if values.shape != (1, actions):
        raise ValueError(
            f"the network returns an array of shape {values.shape[1:]} per observation, but there "
            f"are {actions} actions; {advice}"
        )


def transition_row(
    observation: Array, action: Array, reward: Array, terminated: Array, next_observation: Array
) -> Float[Array, " width"]:
    """Pack a transition into one row of the replay buffer."""
    middle = jnp.stack([action.astype(jnp.float32), reward, 1.0 - terminated])
    return jnp.concatenate([observation, middle, next_observation])


class AgentState(NamedTuple):
    """State of a training run: the learner's, the environment's, and the episode's so far."""

    dqn: DQNState
    environment: Any
    observation: Float[Array, " size"]
    episode_return: Float[Array, ""]


class Agent(NamedTuple):
    """A DQN agent in an environment.

    Attributes:
        init: `init(key)` returns the initial `AgentState`.
        train: `train(state, key, start, steps)` runs `steps` steps, numbered from `start`. It
            returns the new state and one number per step: the return of the episode that ended
            there, or NaN.
    """

    init: Callable[[Key[Array, ""]], AgentState]
    train: Callable[[AgentState, Key[Array, ""], Int[Array, ""], int], tuple[AgentState, Array]]


def dqn(
    environment: Environment, network: Network, optimiser: optax.GradientTransformation,
    config: DQNConfig = DQNConfig(),  # noqa: B008
) -> Agent:  # fmt: skip
    """Create a DQN agent whose training, environment included, compiles to one program."""
    learning = q_learning(environment.size, environment.actions, network, optimiser, config)

    def init(key: Array) -> AgentState:
        init_key, reset_key = jax.random.split(key)
        start = environment.reset(reset_key)
        observation = environment.observe(start)
        return AgentState(learning.init(init_key), start, observation, jnp.float32(0))

    widths = (2, environment.step_uniforms, environment.reset_uniforms, config.batch_size)
    ends = [sum(widths[: i + 1]) for i in range(len(widths) - 1)]

    def one_step(state: AgentState, inputs: tuple[Array, Array]) -> tuple[AgentState, Array]:
        step, uniforms = inputs
        for_action, for_step, for_reset, for_batch = jnp.split(uniforms, ends)
        action = learning.act(state.dqn.params, state.observation, step, for_action)
        after = environment.advance(state.environment, action, for_step)
        row = transition_row(
            state.observation, action, after.reward, after.terminated, after.observation
        )
        dqn_state = learning.update(state.dqn, row, step, for_batch)
        done = after.terminated | after.truncated
        start = environment.start(for_reset)
        where_done = lambda new, old: jnp.where(done, new, old)
        episode_return = state.episode_return + after.reward
        new = AgentState(
            dqn_state,
            jax.tree.map(where_done, start, after.state),
            where_done(environment.observe(start), after.observation),
            where_done(jnp.float32(0), episode_return),
        )
        return new, jnp.where(done, episode_return, jnp.nan)

    def train(state: AgentState, key: Array, start: Array, steps: int) -> tuple[AgentState, Array]:
        # Drawn in one call: one call per step would cost as much as the learning.
        uniforms = jax.random.uniform(key, (steps, sum(widths)))
        return jax.lax.scan(one_step, state, (start + jnp.arange(steps), uniforms))

    return Agent(init, train)
