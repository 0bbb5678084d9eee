"""Run a trained agent: evaluate its greedy policy and record episodes."""

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
from elephant_nn.rl.dqn import check_network
from elephant_nn.rl.envs.drawing import Frame
from elephant_nn.rl.envs.environment import Environment, State


def evaluate(
    environment: Environment, network: Network, params: Params, key: Key[Array, ""],
    episodes: int = 20,
) -> Float[Array, " episodes"]:  # fmt: skip
    """Play episodes with the greedy policy and return one return per episode."""
    if episodes < 1:
        raise ValueError(f"evaluate: episodes must be 1 or more, got {episodes}")
    _check(environment, network, params)
    run = lambda key: _run_episode(environment, network, params, key)[2]
    return jax.jit(jax.vmap(run))(jax.random.split(key, episodes))


def record_episode(
    environment: Environment, network: Network, params: Params, key: Key[Array, ""],
    frames: int = 1000,
) -> tuple[list[Frame], float]:  # fmt: skip
    """Play one greedy episode. Return its first `frames` frames, rendered, and its return."""
    if frames < 1:
        raise ValueError(f"record_episode: frames must be 1 or more, got {frames}")
    _check(environment, network, params)
    run = jax.jit(partial(_run_episode, environment, network, params))
    states, length, episode_return = jax.device_get(run(key))
    frame = lambda i: environment.render(jax.tree.map(lambda leaf: leaf[i], states))
    return [frame(i) for i in range(min(int(length), frames))], float(episode_return)


def _check(environment: Environment, network: Network, params: Params) -> None:
    check_network(network, environment.size, environment.actions)
    leaves = jax.tree.leaves(params)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return  # inside vmap or jit: the values are not known yet
    if not all(jnp.isfinite(leaf).all() for leaf in leaves):
        raise ValueError(
            "params contain NaN or infinity: training diverged; train again with a lower learning "
            "rate"
        )


def _run_episode(
    environment: Environment, network: Network, params: Params, key: Array
) -> tuple[State, Array, Array]:
    """Return `max_steps` + 1 states, how many of them belong to the episode, and its return."""
    reset_key, steps_key = jax.random.split(key)

    def one_step(carry: tuple[State, Array, Array], key: Array) -> Any:
        state, done, episode_return = carry
        values = network.apply(params, environment.observe(state)[None])[0]
        after = environment.step(state, jnp.argmax(values).astype(jnp.int32), key)
        episode_return = episode_return + jnp.where(done, 0.0, after.reward)
        new = (after.state, done | after.terminated | after.truncated, episode_return)
        return new, (after.state, done)

    first = environment.reset(reset_key)
    start = (first, jnp.bool_(False), jnp.float32(0))
    keys = jax.random.split(steps_key, environment.max_steps)
    last, (states, done) = jax.lax.scan(one_step, start, keys)
    states = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, states)
    return states, 1 + jnp.sum(~done), last[2]


def write_gif(path: Path | str, frames: Sequence[Frame], fps: float = 30) -> Path:
    """Write frames as an animated GIF that loops forever."""
    from PIL import Image

    if not frames:
        raise ValueError("write_gif: frames is empty; pass at least one frame")
    if not fps > 0:
        raise ValueError(f"write_gif: fps must be above 0, got {fps}")
    first, *rest = (Image.fromarray(np.asarray(frame)) for frame in frames)
    content, duration = io.BytesIO(), round(1000 / fps)
    first.save(content, "GIF", save_all=True, append_images=rest, duration=duration, loop=0)
    return write_whole(Path(path), content.getvalue())
