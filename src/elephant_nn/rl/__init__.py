"""Reinforcement learning: environments as pure functions, a ring buffer, DQN."""

import inspect
import numbers
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elephant_nn.rl.envs.environment import Environment

TASKS = ("mountain-car", "acrobot", "catcher", "pixelcopter")


def is_whole(value: Any) -> bool:
    """Python's and NumPy's whole numbers, not True and False."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def make_environment(task: str, **options: Any) -> "Environment":
    """One of the four tasks by name.

    Options: `cap`, steps after which an episode is truncated, and for Catcher and Pixelcopter
    `truncating`, the rounding of pygame before 2.3.
    """
    from elephant_nn.rl.envs.catcher import catcher
    from elephant_nn.rl.envs.control import acrobot, mountain_car
    from elephant_nn.rl.envs.pixelcopter import pixelcopter

    makers = dict(zip(TASKS, (mountain_car, acrobot, catcher, pixelcopter), strict=True))
    if task not in makers:
        raise ValueError(f"there is no task {task!r}; there are: {', '.join(makers)}")
    allowed = inspect.signature(makers[task]).parameters
    if unknown := set(options) - set(allowed):
        raise ValueError(
            f"{task} has no option {', '.join(sorted(unknown))}; it has: {', '.join(allowed)}"
        )
    cap = options.get("cap", 1)
    if not is_whole(cap) or cap < 1:
        raise ValueError(f"cap must be a whole number of steps, 1 or more, got {cap!r}")
    return makers[task](**options)
