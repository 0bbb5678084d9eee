"""Train DQN in any Gymnasium environment.

    import gymnasium, optax
    from elephant_nn.nn.networks import emlp
    from elephant_nn.rl.train import train

    env = gymnasium.make("CartPole-v1")
    network = emlp((4, 1000, 2), a=0.32, sigma_bias=0.64, output_bias=True)
    result = train(env, network, optax.rmsprop(1e-4, decay=0.999), steps=20_000)
    print(result.returns[-10:])

The agent is that of `elephant_nn.rl.dqn`. The loop runs in Python and only acting and learning are
compiled, so it is slower than `dqn`, which compiles the environment too.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from jaxtyping import Float, Int

from elephant_nn.nn.networks import Network, Params
from elephant_nn.rl import is_whole
from elephant_nn.rl.dqn import DQNConfig, q_learning, transition_row

try:
    import gymnasium
except ImportError as error:
    raise ImportError(
        'elephant_nn.rl.train needs Gymnasium: pip install "elephant-nn[gym]"'
    ) from error


class TrainingResult(NamedTuple):
    """Result of `train`: `episode_ends` has the last step of every finished episode, from 0."""

    params: Params
    returns: Float[np.ndarray, " episodes"]
    episode_ends: Int[np.ndarray, " episodes"]


def train(
    env: gymnasium.Env[Any, Any], network: Network, optimiser: optax.GradientTransformation,
    config: DQNConfig = DQNConfig(),  # noqa: B008
    *, steps: int, seed: int = 0, report: Callable[[int, int], None] | None = None,
) -> TrainingResult:  # fmt: skip
    """Train DQN for a number of environment steps.

    Args:
        env: an environment with a Discrete action space and a Box observation space.
        network: maps an observation, flattened, to one value per action.
        seed: seeds network, exploration and environment. The same seed gives the same result if
            the environment is deterministic given its seed.
        report: `report(done, steps)` is called every 1,000 steps and at the end.
    """
    if not is_whole(steps) or steps < 1:
        raise ValueError(f"steps must be an integer, 1 or more, got {steps!r}")
    size, actions, first_action = _sizes(env)
    learning = q_learning(size, actions, network, optimiser, config)
    act = jax.jit(learning.act)

    def store_and_learn(state: Any, transition: Any, step: Any, uniforms: Any) -> Any:
        return learning.update(state, transition_row(*transition), step, uniforms)

    update = jax.jit(store_and_learn, donate_argnums=0)
    state, rng = learning.init(jax.random.key(seed)), np.random.default_rng(seed)
    observation, episode_return = _as_float32(env.reset(seed=seed)[0], size), 0.0
    returns, episode_ends = [], []
    for index in range(steps):
        uniforms, step = rng.random(2 + config.batch_size, np.float32), np.int32(index)
        action = act(state.params, observation, step, uniforms[:2])
        after, reward, terminated, truncated, _ = env.step(first_action + int(action))
        after, reward = _as_float32(after, size), float(reward)
        if not abs(reward) <= np.finfo(np.float32).max:
            raise ValueError(
                f"env.step returned the reward {reward}, which is not finite in float32; scale or "
                "clip it, for example with gymnasium.wrappers.TransformReward"
            )
        transition = (observation, action, np.float32(reward), np.bool_(terminated), after)
        state = update(state, transition, step, uniforms[2:])
        observation, episode_return = after, episode_return + reward
        if terminated or truncated:
            returns.append(episode_return)
            episode_ends.append(index)
            observation, episode_return = _as_float32(env.reset()[0], size), 0.0
        if (index + 1) % 1000 == 0 or index + 1 == steps:
            if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.params)):
                raise FloatingPointError(
                    f"the parameters contain NaN or infinity after {index + 1} steps; use a lower "
                    "learning rate"
                )
            if report is not None:
                report(index + 1, steps)
    return TrainingResult(state.params, np.array(returns, float), np.array(episode_ends, int))


def _sizes(env: gymnasium.Env[Any, Any]) -> tuple[int, int, int]:
    """Return the numbers per observation, the number of actions, and the first action."""
    actions, observations = env.action_space, env.observation_space
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise ValueError(
            f"DQN needs a Discrete action space, got {actions}; map actions to integers with a "
            "gymnasium.ActionWrapper, and pass a single environment, not a vector environment"
        )
    if not isinstance(observations, gymnasium.spaces.Box):
        raise ValueError(
            f"DQN needs a Box observation space, got {observations}; wrap the environment, for "
            "example in gymnasium.wrappers.FlattenObservation"
        )
    return int(np.prod(observations.shape)), int(actions.n), int(actions.start)


def _as_float32(observation: Any, size: int) -> Float[np.ndarray, " size"]:
    raw = np.asarray(observation)
    if raw.size != size:
        raise ValueError(
            f"the environment returned an observation of {raw.size} numbers, but its observation "
            f"space has {size}; correct its observation_space"
        )
    with np.errstate(over="ignore"):
        flat = raw.astype(np.float32).reshape(size)
    if not np.isfinite(flat).all():
        raise ValueError(
            f"the environment returned an observation that is not finite in float32: {raw}; scale "
            "or clip it, for example with gymnasium.wrappers.TransformObservation"
        )
    return flat
