"""What an environment is: pure functions on arrays, so that whole training runs compile."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from elephant_nn.rl.envs.drawing import Picture

State = Any


class Transition(NamedTuple):
    """What a step gives: the next state, what is seen of it, the reward, and whether it ends here.

    `terminated`: the task is over and nothing more can be earned. `truncated`: time is up, the
    state would have had a future.
    """

    state: State
    observation: Float[Array, " size"]
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


@dataclass(frozen=True)
class Environment:
    """A task as pure functions of one state; map them over lanes with `jax.vmap`.

    `begin` and `advance` take their chances as uniform numbers in [0, 1), `reset_draws` and
    `step_draws` of them, so that a compiled loop can draw for many steps at once; `reset` and
    `step` take a key and draw for themselves.

    Attributes:
        actions: how many there are, numbered from 0.
        size: how many numbers an observation has.
        cap: steps after which an episode is truncated.
        bounds: least and largest value of each number of an observation.
        draw: an RGB picture of a state.
    """

    name: str
    begin: Callable[[Float[Array, " draws"]], State]
    advance: Callable[[State, Int[Array, ""], Float[Array, " draws"]], Transition]
    observe: Callable[[State], Float[Array, " size"]]
    actions: int
    size: int
    cap: int
    reset_draws: int
    step_draws: int
    bounds: tuple[tuple[float, ...], tuple[float, ...]]
    draw: Callable[[State], Picture]

    def reset(self, key: Key[Array, ""]) -> State:
        """A fresh start."""
        return self.begin(jax.random.uniform(key, (self.reset_draws,)))

    def step(self, state: State, action: Int[Array, ""] | int, key: Key[Array, ""]) -> Transition:
        """One step. What follows a step that ended the episode is up to you: `reset`.

        Actions are not checked, so that steps compile: one outside 0 to `actions` - 1 is undefined.
        """
        action = jnp.asarray(action, jnp.int32)
        return self.advance(state, action, jax.random.uniform(key, (self.step_draws,)))


def pixel(x: Float[Array, "..."], truncating: bool) -> Int[Array, "..."]:
    """Whole pixels as pygame makes them: half away from zero, or, before 2.3, cut toward zero."""
    rounded = jnp.trunc(x) if truncating else jnp.sign(x) * jnp.floor(jnp.abs(x) + 0.5)
    return rounded.astype(jnp.int32)


def whole(u: Float[Array, "..."], n: int) -> Int[Array, "..."]:
    """A uniform number in [0, 1) as a whole number from 0 to n - 1."""
    return jnp.minimum((u * n).astype(jnp.int32), n - 1)  # u may round up to 1
