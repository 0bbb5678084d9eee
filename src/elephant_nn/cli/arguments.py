"""What the commands' arguments are, and what they name."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from elephant_nn.experiments.names import UsageError, known
from elephant_nn.experiments.spec import Row, Table
from elephant_nn.experiments.tables import TABLES

Names = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="NAME...")]
Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
Folder = Annotated[Path, tyro.conf.arg(metavar="DIR")]
File = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]
Protocol = Annotated[str, tyro.conf.arg(name="set", metavar="NAME=VALUE,...")]
Count = Annotated[int | None, tyro.conf.arg(metavar="N")]
Address = Annotated[str, tyro.conf.arg(metavar="ADDRESS|local:N")]


@dataclass(frozen=True)
class Where:
    """Where runs are executed.

    Attributes:
        workers: processes that share the cores; default: one per core. 1 gives all cores to one run
            at a time; 0 runs in this process.
        cluster: instead, a Dask cluster: the address of its scheduler (tcp://host:8786), its
            scheduler file, or local:N for N worker processes here.
        checkpoints: a folder that all workers of the cluster share, for checkpoints that outlive a
            worker; default: each worker's own scratch.
        send_data: send data sets from this machine to workers that lack them; otherwise workers
            fetch them.
    """

    workers: Count = None
    cluster: Address = ""
    checkpoints: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    send_data: bool = False

    def __post_init__(self) -> None:
        if not self.cluster and (self.checkpoints or self.send_data):
            raise UsageError("--checkpoints and --send-data need --cluster")
        if self.cluster and self.workers is not None:
            raise UsageError("give --workers (here) or --cluster, not both")


Place = Annotated[Where, tyro.conf.arg(name="")]
HERE = Where()


def named_tables(names: Sequence[str], rows: Path | None = None, protocol: str = "") -> list[Table]:
    from elephant_nn.experiments.api import find_table

    if not names:
        raise UsageError(f"name an experiment: {', '.join(TABLES)}, or all")
    for name in names:
        known(name, [*TABLES, "all"], "experiment")
    if rows is not None and ("all" in names or len(names) > 1):
        raise UsageError("--rows is for one experiment at a time")
    every = TABLES if "all" in names else dict.fromkeys(names)
    return [find_table(name, rows, protocol) for name in every]


def selected(
    tables: Sequence[Table], methods: str, neurons: str
) -> Iterator[tuple[Table, list[Row]]]:
    """The rows that --methods and --neurons leave of each table.

    With several tables, a table may have none of them.
    """
    from elephant_nn.experiments.api import select

    names = [name.strip() for name in methods.split(",") if name.strip()]
    if methods and not names:
        raise UsageError(f"--methods takes names separated by commas, got {methods!r}")
    widths = [_width(text) for text in neurons.split(",")] if neurons else []
    if len(tables) == 1:
        yield tables[0], select(tables[0], names, widths)
        return
    everywhere = sorted({method for table in tables for method in table.methods})
    for name in names:
        known(name, everywhere, "method")
    there = {row.settings.get("neurons") for table in tables for row in table.rows}
    if not set(widths) <= there:
        raise UsageError(f"--neurons {neurons}: no row of these experiments has that width")
    for table in tables:
        mine = [name for name in names if name in table.methods]
        own = {row.settings.get("neurons") for row in table.rows}
        if mine or not names:
            yield table, select(table, mine, [width for width in widths if width in own])


def _width(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        message = f"--neurons takes whole numbers separated by commas, got {text!r}"
        raise UsageError(message) from None
