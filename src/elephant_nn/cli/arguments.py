"""What a call names, checked: wrong names get the nearest right one."""

import difflib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

import tyro

from elephant_nn.experiments import EXPERIMENTS
from elephant_nn.experiments.spec import SELECTION_SEED, Entry, Experiment

Names = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME...")]
Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
Folder = Annotated[Path, tyro.conf.arg(metavar="DIR")]
Count = Annotated[int | None, tyro.conf.arg(metavar="N")]


class UsageError(Exception):
    """The call was wrong; the message says how to put it right."""


def known(name: str, names: Collection[str], kind: str) -> str:
    if name not in names:
        near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names)}"
        raise UsageError(f"there is no {kind} {name!r}; {hint}")
    return name


def named_experiments(names: Sequence[str]) -> list[Experiment]:
    if not names:
        raise UsageError(f"name an experiment: {', '.join(EXPERIMENTS)}, or all")
    for name in names:
        known(name, [*EXPERIMENTS, "all"], "experiment")
    wanted = EXPERIMENTS if "all" in names else dict.fromkeys(names)
    return [EXPERIMENTS[name] for name in wanted]


def named_entries(experiment: Experiment, methods: str, neurons: str, several: bool) -> list[Entry]:
    """The rows of the table that --methods and --neurons leave: rows without a width stay.

    With several experiments named, an experiment may have none of them.
    """
    entries = list(experiment.entries)
    if methods:
        wanted = [name.strip() for name in methods.split(",") if name.strip()]
        if not wanted:
            raise UsageError(f"--methods takes names separated by commas, got {methods!r}")
        everywhere = {e.method for other in EXPERIMENTS.values() for e in other.entries}
        methods_known = (
            sorted(everywhere) if several else list(dict.fromkeys(e.method for e in entries))
        )
        for name in wanted:
            known(name, methods_known, f"method of {experiment.name}")
        entries = [entry for entry in entries if entry.method in wanted]
    if neurons:
        widths = {_whole(text, "--neurons") for text in neurons.split(",")}
        where = EXPERIMENTS.values() if several else [experiment]
        there = {entry.settings.get("neurons") for other in where for entry in other.entries}
        if not widths <= there:
            offered = ", ".join(str(n) for n in sorted(n for n in there if n is not None))
            who = "they have" if several else f"{experiment.name} has"
            raise UsageError(f"--neurons {neurons}: {who} {offered or 'no widths'}")
        left = [e for e in entries if e.settings.get("neurons", min(widths)) in widths]
        if entries and not left and not several:
            has = ", ".join(str(n) for n in sorted({e.settings["neurons"] for e in entries}))
            raise UsageError(f"--neurons {neurons}: {methods} of {experiment.name} has {has}")
        entries = left
    return entries


def _whole(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"{option} takes whole numbers separated by commas, got {text!r}"
        ) from None


def seed_count(seeds: int | None, experiment: Experiment) -> int:
    if seeds is None:
        return experiment.seeds
    if not 1 <= seeds < SELECTION_SEED:
        raise UsageError(f"--seeds must be between 1 and {SELECTION_SEED - 1}, got {seeds}")
    return seeds
