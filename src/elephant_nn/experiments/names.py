"""Check names that a user gives, and suggest the nearest known one."""

import difflib
from collections.abc import Collection


class UsageError(ValueError):
    """The call was wrong; the message says how to correct it."""


def known(name: str, names: Collection[str], kind: str) -> str:
    if name not in names:
        near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names)}"
        raise UsageError(f"there is no {kind} {name!r}; {hint}")
    return name
