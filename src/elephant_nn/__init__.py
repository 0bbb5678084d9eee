"""Neural networks that keep what they learned while data streams by.

The public names are listed in `__init__.pyi`, once, for people, type checkers and this module.
They load when first used, so `import elephant_nn` is instant.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8"))
_MODULES = {
    alias.name: statement.module
    for statement in _STUB.body
    if isinstance(statement, ast.ImportFrom)
    for alias in statement.names
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'elephant_nn' has no attribute {name!r}")
    return getattr(import_module(str(_MODULES[name])), name)


def __dir__() -> list[str]:
    return __all__
