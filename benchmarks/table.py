"""Speed, as ratios within one run: a busy machine hardly changes them."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from elephant_nn.report.tables import Text, as_markdown


@dataclass(frozen=True)
class Measurement:
    """One line of the table: how ours compares with the alternative, and the target."""

    what: str
    ours: str
    other: str
    ratio: float
    target: str


BENCHMARKS = {
    "sine-grid": "benchmarks.sine_grid",
    "activation": "benchmarks.activation",
    "split": "benchmarks.split",
    "embedding": "benchmarks.embedding",
    "estimators": "benchmarks.estimators",
    "ridge": "benchmarks.ridge",
    "torch-step": "benchmarks.torch_step",
    "rl": "benchmarks.rl",
    "cluster": "benchmarks.cluster",
}
"""Modules with a function `measure() -> list[Measurement]`."""


def run_benchmarks(names: Sequence[str]) -> str:
    """Run benchmarks and lay their measurements out as a Markdown table."""
    import jax

    lines = [
        [m.what, m.ours, m.other, f"{m.ratio:.2f}", m.target]
        for name in names
        for m in import_module(BENCHMARKS[name]).measure()
    ]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, jax {jax.__version__}"
    return as_markdown(
        Text(
            f"elephant bench {' '.join(names)} ({machine})",
            ["what", "ours", "against", "ratio", "target"],
            lines,
        )
    )
