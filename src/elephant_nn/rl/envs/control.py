"""MountainCar and Acrobot, with the dynamics of Gymnasium's MountainCar-v0 and Acrobot-v1."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from elephant_nn.rl.envs import drawing
from elephant_nn.rl.envs.drawing import Frame, draw_circle, draw_line
from elephant_nn.rl.envs.environment import Environment, Transition


class MountainCarState(NamedTuple):
    position: Float[Array, ""]
    velocity: Float[Array, ""]
    time: Int[Array, ""]


def mountain_car(max_steps: int = 1000) -> Environment:
    """Create MountainCar: drive an underpowered car up a hill by swinging back and forth.

    The reward is -1 per step. Actions: left, nothing, right. Observations: position and velocity.

    Args:
        max_steps: steps after which an episode is truncated. Gymnasium's default is 200, the
            paper's is 1000.
    """

    def start(uniforms: Array) -> MountainCarState:
        position = -0.6 + 0.2 * uniforms[0]
        return MountainCarState(position, jnp.zeros_like(position), jnp.int32(0))

    def advance(state: MountainCarState, action: Array, uniforms: Array) -> Transition:
        push, slope = (action - 1) * 0.001, -0.0025 * jnp.cos(3 * state.position)
        velocity = jnp.clip(state.velocity + push + slope, -0.07, 0.07)
        position = jnp.clip(state.position + velocity, -1.2, 0.6)
        velocity = jnp.where((position <= -1.2) & (velocity < 0), 0.0, velocity)
        new = MountainCarState(position, velocity, state.time + 1)
        terminated = (position >= 0.5) & (velocity >= 0)
        truncated = ~terminated & (new.time >= max_steps)
        return Transition(new, observe(new), jnp.float32(-1), terminated, truncated)

    def observe(state: MountainCarState) -> Array:
        return jnp.stack([state.position, state.velocity])

    return Environment(
        "mountain-car", start, advance, observe, actions=3, size=2, max_steps=max_steps,
        reset_uniforms=1, step_uniforms=0, render=_render_mountain_car,
        bounds=((-1.2, -0.07), (0.6, 0.07)),
    )  # fmt: skip


def _render_mountain_car(state: MountainCarState) -> Frame:
    width, height = 480, 320
    frame = drawing.blank_frame(height, width, "sky")
    column = lambda position: (position + 1.2) / 1.8 * width
    row = lambda position: height * (0.82 - 0.30 * (np.sin(3 * position) + 0.6))
    positions = -1.2 + 1.8 * np.arange(width) / width
    frame[np.arange(height)[:, None] >= row(positions)] = drawing.COLOURS["ground"]
    flag_x, flag_y = column(0.5), row(0.5)
    draw_line(frame, np.array([flag_x, flag_y]), np.array([flag_x, flag_y - 45]), 2, "dark")
    left, top = flag_x / drawing.SCALE, (flag_y - 45) / drawing.SCALE
    drawing.draw_rectangle(frame, left, top, 4, 2.5, "red")
    position = float(state.position)
    x, y = column(position), row(position) - 12
    draw_circle(frame, x - 9, y + 7, 6, "dark")
    draw_circle(frame, x + 9, y + 7, 6, "dark")
    draw_line(frame, np.array([x - 11, y]), np.array([x + 11, y]), 7, "blue")
    return frame


class AcrobotState(NamedTuple):
    angles: Float[Array, " 2"]
    velocities: Float[Array, " 2"]
    time: Int[Array, ""]


def acrobot(max_steps: int = 500) -> Environment:
    """Create Acrobot: swing the tip of a two-link arm above a line by a torque on the elbow.

    The reward is -1 per step and 0 at the goal. Actions: torque -1, 0, 1. Observations: cosine and
    sine of both angles, both angular velocities. The dynamics are those of Sutton and Barto's
    book, integrated by one Runge-Kutta step of 0.2 s per action.
    """

    def start(uniforms: Array) -> AcrobotState:
        values = -0.1 + 0.2 * uniforms
        return AcrobotState(values[:2], values[2:], jnp.int32(0))

    def advance(state: AcrobotState, action: Array, uniforms: Array) -> Transition:
        torque = (action - 1).astype(jnp.float32)
        y = _runge_kutta(jnp.concatenate([state.angles, state.velocities]), torque, 0.2)
        angles = (y[:2] + jnp.pi) % (2 * jnp.pi) - jnp.pi
        limit = jnp.array([4 * jnp.pi, 9 * jnp.pi])
        new = AcrobotState(angles, jnp.clip(y[2:], -limit, limit), state.time + 1)
        terminated = -jnp.cos(angles[0]) - jnp.cos(angles[0] + angles[1]) > 1.0
        truncated = ~terminated & (new.time >= max_steps)
        reward = jnp.where(terminated, 0.0, -1.0)
        return Transition(new, observe(new), reward, terminated, truncated)

    def observe(state: AcrobotState) -> Array:
        (c1, c2), (s1, s2) = jnp.cos(state.angles), jnp.sin(state.angles)
        return jnp.stack([c1, s1, c2, s2, *state.velocities])

    high = (1.0, 1.0, 1.0, 1.0, 4 * 3.1415927, 9 * 3.1415927)
    return Environment(
        "acrobot", start, advance, observe, actions=3, size=6, max_steps=max_steps,
        reset_uniforms=4, step_uniforms=0, render=_render_acrobot,
        bounds=(tuple(-bound for bound in high), high),
    )  # fmt: skip


def _runge_kutta(y: Array, torque: Array, dt: float) -> Array:
    k1 = _derivative(y, torque)
    k2 = _derivative(y + dt / 2 * k1, torque)
    k3 = _derivative(y + dt / 2 * k2, torque)
    k4 = _derivative(y + dt * k3, torque)
    return y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def _derivative(y: Array, torque: Array) -> Array:
    """Time derivative of angles and velocities.

    Both links have length 1, mass 1, inertia 1 and their centre of mass at one half.
    """
    t1, t2, w1, w2 = y
    g = 9.8
    d1 = 0.25 + 1 + 0.25 + jnp.cos(t2) + 2
    d2 = 0.25 + 0.5 * jnp.cos(t2) + 1
    phi2 = 0.5 * g * jnp.cos(t1 + t2 - jnp.pi / 2)
    phi1 = -0.5 * w2**2 * jnp.sin(t2) - w2 * w1 * jnp.sin(t2)
    phi1 = phi1 + 1.5 * g * jnp.cos(t1 - jnp.pi / 2) + phi2
    push = torque + d2 / d1 * phi1 - 0.5 * w1**2 * jnp.sin(t2) - phi2
    a2 = push / (0.25 + 1 - d2**2 / d1)
    a1 = -(d2 * a2 + phi1) / d1
    return jnp.stack([w1, w2, a1, a2])


def _render_acrobot(state: AcrobotState) -> Frame:
    side, unit = 400, 85.0
    frame = drawing.blank_frame(side, side, "sky")
    shoulder = np.array([side / 2, side / 2])
    goal = shoulder[1] - unit
    draw_line(frame, np.array([0.0, goal]), np.array([side - 1.0, goal]), 1, "red")
    t1, t2 = (float(angle) for angle in state.angles)
    elbow = shoulder + unit * np.array([np.sin(t1), np.cos(t1)])
    tip = elbow + unit * np.array([np.sin(t1 + t2), np.cos(t1 + t2)])
    draw_line(frame, shoulder, elbow, 7, "blue")
    draw_line(frame, elbow, tip, 7, "green")
    for joint in (shoulder, elbow):
        draw_circle(frame, joint[0], joint[1], 8, "yellow")
    return frame
