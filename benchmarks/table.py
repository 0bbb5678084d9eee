"""Speed, as ratios within one run: the machine may be busy, the ratio hardly cares."""

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from elephant_nn.report.tables import Grid, as_markdown


@dataclass(frozen=True)
class Measurement:
    """One line of the table: how ours compares with the alternative, and what was hoped for."""

    what: str
    ours: str
    other: str
    ratio: float
    target: str


def _sine_grid() -> list[Measurement]:
    from benchmarks.sine_grid import measure

    return measure()


def _activation() -> list[Measurement]:
    from benchmarks.activation import measure

    return measure()


def _split() -> list[Measurement]:
    from benchmarks.split import measure

    return measure()


def _rl() -> list[Measurement]:
    from benchmarks.rl import measure

    return measure()


BENCHMARKS: dict[str, Callable[[], list[Measurement]]] = {
    "sine-grid": _sine_grid,
    "activation": _activation,
    "split": _split,
    "rl": _rl,
}


def run_benchmarks(names: Sequence[str]) -> str:
    """Run benchmarks and lay their measurements out as a Markdown table."""
    import jax

    lines = [
        [m.what, m.ours, m.other, f"{m.ratio:.2f}", m.target]
        for name in names
        for m in BENCHMARKS[name]()
    ]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, jax {jax.__version__}"
    return as_markdown(
        Grid(
            f"elephant bench {' '.join(names)} ({machine})",
            ["what", "ours", "against", "ratio", "target"],
            lines,
        )
    )
