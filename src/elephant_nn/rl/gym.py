"""The four environments for Gymnasium. Importing this module registers them:

    import elephant_nn.rl.gym
    gymnasium.make("elephant_nn/Catcher-v0")

or, without the import, `gymnasium.make("elephant_nn.rl.gym:elephant_nn/Catcher-v0")`. JAX is
imported when the first environment is created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

try:
    import gymnasium
    from gymnasium.utils.seeding import np_random
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise ImportError(
        'elephant_nn.rl.gym needs Gymnasium: pip install "elephant-nn[gym]"'
    ) from error

if TYPE_CHECKING:
    from elephant_nn.rl.envs.environment import Environment

IDS = {
    "elephant_nn/MountainCar-v0": "mountain-car",
    "elephant_nn/Acrobot-v0": "acrobot",
    "elephant_nn/Catcher-v0": "catcher",
    "elephant_nn/Pixelcopter-v0": "pixelcopter",
}
FPS = 30

for _id, _task in IDS.items():
    gymnasium.register(
        _id, entry_point="elephant_nn.rl.gym:ElephantEnv",
        vector_entry_point="elephant_nn.rl.gym:ElephantVectorEnv", kwargs={"task": _task},
    )  # fmt: skip


def _spaces(environment: Environment) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Discrete]:
    low, high = (np.array(bound, np.float32) for bound in environment.bounds)
    observations: Any = gymnasium.spaces.Box(low, high, dtype=np.float32)
    return observations, gymnasium.spaces.Discrete(environment.actions)


def _check_mode(mode: str | None, modes: list[str]) -> None:
    if mode not in (None, *modes):
        raise ValueError(f"render_mode must be None or one of {', '.join(modes)}, got {mode!r}")


class ElephantEnv(gymnasium.Env[np.ndarray, np.int64]):
    """One of the four tasks as a Gymnasium environment: `task` and `options` are those of
    `elephant_nn.rl.make_environment`, `render_mode` is None, "rgb_array" or "human".

    Episodes are truncated after `max_steps`, by default the paper's, so no TimeLimit wrapper is
    needed.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "human"], "render_fps": FPS}  # noqa: RUF012

    def __init__(self, task: str, render_mode: str | None = None, **options: Any):
        import jax

        from elephant_nn.rl import make_environment

        _check_mode(render_mode, self.metadata["render_modes"])
        self.environment = own = make_environment(task, **options)
        self.render_mode = render_mode
        self.observation_space, self.action_space = _spaces(own)
        self._reset, self._step = jax.jit(own.reset), jax.jit(own.step)
        self._observe = jax.jit(own.observe)
        self._state: Any = None
        self._window: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode."""
        import jax

        super().reset(seed=seed)
        self._key = jax.random.key(int(self.np_random.integers(2**31)))
        self._key, key = jax.random.split(self._key)
        self._state = self._reset(key)
        if self.render_mode == "human":
            self._show()
        return np.asarray(self._observe(self._state)), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Take one step: observation, reward, terminated, truncated, info."""
        import jax

        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        if not self.action_space.contains(action):
            last = self.environment.actions - 1
            raise ValueError(f"action must be an integer from 0 to {last}, got {action!r}")
        self._key, key = jax.random.split(self._key)
        after = self._step(self._state, np.int32(action), key)
        self._state = after.state
        if self.render_mode == "human":
            self._show()
        terminated, truncated = bool(after.terminated), bool(after.truncated)
        return np.asarray(after.observation), float(after.reward), terminated, truncated, {}

    def render(self) -> Any:
        """Return an RGB array, or show the state in a window, depending on `render_mode`."""
        if self._state is None or self.render_mode is None:
            return None
        human = self.render_mode == "human"
        return self._show() if human else self.environment.render(self._state)

    def _show(self) -> None:
        try:
            import pygame
        except ImportError as error:
            raise gymnasium.error.DependencyNotInstalled(
                "render_mode='human' needs pygame: pip install \"elephant-nn[gym]\", or use "
                "render_mode='rgb_array'"
            ) from error
        frame = self.environment.render(self._state)
        if self._window is None:
            pygame.display.init()  # not pygame.init(), which starts sound as well
            self._window = pygame.display.set_mode(frame.shape[1::-1])
            self._clock = pygame.time.Clock()
        self._window.blit(pygame.surfarray.make_surface(frame.swapaxes(0, 1)), (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(FPS)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            import pygame

            pygame.display.quit()
            self._window = None


class ElephantVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Several copies of one task in one compiled step; `render_mode` is None or "rgb_array".

    A sub-environment whose episode ended resets at the next step (`AutoresetMode.NEXT_STEP`).
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": FPS,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self, task: str, num_envs: int = 1, render_mode: str | None = None, **options: Any
    ):
        import jax

        from elephant_nn.rl import is_whole, make_environment

        _check_mode(render_mode, self.metadata["render_modes"])
        if not is_whole(num_envs) or num_envs < 1:
            raise ValueError(f"num_envs must be an integer, 1 or more, got {num_envs!r}")
        self.environment = own = make_environment(task, **options)
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_observation_space, self.single_action_space = _spaces(own)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._reset, self._observe = (jax.jit(jax.vmap(f)) for f in (own.reset, own.observe))
        self._step = jax.jit(self._step_all)
        self._rngs = [np_random()[0] for _ in range(num_envs)]
        self._state: Any = None

    def _step_all(self, states: Any, done: Any, actions: Any, keys: Any) -> Any:
        """Step all sub-environments, but reset those that were done."""
        import jax
        import jax.numpy as jnp

        keys, step_keys = jnp.unstack(jax.vmap(jax.random.split)(keys), axis=1)
        after = jax.vmap(self.environment.step)(states, actions, step_keys)
        starts = jax.vmap(lambda key: self.environment.reset(jax.random.fold_in(key, 1)))(step_keys)
        where_done = lambda new, old: jnp.where(done.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        states = jax.tree.map(where_done, starts, after.state)
        after = after._replace(
            state=states,
            observation=jax.vmap(self.environment.observe)(states),
            reward=jnp.where(done, 0.0, after.reward),
            terminated=after.terminated & ~done,
            truncated=after.truncated & ~done,
        )
        return after, keys

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode in every sub-environment.

        With an integer seed, the first episode of sub-environment i is that of an `ElephantEnv`
        with seed + i. With a sequence of seeds, it is that of an `ElephantEnv` with the i-th seed.
        """
        import jax

        if options and "reset_mask" in options:
            raise ValueError(
                "reset_mask is not supported: sub-environments reset automatically at the step "
                "after their episode ended; call reset without it"
            )
        seeds = self._seeds(seed)
        super().reset(seed=seeds[0])
        for i, own_seed in enumerate(seeds):
            if own_seed is not None:
                self._rngs[i] = np_random(own_seed)[0]
        key_seeds = np.array([rng.integers(2**31) for rng in self._rngs])
        keys = jax.vmap(lambda key_seed: jax.random.split(jax.random.key(key_seed)))(key_seeds)
        self._keys, self._state = keys[:, 0], self._reset(keys[:, 1])
        self._done = np.zeros(self.num_envs, bool)
        return np.asarray(self._observe(self._state)), {}

    def _seeds(self, seed: Any) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [int(seed) + i for i in range(self.num_envs)]
        seeds = [None if s is None else int(s) for s in seed]
        if len(seeds) != self.num_envs:
            raise ValueError(
                f"got {len(seeds)} seeds for {self.num_envs} sub-environments; pass one integer, "
                "or one seed per sub-environment"
            )
        return seeds

    def step(
        self, actions: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one step in every sub-environment."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        actions, n, last = np.asarray(actions), self.num_envs, self.environment.actions - 1
        integers = np.issubdtype(actions.dtype, np.integer)
        if not integers or not self.action_space.contains(actions.astype(np.int64)):
            raise ValueError(f"actions must be {n} integers from 0 to {last}, got {actions!r}")
        actions = actions.astype(np.int32)
        after, self._keys = self._step(self._state, self._done, actions, self._keys)
        self._state = after.state
        self._done = np.asarray(after.terminated | after.truncated)
        ended = np.asarray(after.terminated), np.asarray(after.truncated)
        return np.asarray(after.observation), np.asarray(after.reward, np.float64), *ended, {}

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return one RGB array per sub-environment."""
        import jax

        if self._state is None or self.render_mode != "rgb_array":
            return None
        return tuple(
            self.environment.render(jax.tree.map(lambda leaf, i=i: leaf[i], self._state))
            for i in range(self.num_envs)
        )
