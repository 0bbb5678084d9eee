"""The command `elephant bench`: runs the scripts of a checkout's benchmarks folder."""

import importlib
import sys
from pathlib import Path

from elephant_nn.cli.arguments import File, Names
from elephant_nn.experiments.names import UsageError, known
from elephant_nn.files import write_whole


def bench(names: Names = (), /, write: File = None) -> int:
    """Measure speed, as ratios in one run against what a user would run instead.

    Needs a checkout: benchmarks are not part of the installed package.

    Args:
        names: benchmarks to run; default: all.
        write: also write the table to this Markdown file.
    """
    root = _checkout()
    sys.path.insert(0, str(root))
    table = importlib.import_module("benchmarks.table")
    for name in names:
        known(name, table.BENCHMARKS, "benchmark")
    text = table.run_benchmarks(names or tuple(table.BENCHMARKS))
    print(text)
    if write is not None:
        write_whole(write, f"{text}\n".encode())
    return 0


def _checkout() -> Path:
    for root in (Path.cwd(), *Path(__file__).resolve().parents):
        if (root / "benchmarks" / "table.py").is_file():
            return root
    raise UsageError("benchmarks are in the source checkout: run elephant bench in its folder")
