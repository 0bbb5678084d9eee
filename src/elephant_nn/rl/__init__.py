"""Reinforcement learning: environments as pure functions, a ring buffer, DQN."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elephant_nn.rl.environment import Environment

TASKS = ("mountain-car", "acrobot", "catcher", "pixelcopter")


def make_environment(task: str, **options: Any) -> "Environment":
    """One of the four tasks by name; options are its own, `cap` or `truncating`."""
    from elephant_nn.rl.catcher import catcher
    from elephant_nn.rl.control import acrobot, mountain_car
    from elephant_nn.rl.pixelcopter import pixelcopter

    makers = dict(zip(TASKS, (mountain_car, acrobot, catcher, pixelcopter), strict=True))
    if task not in makers:
        raise ValueError(f"there is no task {task!r}; there are: {', '.join(makers)}")
    return makers[task](**options)
