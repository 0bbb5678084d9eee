"""Rows made up by hand, as a store would hold them."""

import json

import polars as pl

from elephant_nn.runs.store import with_settings


def made_up(table, row, seed, settings=None, *, status="ok", **columns):
    """A stored row of these settings with these columns."""
    cell = table.cell(row, row.settings if settings is None else settings, seed)
    return {
        "cell": cell.id,
        "experiment": table.name,
        "method": row.method,
        "hyper": json.dumps(cell.hyper, sort_keys=True),
        "seed": seed,
        "status": status,
        "reason": "",
        "versions": "elephant-nn 0, jax 0",
        "revision": cell.revision,
        **columns,
    }


def frame(*rows):
    return with_settings(pl.DataFrame(rows, infer_schema_length=None))
