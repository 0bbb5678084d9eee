"""Catcher of the PyGame Learning Environment: catch falling fruit with a sliding paddle."""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from elephant_nn.rl.envs.drawing import SCALE, Frame, blank_frame, draw_rectangle
from elephant_nn.rl.envs.environment import Environment, Transition, round_to_pixel, uniform_to_int

SIDE, FRUIT, PADDLE = 64, 4, 13
PADDLE_Y = 58
_PUSH, _FRICTION, _FALL = 1.344, 0.9, 64 * 0.00095 * 1000 / 30


class CatcherState(NamedTuple):
    """Positions are centres, in whole pixels. The velocity is not rounded."""

    x: Int[Array, ""]
    velocity: Float[Array, ""]
    fruit_x: Int[Array, ""]
    fruit_y: Int[Array, ""]
    lives: Int[Array, ""]
    time: Int[Array, ""]


def catcher(max_steps: int = 2000, *, truncate_pixels: bool = False) -> Environment:
    """Create Catcher.

    Rewards: +1 per fruit caught and -1 per fruit missed; the loss of the third and last life costs
    5 more. Actions: left, right, nothing. Observations: position and velocity of the paddle,
    position of the fruit, scaled to about [-1, 1].

    Args:
        max_steps: steps after which an episode is truncated.
        truncate_pixels: round positions toward zero, as pygame before 2.3 does. This makes the
            game slightly easier. By default they are rounded half away from zero, as pygame does
            since 2.3.
    """
    to_pixel = partial(round_to_pixel, truncate=truncate_pixels)

    def new_fruit(uniforms: Array) -> tuple[Array, Array]:
        return 8 + 4 * uniform_to_int(uniforms[0], 12), -4 - 4 * uniform_to_int(uniforms[1], 7)

    def start(uniforms: Array) -> CatcherState:
        x, fruit = to_pixel(jnp.float32(25.5)), new_fruit(uniforms)
        return CatcherState(x, jnp.float32(0), *fruit, jnp.int32(3), jnp.int32(0))

    def advance(state: CatcherState, action: Array, uniforms: Array) -> Transition:
        missed = state.fruit_y >= SIDE
        new_x, new_y = new_fruit(uniforms[:2])
        fruit_x = jnp.where(missed, new_x, state.fruit_x)
        fruit_y = jnp.where(missed, new_y, state.fruit_y)
        lives = state.lives - missed
        apart = fruit_x - state.x
        caught = (apart >= -7) & (apart <= 8) & (fruit_y >= 56) & (fruit_y <= 61)
        # A new fruit is above the screen and cannot be caught, so one draw is enough per step.
        fruit_x = jnp.where(caught, new_x, fruit_x)
        fruit_y = jnp.where(caught, new_y, fruit_y)

        push = jnp.where(action == 0, -_PUSH, jnp.where(action == 1, _PUSH, 0.0))
        velocity = _FRICTION * (state.velocity + push)
        x = state.x + velocity
        low, high = x <= 0, x + PADDLE >= SIDE
        velocity = jnp.where(low | high, 0.0, velocity)
        x = to_pixel(jnp.where(low, 0.0, jnp.where(high, 51.0, x)))
        fruit_y = to_pixel(fruit_y + _FALL)

        terminated = lives <= 0
        reward = caught.astype(jnp.float32) - missed - 5.0 * terminated
        new = CatcherState(x, velocity, fruit_x, fruit_y, lives, state.time + 1)
        truncated = ~terminated & (new.time >= max_steps)
        return Transition(new, observe(new), reward, terminated, truncated)

    def observe(state: CatcherState) -> Array:
        x, fruit_x = (state.x - 26) / 26, (state.fruit_x - 26) / 26
        seen = [x, state.velocity / 8, fruit_x, (state.fruit_y - 20) / 45]
        return jnp.stack(seen).astype(jnp.float32)

    return Environment(
        "catcher", start, advance, observe, actions=3, size=4, max_steps=max_steps,
        reset_uniforms=2, step_uniforms=2, render=_render,
        bounds=((-1.0, -2.0, -1.0, -2.0), (1.0, 2.0, 1.0, 2.0)),
    )  # fmt: skip


def _render(state: CatcherState) -> Frame:
    frame = blank_frame(SIDE * SCALE, SIDE * SCALE, "dark")
    x, fruit_x, fruit_y = int(state.x), int(state.fruit_x), int(state.fruit_y)
    draw_rectangle(frame, fruit_x - FRUIT / 2, fruit_y - FRUIT / 2, FRUIT, FRUIT, "red")
    draw_rectangle(frame, x - PADDLE // 2, PADDLE_Y - 1, PADDLE, 3, "white")
    for life in range(int(state.lives)):
        draw_rectangle(frame, 2 + 4 * life, 2, 2, 2, "green")
    return frame
