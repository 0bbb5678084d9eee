"""What a trained agent does: greedy evaluation, and films of an episode."""

import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from elephant_nn.files import write_whole
from elephant_nn.nn.networks import Network, Params
from elephant_nn.rl.dqn import check_fit
from elephant_nn.rl.envs.drawing import Picture
from elephant_nn.rl.envs.environment import Environment, State


def evaluate(
    environment: Environment,
    network: Network,
    params: Params,
    key: Key[Array, ""],
    episodes: int = 20,
) -> Float[Array, " episodes"]:
    """Returns of episodes in which the action of highest value is always taken."""
    if episodes < 1:
        raise ValueError(f"evaluate: episodes must be 1 or more, got {episodes}")
    _check(environment, network, params)
    keys = jax.random.split(key, episodes)
    play = partial(_play, environment, network, params)
    return jax.jit(jax.vmap(lambda key: play(key)[2]))(keys)


def film(
    environment: Environment,
    network: Network,
    params: Params,
    key: Key[Array, ""],
    frames: int = 1000,
) -> tuple[list[Picture], float]:
    """The pictures of one greedy episode, the first `frames` of them, and its return."""
    if frames < 1:
        raise ValueError(f"film: frames must be 1 or more, got {frames}")
    _check(environment, network, params)
    states, length, earned = jax.jit(partial(_play, environment, network, params))(key)
    states, length = jax.device_get((states, length))
    frame = lambda i: environment.draw(jax.tree.map(lambda leaf: leaf[i], states))
    return [frame(i) for i in range(min(int(length), frames))], float(earned)


def _check(environment: Environment, network: Network, params: Params) -> None:
    check_fit(network, environment.size, environment.actions)
    leaves = jax.tree.leaves(params)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return  # mapped over many agents: their numbers are not known yet
    if not all(jnp.isfinite(leaf).all() for leaf in leaves):
        raise ValueError("the agent's parameters are not finite: its training diverged")


def _play(
    environment: Environment, network: Network, params: Params, key: Array
) -> tuple[State, Array, Array]:
    """All states up to the cap; how many the episode has, its last included; its return."""
    begin, chances = jax.random.split(key)

    def step(carry: tuple[State, Array, Array], key: Array) -> Any:
        state, over, earned = carry
        values = network.apply(params, environment.observe(state)[None])[0]
        after = environment.step(state, jnp.argmax(values).astype(jnp.int32), key)
        earned = earned + jnp.where(over, 0.0, after.reward)
        new = (after.state, over | after.terminated | after.truncated, earned)
        return new, (after.state, over)

    first = environment.reset(begin)
    start = (first, jnp.bool_(False), jnp.float32(0))
    last, (states, over) = jax.lax.scan(step, start, jax.random.split(chances, environment.cap))
    seen = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, states)
    return seen, 1 + jnp.sum(~over), last[2]


def write_gif(path: Path | str, pictures: Sequence[Picture], frames_a_second: float = 30) -> Path:
    """An animation that any browser plays, in a loop."""
    from PIL import Image

    if not pictures:
        raise ValueError("write_gif: there are no pictures to write")
    if not frames_a_second > 0:
        raise ValueError(f"write_gif: frames_a_second must be above 0, got {frames_a_second}")
    first, *rest = (Image.fromarray(np.asarray(picture)) for picture in pictures)
    content = io.BytesIO()
    pause = round(1000 / frames_a_second)
    first.save(content, "GIF", save_all=True, append_images=rest, duration=pause, loop=0)
    return write_whole(Path(path), content.getvalue())
