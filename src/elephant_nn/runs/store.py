"""The store: a folder of Parquet files, one per shard, one row per run.

    <out>/<table>/rows/<shard>-<checksum>.parquet

A file's name contains the checksum of its content, so damage is detected on reading. Rows are keyed
by the id of their cell: a run that is stored twice is read once.
"""

import hashlib
import io
import json
import os
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from elephant_nn.files import StorageError, StoreWarning, set_aside, write_whole
from elephant_nn.runs.cells import setting_id

Record = dict[str, Any]
"""The columns of one run."""


def rows_folder(out: Path, experiment: str) -> Path:
    return out / experiment / "rows"


def write_rows(folder: Path, shard: str, rows: Sequence[Record]) -> Path:
    buffer = io.BytesIO()
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(buffer, compression="zstd")
    content = buffer.getvalue()
    return write_whole(folder / f"{shard}-{_checksum(content)}.parquet", content)


def read_rows(
    folder: Path, columns: Sequence[str] | None = None, besides: Collection[Path] = ()
) -> pl.DataFrame:
    """All rows of a folder, one per cell; damaged files are set aside with a `StoreWarning`.

    Of several rows of a cell the newest counts. An empty or absent folder gives an empty frame.
    The files `besides` are left out.
    """
    frames = []
    for path in row_files(folder):
        if path in besides:
            continue
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            continue  # another command has just set it aside
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from error
        if _checksum(content) != path.stem.rpartition("-")[2]:
            reason = f"is damaged (its {len(content)} bytes do not match the checksum in its name)"
            warnings.warn(set_aside(path, reason), StoreWarning, stacklevel=2)
            continue
        try:
            schema = pl.read_parquet_schema(io.BytesIO(content))
            wanted = None if columns is None else [name for name in columns if name in schema]
            frames.append(pl.read_parquet(io.BytesIO(content), columns=wanted))
        except pl.exceptions.PolarsError:
            warnings.warn(set_aside(path, "is not a Parquet file"), StoreWarning, stacklevel=2)
    rows = merge(frames)
    return with_settings(rows) if columns is None else rows


def merge(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """All rows, one per cell: the first."""
    frames = [frame for frame in frames if frame.height]
    if not frames:
        return pl.DataFrame()
    rows = pl.concat(frames, how="diagonal_relaxed")
    return rows.unique("cell", keep="first", maintain_order=True)


def with_settings(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the columns `setting` and `revision`, which older rows lack."""
    if not {"experiment", "method", "hyper"} <= set(rows.columns):
        return rows
    revision = pl.col("revision").fill_null(0) if "revision" in rows.columns else pl.lit(0)
    rows = rows.with_columns(revision.cast(pl.Int64).alias("revision"))
    columns = ("experiment", "method", "hyper", "revision")
    ids = {
        key: setting_id(key[0], key[1], json.loads(key[2]), key[3])
        for key in rows.select(columns).unique().iter_rows()
    }
    found = [ids[key] for key in rows.select(columns).iter_rows()]
    return rows.with_columns(pl.Series("setting", found))


def drop_older(folder: Path, cells: Collection[str], newest: Collection[Path]) -> None:
    """Remove the rows of some cells from all files but the newest."""
    mine = pl.col("cell").is_in(list(cells))
    for path in row_files(folder):
        try:
            if path in newest or not pl.read_parquet(path, columns=["cell"]).filter(mine).height:
                continue
            rest, modified = pl.read_parquet(path).filter(~mine), path.stat()
        except (pl.exceptions.PolarsError, OSError):
            continue  # damaged, or removed by another command: reading the store deals with it
        if rest.height:
            kept = write_rows(folder, path.stem.rpartition("-")[0], rest.to_dicts())
            os.utime(kept, ns=(modified.st_atime_ns, modified.st_mtime_ns))
        path.unlink(missing_ok=True)


def done_cells(folder: Path, besides: Collection[Path] = ()) -> set[str]:
    rows = read_rows(folder, ["cell"], besides)
    return set(rows["cell"]) if rows.height else set()


def row_files(folder: Path) -> list[Path]:
    """The files of rows, the newest first."""
    try:
        found = [
            (path.stat().st_mtime_ns, path) for path in folder.glob("*.parquet") if path.is_file()
        ]
        return [path for _, path in sorted(found, reverse=True)]
    except FileNotFoundError:
        return row_files(folder)  # another command has just removed one
    except OSError as error:
        raise StorageError(f"cannot read {folder}: {error.strerror}") from error


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
