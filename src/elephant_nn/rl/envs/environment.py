"""The interface of environments: pure functions on arrays, so that training runs compile."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from elephant_nn.rl.envs.drawing import Frame

State = Any


class Transition(NamedTuple):
    """Result of a step: the next state and its observation, the reward, and whether the episode
    ended, in a terminal state (`terminated`) or because of the step limit (`truncated`)."""

    state: State
    observation: Float[Array, " size"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


@dataclass(frozen=True)
class Environment:
    """A task as pure functions of one state. Use `jax.vmap` for many in parallel.

    `reset` and `step` take a random key. `start` and `advance` do the same from uniform random
    numbers in [0, 1), so that a compiled loop can draw the numbers of many steps in one call.

    Attributes:
        actions: number of actions, which are integers from 0.
        size: numbers per observation.
        max_steps: steps after which an episode is truncated.
        reset_uniforms: random numbers that `start` takes.
        step_uniforms: random numbers that `advance` takes.
        bounds: lower and upper bounds of an observation.
    """

    name: str
    start: Callable[[Float[Array, " n"]], State]
    advance: Callable[[State, Int[Array, ""], Float[Array, " n"]], Transition]
    observe: Callable[[State], Float[Array, " size"]]
    actions: int
    size: int
    max_steps: int
    reset_uniforms: int
    step_uniforms: int
    bounds: tuple[tuple[float, ...], tuple[float, ...]]
    render: Callable[[State], Frame]

    def reset(self, key: Key[Array, ""]) -> State:
        """Return a random initial state."""
        return self.start(jax.random.uniform(key, (self.reset_uniforms,)))

    def step(self, state: State, action: Int[Array, ""] | int, key: Key[Array, ""]) -> Transition:
        """Take one step. Call `reset` after a step that ended the episode.

        The action is not checked, so that steps compile. The result for an action outside 0 to
        `actions` - 1 is undefined.
        """
        action = jnp.asarray(action, jnp.int32)
        return self.advance(state, action, jax.random.uniform(key, (self.step_uniforms,)))


def round_to_pixel(x: Float[Array, "..."], truncate: bool) -> Int[Array, "..."]:
    """Round to whole pixels as pygame does: half away from zero, or toward zero before 2.3."""
    rounded = jnp.trunc(x) if truncate else jnp.sign(x) * jnp.floor(jnp.abs(x) + 0.5)
    return rounded.astype(jnp.int32)


def uniform_to_int(u: Float[Array, "..."], n: int) -> Int[Array, "..."]:
    """Map a uniform number in [0, 1) to an integer from 0 to n - 1."""
    return jnp.minimum((u * n).astype(jnp.int32), n - 1)  # u * n may round up to n
