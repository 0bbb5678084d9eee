"""The settings that sweeps have chosen, beside the tables; and where builders and problems are."""

from collections.abc import Sequence
from pathlib import Path

from elephant_nn.experiments.spec import Row, read_choices, with_choices

METHODS = "elephant_nn.experiments.methods"
PROBLEMS = "elephant_nn.experiments.problems"


def chosen(table: str, rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows of a table with their chosen settings."""
    return with_choices(rows, read_choices(Path(__file__).with_name(f"{table}.json")))
