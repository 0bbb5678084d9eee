"""Catcher and Pixelcopter as one writes them by hand, for Gymnasium: plain Python, one at a time.

What our compiled environments are compared with; the rules are those of `elephant_nn.rl`.
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
        self._drop()
        return self._seen(), {}

    def _drop(self) -> None:
        self.fruit_x, self.fruit_y = 8 + 4 * random.randrange(12), -4 - 4 * random.randrange(7)

    def _seen(self) -> np.ndarray:
        fruit = ((self.fruit_x - 26) / 26, (self.fruit_y - 20) / 45)
        return np.array([(self.x - 26) / 26, self.velocity / 8, *fruit], np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:  # type: ignore[type-arg]
        reward = 0.0
        if self.fruit_y >= 64:
            reward, self.lives = -1.0, self.lives - 1
            self._drop()
        if -7 <= self.fruit_x - self.x <= 8 and 56 <= self.fruit_y <= 61:
            reward += 1
            self._drop()
        self.velocity = 0.9 * (self.velocity + (-1.344, 1.344, 0.0)[action])
        x = self.x + self.velocity
        if x <= 0 or x + 13 >= 64:
            self.velocity, x = 0.0, 0.0 if x <= 0 else 51.0
        self.x = _pixel(x)
        self.fruit_y = _pixel(self.fruit_y + 2.0266667)
        self.time += 1
        over = self.lives <= 0
        return self._seen(), reward - 5 * over, over, not over and self.time >= 2000, {}


class PlainCopter(gymnasium.Env[np.ndarray, int]):
    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:  # type: ignore[type-arg]
        if seed is not None:
            random.seed(seed)
        self.y, self.momentum, self.time = 24.0, 0.0, 0
        self.blocks, self.columns = [self._block()], self._terrain(0)
        return self._seen(), {}

    def _block(self) -> list[float]:
        return [48.0 + random.randrange(24), 12.0 + random.randrange(24)]

    def _terrain(self, start: int) -> list[list[float]]:
        wave = 4.5 / 48 + random.uniform(-0.01, 0.01)
        places = (start + 2.0 + 4 * k for k in range(48))
        height = lambda x: float(int(24 + 6 * math.sin(wave * x + random.uniform(0, 0.5))))
        return [[x, height(x)] for x in places]

    def _under(self) -> list[list[float]]:
        return [c for c in self.columns if 13 < _pixel(c[0]) < 19]

    def _seen(self) -> np.ndarray:
        middle = self._under()[0][1]
        x, y = min(block for block in self.blocks if block[0] > 16)
        room = (self.y - (middle - 12), middle + 12 - self.y)
        return np.array([self.y, self.momentum, *room, x - 16, y, y + 9], np.float32)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:  # type: ignore[type-arg]
        self.momentum = 0.99 * (self.momentum + (-0.56 if action == 0 else 0.0576))
        self.y += self.momentum
        for thing in (*self.blocks, *self.columns):
            thing[0] -= 0.64
        row = _pixel(self.y)
        over = self.y < 6 or self.y > 42
        over |= any(13 < _pixel(x) < 19 and y - 4 < row + 1 and y + 5 > row - 1
                    for x, y in self.blocks)  # fmt: skip
        over |= any(self.y - 2.4 <= y - 12 or self.y >= y + 12 for _, y in self._under())
        reward = 0.0
        if len(self.blocks) == 1 and self.blocks[0][0] <= 16:
            reward += 1
            self.blocks.append(self._block())
        self.blocks = [block for block in self.blocks if block[0] > -4]
        stay = [column for column in self.columns if column[0] > -4]
        reward += len(self.columns) - len(stay)
        self.columns = stay if len(stay) > 13 else stay + self._terrain(48)
        self.time += 1
        return self._seen(), reward - 5 * over, over, not over and self.time >= 500, {}


def _pixel(x: float) -> int:
    return int(math.copysign(math.floor(abs(x) + 0.5), x))
