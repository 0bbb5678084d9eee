"""Catcher and Pixelcopter as ordinary Gymnasium environments in Python.

The compiled environments of `elephant_nn.rl`, which have the same rules, are compared with them.
"""

import math
import random
from typing import Any

import gymnasium
import numpy as np


class PlainCatcher(gymnasium.Env[np.ndarray, int]):
    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:  # type: ignore[type-arg]
        if seed is not None:
            random.seed(seed)
        self.x, self.velocity, self.lives, self.time = 26, 0.0, 3, 0
        self._new_fruit()
        return self._observation(), {}

    def _new_fruit(self) -> None:
        self.fruit_x, self.fruit_y = 8 + 4 * random.randrange(12), -4 - 4 * random.randrange(7)

    def _observation(self) -> np.ndarray:
        fruit = ((self.fruit_x - 26) / 26, (self.fruit_y - 20) / 45)
        return np.array([(self.x - 26) / 26, self.velocity / 8, *fruit], np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:  # type: ignore[type-arg]
        reward = 0.0
        if self.fruit_y >= 64:
            reward, self.lives = -1.0, self.lives - 1
            self._new_fruit()
        if -7 <= self.fruit_x - self.x <= 8 and 56 <= self.fruit_y <= 61:
            reward += 1
            self._new_fruit()
        self.velocity = 0.9 * (self.velocity + (-1.344, 1.344, 0.0)[action])
        x = self.x + self.velocity
        if x <= 0 or x + 13 >= 64:
            self.velocity, x = 0.0, 0.0 if x <= 0 else 51.0
        self.x = _pixel(x)
        self.fruit_y = _pixel(self.fruit_y + 2.0266667)
        self.time += 1
        terminated = self.lives <= 0
        truncated = not terminated and self.time >= 2000
        return self._observation(), reward - 5 * terminated, terminated, truncated, {}


class PlainPixelcopter(gymnasium.Env[np.ndarray, int]):
    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:  # type: ignore[type-arg]
        if seed is not None:
            random.seed(seed)
        self.y, self.momentum, self.time = 24.0, 0.0, 0
        self.blocks, self.columns = [self._new_block()], self._new_columns(0)
        return self._observation(), {}

    def _new_block(self) -> list[float]:
        return [48.0 + random.randrange(24), 12.0 + random.randrange(24)]

    def _new_columns(self, start: int) -> list[list[float]]:
        frequency = 4.5 / 48 + random.uniform(-0.01, 0.01)
        centre = lambda x: float(int(24 + 6 * math.sin(frequency * x + random.uniform(0, 0.5))))
        return [[x, centre(x)] for x in (start + 2.0 + 4 * k for k in range(48))]

    def _under(self) -> list[list[float]]:
        return [c for c in self.columns if 13 < _pixel(c[0]) < 19]

    def _observation(self) -> np.ndarray:
        centre = self._under()[0][1]
        x, y = min(block for block in self.blocks if block[0] > 16)
        gaps = (self.y - (centre - 12), centre + 12 - self.y)
        return np.array([self.y, self.momentum, *gaps, x - 16, y, y + 9], np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:  # type: ignore[type-arg]
        self.momentum = 0.99 * (self.momentum + (-0.56 if action == 0 else 0.0576))
        self.y += self.momentum
        for thing in (*self.blocks, *self.columns):
            thing[0] -= 0.64
        row = _pixel(self.y)
        crashed = self.y < 6 or self.y > 42
        crashed |= any(
            13 < _pixel(x) < 19 and y - 4 < row + 1 and y + 5 > row - 1 for x, y in self.blocks
        )
        crashed |= any(self.y - 2.4 <= y - 12 or self.y >= y + 12 for _, y in self._under())
        reward = 0.0
        if len(self.blocks) == 1 and self.blocks[0][0] <= 16:
            reward += 1
            self.blocks.append(self._new_block())
        self.blocks = [block for block in self.blocks if block[0] > -4]
        remaining = [column for column in self.columns if column[0] > -4]
        reward += len(self.columns) - len(remaining)
        self.columns = remaining if len(remaining) > 13 else remaining + self._new_columns(48)
        self.time += 1
        truncated = not crashed and self.time >= 500
        return self._observation(), reward - 5 * crashed, crashed, truncated, {}


def _pixel(x: float) -> int:
    return int(math.copysign(math.floor(abs(x) + 0.5), x))
