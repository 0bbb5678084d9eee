"""DQN in any Gymnasium environment: the loop runs in Python, acting and learning are compiled.

    import gymnasium, optax
    from elephant_nn.nn.networks import emlp
    from elephant_nn.rl.train import train

    game = gymnasium.make("CartPole-v1")
    network = emlp((4, 1000, 2), a=0.32, sigma_bias=0.64, output_bias=True)
    life = train(game, network, optax.rmsprop(1e-4, decay=0.999), steps=20_000)
    print(life.returns[-10:])

The same agent as in `elephant_nn.rl.dqn`, but slower: there the environment is compiled as well.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import jax
import numpy as np
import optax
from jaxtyping import Float, Int

from elephant_nn.nn.networks import Network, Params
from elephant_nn.rl import is_whole
from elephant_nn.rl.dqn import Dqn, q_learning, transition_row


class Life(NamedTuple):
    """What became of the agent: its values, and the return and last step of every episode."""

    params: Params
    returns: Float[np.ndarray, " episodes"]
    ends: Int[np.ndarray, " episodes"]


def train(
    game: gymnasium.Env[Any, Any],
    network: Network,
    optimiser: optax.GradientTransformation,
    settings: Dqn = Dqn(),  # noqa: B008
    *,
    steps: int,
    seed: int = 0,
    report: Callable[[float, int], None] = lambda done, steps: None,
) -> Life:
    """Train for some steps. The same seed gives the same life, if the environment keeps to it.

    Args:
        game: an environment with a few numbered actions that shows vectors.
        network: from as many inputs as an observation has numbers to as many outputs as actions.
        report: called every thousand steps and at the end with the steps done and their number.
    """
    if not is_whole(steps) or steps < 1:
        raise ValueError(f"steps must be a whole number, 1 or more, got {steps!r}")
    size, actions, first = _shape(game)
    learning = q_learning(size, actions, network, optimiser, settings)
    act = jax.jit(learning.act)

    def remember_and_learn(mind: Any, transition: Any, time: Any, draws: Any) -> Any:
        return learning.experience(mind, transition_row(*transition), time, draws)

    experience = jax.jit(remember_and_learn, donate_argnums=0)
    mind, rng = learning.init(jax.random.key(seed)), np.random.default_rng(seed)
    seen, earned = _numbers(game.reset(seed=seed)[0], size), 0.0
    returns, ends = [], []
    for step in range(steps):
        draws = rng.random(2 + settings.batch, np.float32)
        time = np.int32(step)
        action = act(mind.params, seen, time, draws[:2])
        after, reward, terminated, truncated, _ = game.step(first + int(action))
        after, reward = _numbers(after, size), float(reward)
        if not abs(reward) <= np.finfo(np.float32).max:
            raise ValueError(f"the environment gave a reward that float32 cannot hold: {reward}")
        transition = (seen, action, np.float32(reward), np.bool_(terminated), after)
        mind = experience(mind, transition, time, draws[2:])
        seen, earned = after, earned + reward
        if terminated or truncated:
            returns.append(earned)
            ends.append(step)
            seen, earned = _numbers(game.reset()[0], size), 0.0
        if (step + 1) % 1000 == 0 or step + 1 == steps:
            if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(mind.params)):
                raise FloatingPointError(
                    f"after {step + 1} steps the parameters are not finite; choose a lower rate"
                )
            report(step + 1, steps)
    return Life(mind.params, np.array(returns, float), np.array(ends, int))


def _shape(game: gymnasium.Env[Any, Any]) -> tuple[int, int, int]:
    """Numbers of an observation, number of actions, and the first action."""
    actions, seen = game.action_space, game.observation_space
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise ValueError(
            f"DQN needs a few numbered actions (Discrete), got {actions}; number some actions in a "
            "gymnasium.ActionWrapper, and train in one environment, not in a vector of them"
        )
    if not isinstance(seen, gymnasium.spaces.Box):
        raise ValueError(
            f"DQN needs observations that are vectors (Box), got {seen}; wrap the environment, "
            "for example in gymnasium.wrappers.FlattenObservation"
        )
    return int(np.prod(seen.shape)), int(actions.n), int(actions.start)


def _numbers(observation: Any, size: int) -> Float[np.ndarray, " size"]:
    shown = np.asarray(observation)
    if shown.size != size:
        raise ValueError(f"the environment showed {shown.size} numbers, its space has {size}")
    with np.errstate(over="ignore"):
        numbers = shown.astype(np.float32).reshape(size)
    if not np.isfinite(numbers).all():
        raise ValueError(f"the environment showed numbers that are not finite in float32: {shown}")
    return numbers
