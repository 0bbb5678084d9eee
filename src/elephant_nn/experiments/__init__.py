"""The tables and figures of the paper and beyond: methods, problems, rows, and how to run them.

from elephant_nn.experiments import reproduce
reproduce("split-digits", methods=["mlp", "emlp"], seeds=3)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elephant_nn.experiments.api import reproduce, rows, sweep
    from elephant_nn.experiments.spec import Row, Search

__all__ = ["Row", "Search", "reproduce", "rows", "sweep"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "spec" if name in ("Row", "Search") else "api"
    return getattr(import_module(f"{__name__}.{home}"), name)
