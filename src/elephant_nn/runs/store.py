"""The store: a folder of Parquet files, one a shard, one row a run.

    <out>/<experiment>/rows/<shard>-<checksum>.parquet

The name carries the checksum of the content, so a damaged file is noticed before it is believed.
Rows are keyed by their cell's id: the same run stored twice is read once.
"""

import hashlib
import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from elephant_nn.files import StorageError, StoreWarning, set_aside, write_whole

Row = dict[str, Any]


def rows_folder(out: Path, experiment: str) -> Path:
    return out / experiment / "rows"


def write_rows(folder: Path, shard: str, rows: Sequence[Row]) -> Path:
    buffer = io.BytesIO()
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(buffer, compression="zstd")
    content = buffer.getvalue()
    return write_whole(folder / f"{shard}-{_checksum(content)}.parquet", content)


def read_rows(folder: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """All rows of a folder, each cell once; unreadable files are set aside with a `StoreWarning`.

    An empty or absent folder gives an empty frame.
    """
    frames = []
    for path in _files(folder):
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
            warnings.warn(set_aside(path, "is not a table"), StoreWarning, stacklevel=2)
    if not frames:
        return pl.DataFrame()
    return pl.concat(frames, how="diagonal_relaxed").unique(
        "cell", keep="first", maintain_order=True
    )


def done_cells(folder: Path) -> set[str]:
    rows = read_rows(folder, ["cell"])
    return set(rows["cell"]) if rows.height else set()


def has_shard(folder: Path, shard: str) -> bool:
    return any(folder.glob(f"{shard}-*.parquet"))


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.glob("*.parquet") if path.is_file())
    except OSError as error:
        raise StorageError(f"cannot read {folder}: {error.strerror}") from error


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
