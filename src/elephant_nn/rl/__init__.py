"""Reinforcement learning: environments as pure functions, a replay buffer, and DQN."""

import inspect
import numbers
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elephant_nn.rl.envs.environment import Environment

TASKS = ("mountain-car", "acrobot", "catcher", "pixelcopter")


def is_whole(value: Any) -> bool:
    """Return True for Python and NumPy integers, but not for booleans."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def make_environment(task: str, **options: Any) -> "Environment":
    """Create an environment by its name in `TASKS`.

    Options are arguments of the task's factory: `max_steps`, the steps after which an episode is
    truncated, and for Catcher and Pixelcopter `truncate_pixels`, which rounds positions as pygame
    before 2.3 does.
    """
    from elephant_nn.rl.envs.catcher import catcher
    from elephant_nn.rl.envs.control import acrobot, mountain_car
    from elephant_nn.rl.envs.pixelcopter import pixelcopter

    factories = dict(zip(TASKS, (mountain_car, acrobot, catcher, pixelcopter), strict=True))
    if task not in factories:
        raise ValueError(f"unknown task {task!r}; choose one of {', '.join(factories)}")
    allowed = inspect.signature(factories[task]).parameters
    if unknown := set(options) - set(allowed):
        names, options_there = ", ".join(sorted(unknown)), ", ".join(allowed)
        raise ValueError(f"{task} has no option {names}; its options are {options_there}")
    max_steps = options.get("max_steps", 1)
    if not is_whole(max_steps) or max_steps < 1:
        raise ValueError(f"max_steps must be an integer, 1 or more, got {max_steps!r}")
    return factories[task](**options)
