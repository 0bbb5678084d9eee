"""MountainCar and Acrobot: the dynamics of Gymnasium's MountainCar-v0 and Acrobot-v1."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from elephant_nn.rl.envs.drawing import (
    BLUE,
    GREEN,
    GROUND,
    LINE,
    RED,
    SCALE,
    SKY,
    YELLOW,
    Picture,
    bar,
    blank,
    box,
    disc,
)
from elephant_nn.rl.envs.environment import Environment, Transition


class MountainCarState(NamedTuple):
    position: Float[Array, ""]
    velocity: Float[Array, ""]
    time: Int[Array, ""]


def mountain_car(cap: int = 1000) -> Environment:
    """Drive an underpowered car up a hill by swinging: actions left, nothing, right; -1 a step.

    Gymnasium truncates after 200 steps; the paper gives 1000.
    """

    def begin(draws: Array) -> MountainCarState:
        start = -0.6 + 0.2 * draws[0]
        return MountainCarState(start, jnp.zeros_like(start), jnp.int32(0))

    def advance(state: MountainCarState, action: Array, draws: Array) -> Transition:
        push, slope = (action - 1) * 0.001, -0.0025 * jnp.cos(3 * state.position)
        velocity = jnp.clip(state.velocity + push + slope, -0.07, 0.07)
        position = jnp.clip(state.position + velocity, -1.2, 0.6)
        velocity = jnp.where((position <= -1.2) & (velocity < 0), 0.0, velocity)
        new = MountainCarState(position, velocity, state.time + 1)
        there = (position >= 0.5) & (velocity >= 0)
        late = ~there & (new.time >= cap)
        return Transition(new, observe(new), jnp.float32(-1), there, late)

    def observe(state: MountainCarState) -> Array:
        return jnp.stack([state.position, state.velocity])

    bounds = ((-1.2, -0.07), (0.6, 0.07))
    return Environment(
        "mountain-car", begin, advance, observe, 3, 2, cap, 1, 0, bounds, draw_mountain_car
    )


def draw_mountain_car(state: MountainCarState) -> Picture:
    width, height = 480, 320
    picture = blank(height, width, SKY)
    across = lambda position: (position + 1.2) / 1.8 * width
    up = lambda position: height * (0.82 - 0.30 * (np.sin(3 * position) + 0.6))
    places = -1.2 + 1.8 * np.arange(width) / width
    rows = np.arange(height)[:, None]
    picture[rows >= up(places)] = GROUND
    bar(picture, np.array([across(0.5), up(0.5)]), np.array([across(0.5), up(0.5) - 45]), 2, LINE)
    box(picture, across(0.5) / SCALE, (up(0.5) - 45) / SCALE, 4, 2.5, RED)
    position = float(state.position)
    x, y = across(position), up(position) - 12
    disc(picture, x - 9, y + 7, 6, LINE)
    disc(picture, x + 9, y + 7, 6, LINE)
    bar(picture, np.array([x - 11, y]), np.array([x + 11, y]), 7, BLUE)
    return picture


class AcrobotState(NamedTuple):
    angles: Float[Array, " 2"]
    speeds: Float[Array, " 2"]
    time: Int[Array, ""]


def acrobot(cap: int = 500) -> Environment:
    """Swing the tip of a two-link arm above a line by a torque on the elbow; -1 a step until then.

    The dynamics are those of Sutton and Barto's book, one Runge-Kutta step of 0.2 s an action.
    """

    def begin(draws: Array) -> AcrobotState:
        start = -0.1 + 0.2 * draws
        return AcrobotState(start[:2], start[2:], jnp.int32(0))

    def advance(state: AcrobotState, action: Array, draws: Array) -> Transition:
        torque = (action - 1).astype(jnp.float32)
        y = _runge_kutta(jnp.concatenate([state.angles, state.speeds]), torque, 0.2)
        angles = (y[:2] + jnp.pi) % (2 * jnp.pi) - jnp.pi
        fastest = jnp.array([4 * jnp.pi, 9 * jnp.pi])
        new = AcrobotState(angles, jnp.clip(y[2:], -fastest, fastest), state.time + 1)
        up = -jnp.cos(angles[0]) - jnp.cos(angles[0] + angles[1]) > 1.0
        late = ~up & (new.time >= cap)
        return Transition(new, observe(new), jnp.where(up, 0.0, -1.0), up, late)

    def observe(state: AcrobotState) -> Array:
        (c1, c2), (s1, s2) = jnp.cos(state.angles), jnp.sin(state.angles)
        return jnp.stack([c1, s1, c2, s2, *state.speeds])

    fast = (1.0, 1.0, 1.0, 1.0, 4 * 3.1415927, 9 * 3.1415927)
    bounds = (tuple(-b for b in fast), fast)
    return Environment("acrobot", begin, advance, observe, 3, 6, cap, 4, 0, bounds, draw_acrobot)


def _runge_kutta(y: Array, torque: Array, dt: float) -> Array:
    k1 = _slope(y, torque)
    k2 = _slope(y + dt / 2 * k1, torque)
    k3 = _slope(y + dt / 2 * k2, torque)
    k4 = _slope(y + dt * k3, torque)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def _slope(y: Array, torque: Array) -> Array:
    """Change of angles and speeds: links of length and mass 1, inertia 1, centres at one half."""
    t1, t2, w1, w2 = y
    g = 9.8
    d1 = 0.25 + 1 + 0.25 + jnp.cos(t2) + 2
    d2 = 0.25 + 0.5 * jnp.cos(t2) + 1
    phi2 = 0.5 * g * jnp.cos(t1 + t2 - jnp.pi / 2)
    phi1 = (
        -0.5 * w2**2 * jnp.sin(t2)
        - w2 * w1 * jnp.sin(t2)
        + 1.5 * g * jnp.cos(t1 - jnp.pi / 2)
        + phi2
    )
    push = torque + d2 / d1 * phi1 - 0.5 * w1**2 * jnp.sin(t2) - phi2
    a2 = push / (0.25 + 1 - d2**2 / d1)
    a1 = -(d2 * a2 + phi1) / d1
    return jnp.stack([w1, w2, a1, a2])


def draw_acrobot(state: AcrobotState) -> Picture:
    side, unit = 400, 85.0
    picture = blank(side, side, SKY)
    hook = np.array([side / 2, side / 2])
    goal = hook[1] - unit
    bar(picture, np.array([0.0, goal]), np.array([side - 1.0, goal]), 1, RED)
    t1, t2 = (float(angle) for angle in state.angles)
    elbow = hook + unit * np.array([np.sin(t1), np.cos(t1)])
    tip = elbow + unit * np.array([np.sin(t1 + t2), np.cos(t1 + t2)])
    bar(picture, hook, elbow, 7, BLUE)
    bar(picture, elbow, tip, 7, GREEN)
    for joint in (hook, elbow):
        disc(picture, joint[0], joint[1], 8, YELLOW)
    return picture
