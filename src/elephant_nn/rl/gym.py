"""The four environments for Gymnasium. Importing this module tells it their names:

    import elephant_nn.rl.gym
    gymnasium.make("elephant_nn/Catcher-v0")

or, without an import, `gymnasium.make("elephant_nn.rl.gym:elephant_nn/Catcher-v0")`. JAX is loaded
when the first environment is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

if TYPE_CHECKING:
    from elephant_nn.rl.envs.environment import Environment

NAMES = {
    "MountainCar-v0": "mountain-car",
    "Acrobot-v0": "acrobot",
    "Catcher-v0": "catcher",
    "Pixelcopter-v0": "pixelcopter",
}
FRAMES_A_SECOND = 30

for _name, _task in NAMES.items():
    gymnasium.register(
        f"elephant_nn/{_name}",
        entry_point="elephant_nn.rl.gym:Game",
        vector_entry_point="elephant_nn.rl.gym:Games",
        kwargs={"task": _task},
    )


def _spaces(environment: Environment) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Discrete]:
    low, high = (np.array(bound, np.float32) for bound in environment.bounds)
    seen: Any = gymnasium.spaces.Box(low, high, dtype=np.float32)
    return seen, gymnasium.spaces.Discrete(environment.actions)


def _check_mode(mode: str | None, modes: list[str]) -> None:
    if mode not in (None, *modes):
        raise ValueError(f"render_mode must be None or one of {', '.join(modes)}, got {mode!r}")


class Game(gymnasium.Env[np.ndarray, np.int64]):
    """One environment. It is truncated by itself at the paper's cap; no wrapper is needed."""

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["rgb_array", "human"],
        "render_fps": FRAMES_A_SECOND,
    }

    def __init__(self, task: str, render_mode: str | None = None, **options: Any):
        import jax

        from elephant_nn.rl import make_environment

        _check_mode(render_mode, self.metadata["render_modes"])
        self.environment = make_environment(task, **options)
        self.render_mode = render_mode
        self.observation_space, self.action_space = _spaces(self.environment)
        self._reset, self._step = jax.jit(self.environment.reset), jax.jit(self.environment.step)
        self._observe = jax.jit(self.environment.observe)
        self._state: Any = None
        self._window: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        import jax

        super().reset(seed=seed)
        self._key = jax.random.key(int(self.np_random.integers(2**31)))
        self._key, key = jax.random.split(self._key)
        self._state = self._reset(key)
        if self.render_mode == "human":
            self._show()
        return np.asarray(self._observe(self._state)), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        import jax

        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        if not self.action_space.contains(action):
            raise ValueError(
                f"action must be a whole number from 0 to {self.environment.actions - 1}, "
                f"got {action!r}"
            )
        self._key, key = jax.random.split(self._key)
        after = self._step(self._state, np.int32(action), key)
        self._state = after.state
        if self.render_mode == "human":
            self._show()
        return (
            np.asarray(after.observation),
            float(after.reward),
            bool(after.terminated),
            bool(after.truncated),
            {},
        )

    def render(self) -> Any:
        if self._state is None or self.render_mode is None:
            return None
        return self._show() if self.render_mode == "human" else self._picture()

    def _picture(self) -> np.ndarray:
        return self.environment.draw(self._state)

    def _show(self) -> None:
        try:
            import pygame
        except ImportError as error:
            raise gymnasium.error.DependencyNotInstalled(
                "render_mode='human' opens a window with pygame; run: pip install pygame, or use "
                "render_mode='rgb_array'"
            ) from error
        picture = self._picture()
        if self._window is None:
            pygame.display.init()  # not pygame.init(), which starts sound as well
            self._window = pygame.display.set_mode(picture.shape[1::-1])
            self._clock = pygame.time.Clock()
        surface = pygame.surfarray.make_surface(picture.swapaxes(0, 1))
        self._window.blit(surface, (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(FRAMES_A_SECOND)

    def close(self) -> None:
        if self._window is not None:
            import pygame

            pygame.display.quit()
            self._window = None


class Games(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many environments in one compiled step. Ended ones start anew at the next step."""

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": FRAMES_A_SECOND,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self, task: str, num_envs: int = 1, render_mode: str | None = None, **options: Any
    ):
        import jax

        from elephant_nn.rl import is_whole, make_environment

        _check_mode(render_mode, self.metadata["render_modes"])
        if not is_whole(num_envs) or num_envs < 1:
            raise ValueError(f"num_envs must be a whole number, 1 or more, got {num_envs!r}")
        self.environment = environment = make_environment(task, **options)
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_observation_space, self.single_action_space = _spaces(environment)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._reset = jax.jit(jax.vmap(environment.reset))
        self._observe = jax.jit(jax.vmap(environment.observe))
        self._advance = jax.jit(self._all)
        self._rngs = [np_random()[0] for _ in range(num_envs)]
        self._state: Any = None

    def _all(self, states: Any, over: Any, actions: Any, keys: Any) -> Any:
        import jax
        import jax.numpy as jnp

        keys, now = jnp.unstack(jax.vmap(jax.random.split)(keys), axis=1)
        after = jax.vmap(self.environment.step)(states, actions, now)
        fresh = jax.vmap(lambda key: self.environment.reset(jax.random.fold_in(key, 1)))(now)
        pick = lambda new, old: jnp.where(over.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        states = jax.tree.map(pick, fresh, after.state)
        seen = jax.vmap(self.environment.observe)(states)
        after = after._replace(
            state=states,
            observation=seen,
            reward=jnp.where(over, 0.0, after.reward),
            terminated=after.terminated & ~over,
            truncated=after.truncated & ~over,
        )
        return after, keys

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start all. The i-th plays as a `Game` with seed + i, or with the i-th of the seeds.

        Until its first end; it starts anew with chances of its own.
        """
        import jax

        if options and "reset_mask" in options:
            raise ValueError(
                "reset_mask is for environments that wait to be reset; these start anew by "
                "themselves at the step after their end"
            )
        seeds = self._seeds(seed)
        super().reset(seed=seeds[0])
        for i, own in enumerate(seeds):
            if own is not None:
                self._rngs[i] = np_random(own)[0]
        starts = np.array([rng.integers(2**31) for rng in self._rngs])
        keys = jax.vmap(lambda start: jax.random.split(jax.random.key(start)))(starts)
        self._keys, self._state = keys[:, 0], self._reset(keys[:, 1])
        self._over = np.zeros(self.num_envs, bool)
        return np.asarray(self._observe(self._state)), {}

    def _seeds(self, seed: Any) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [int(seed) + i for i in range(self.num_envs)]
        seeds = [None if s is None else int(s) for s in seed]
        if len(seeds) != self.num_envs:
            raise ValueError(f"there are {self.num_envs} environments, but {len(seeds)} seeds")
        return seeds

    def step(
        self, actions: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        actions = np.asarray(actions)
        integers = np.issubdtype(actions.dtype, np.integer)
        if not integers or not self.action_space.contains(actions.astype(np.int64)):
            raise ValueError(
                f"actions must be {self.num_envs} whole numbers from 0 to "
                f"{self.environment.actions - 1}, got {actions!r}"
            )
        after, self._keys = self._advance(
            self._state, self._over, actions.astype(np.int32), self._keys
        )
        self._state = after.state
        self._over = np.asarray(after.terminated | after.truncated)
        return (
            np.asarray(after.observation),
            np.asarray(after.reward, np.float64),
            np.asarray(after.terminated),
            np.asarray(after.truncated),
            {},
        )

    def render(self) -> tuple[np.ndarray, ...] | None:
        import jax

        if self._state is None or self.render_mode != "rgb_array":
            return None
        return tuple(
            self.environment.draw(jax.tree.map(lambda leaf, i=i: leaf[i], self._state))
            for i in range(self.num_envs)
        )
