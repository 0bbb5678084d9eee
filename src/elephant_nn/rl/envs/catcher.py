"""Catcher of the PyGame Learning Environment: catch falling fruit with a sliding paddle."""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from elephant_nn.rl.envs.drawing import GREEN, LINE, RED, SCALE, WHITE, Picture, blank, box
from elephant_nn.rl.envs.environment import Environment, Transition, pixel, whole

SIDE, FRUIT, PADDLE = 64, 4, 13
PADDLE_Y = 58
_PUSH, _FRICTION, _FALL = 1.344, 0.9, 64 * 0.00095 * 1000 / 30


class CatcherState(NamedTuple):
    """Centres of the paddle and the fruit on whole pixels; the paddle's velocity is finer."""

    x: Int[Array, ""]
    velocity: Float[Array, ""]
    fruit_x: Int[Array, ""]
    fruit_y: Int[Array, ""]
    lives: Int[Array, ""]
    time: Int[Array, ""]


def catcher(cap: int = 2000, *, truncating: bool = False) -> Environment:
    """+1 for a fruit caught, -1 for one missed, -5 more with the last of three lives.

    Actions: left, right, nothing. Positions are rounded to whole pixels, half away from zero, as
    pygame 2.3 and later do; `truncating` cuts them off, as pygame up to 2.2 did, which makes the
    game slightly easier. Observations: paddle, its velocity, fruit, scaled to about [-1, 1].
    """
    to_pixel = partial(pixel, truncating=truncating)

    def fruit(draws: Array) -> tuple[Array, Array]:
        return 8 + 4 * whole(draws[0], 12), -4 - 4 * whole(draws[1], 7)

    def begin(draws: Array) -> CatcherState:
        zero = jnp.int32(0)
        return CatcherState(
            to_pixel(jnp.float32(25.5)), jnp.float32(0), *fruit(draws), zero + 3, zero
        )

    def advance(state: CatcherState, action: Array, draws: Array) -> Transition:
        missed = state.fruit_y >= SIDE
        new_x, new_y = fruit(draws[:2])
        fruit_x = jnp.where(missed, new_x, state.fruit_x)
        fruit_y = jnp.where(missed, new_y, state.fruit_y)
        lives = state.lives - missed
        apart = fruit_x - state.x
        caught = (apart >= -7) & (apart <= 8) & (fruit_y >= 56) & (fruit_y <= 61)
        # A fruit that has just come is above the picture, so it is not caught: one draw will do.
        fruit_x = jnp.where(caught, new_x, fruit_x)
        fruit_y = jnp.where(caught, new_y, fruit_y)

        push = jnp.where(action == 0, -_PUSH, jnp.where(action == 1, _PUSH, 0.0))
        velocity = _FRICTION * (state.velocity + push)
        x = state.x + velocity
        low, high = x <= 0, x + PADDLE >= SIDE
        velocity = jnp.where(low | high, 0.0, velocity)
        x = to_pixel(jnp.where(low, 0.0, jnp.where(high, 51.0, x)))
        fruit_y = to_pixel(fruit_y + _FALL)

        over = lives <= 0
        reward = caught.astype(jnp.float32) - missed - 5.0 * over
        new = CatcherState(x, velocity, fruit_x, fruit_y, lives, state.time + 1)
        return Transition(new, observe(new), reward, over, ~over & (new.time >= cap))

    def observe(state: CatcherState) -> Array:
        return jnp.stack(
            [
                (state.x - 26) / 26,
                state.velocity / 8,
                (state.fruit_x - 26) / 26,
                (state.fruit_y - 20) / 45,
            ]
        ).astype(jnp.float32)

    bounds = ((-1.0, -2.0, -1.0, -2.0), (1.0, 2.0, 1.0, 2.0))
    return Environment("catcher", begin, advance, observe, 3, 4, cap, 2, 2, bounds, draw_catcher)


def draw_catcher(state: CatcherState) -> Picture:
    picture = blank(64 * SCALE, 64 * SCALE, LINE)
    x, fruit_x, fruit_y = int(state.x), int(state.fruit_x), int(state.fruit_y)
    box(picture, fruit_x - FRUIT / 2, fruit_y - FRUIT / 2, FRUIT, FRUIT, RED)
    box(picture, x - PADDLE // 2, PADDLE_Y - 1, PADDLE, 3, WHITE)
    for life in range(int(state.lives)):
        box(picture, 2 + 4 * life, 2, 2, 2, GREEN)
    return picture
