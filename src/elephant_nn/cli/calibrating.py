"""The command `elephant calibrate`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from elephant_nn.experiments.names import UsageError
from elephant_nn.files import DataError

if TYPE_CHECKING:
    import numpy as np

Source = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="FILE|NAME")]
ROWS = 2000
TABLES = (".csv", ".tsv", ".parquet")


def calibrate(
    source: Source, /, neurons: int = 1000, d: float = 4.0,
    head: Literal["gradient", "ridge"] = "gradient", drop: str = "", standardise: bool = False,
    seed: int = 0, format: Literal["text", "json"] = "text",  # noqa: A002
) -> int:  # fmt: skip
    """Suggest a, sigma_bias and a learning rate of an elephant layer for your data.

    A rule without training: it looks at inputs only, 2,000 of them at most. Give the inputs as the
    network sees them. Arrays and images of type uint8 are scaled to [0, 1].

    Args:
        source: a .csv, .tsv, .parquet, .npy or .npz file, a folder of images, or the name of a data
            set (see `elephant data list`).
        neurons: units of the layer.
        d: their sharpness.
        head: what learns from the units: gradient steps, or ridge regression.
        drop: columns of a table that are no inputs, separated by commas, such as the label; columns
            of text are left out anyway.
        standardise: give each column mean 0 and deviation 1 first.
        seed: of the random units on which the rule is evaluated.
        format: text, or json.
    """
    import numpy as np

    from elephant_nn.calibration import calibrate as suggest

    x, notes = _inputs(source, [name.strip() for name in drop.split(",") if name.strip()])
    if standardise:
        deviation = x.std(0)
        x = (x - x.mean(0)) / np.where(deviation > 0, deviation, 1.0)
    try:
        found = suggest(x, neurons, d=d, seed=seed, head=head)
    except ValueError as error:
        raise UsageError(f"{source}: {str(error).removeprefix('calibrate: ')}") from error
    if format == "json":
        print(json.dumps(asdict(found)))
        return 0
    for note in notes:
        print(note)
    print(found)
    spread = x.std(0)
    varying = spread[spread > 0]
    if not standardise and len(varying) and varying.max() > 100 * np.median(varying):
        print(
            "some columns have more than 100 times the spread of others and decide alone; "
            "standardise the inputs in your program, and try --standardise"
        )
    return 0


def _inputs(source: str, drop: list[str]) -> tuple[np.ndarray, list[str]]:
    """A sample of inputs, one per row, and what was done to them."""
    import numpy as np

    path = Path(source)
    suffix = path.suffix.lower()
    if suffix in TABLES:
        return _table(path, drop)
    if drop:
        raise UsageError(f"--drop is for tables with columns ({', '.join(TABLES)})")
    x = _array(path) if suffix in (".npy", ".npz") else _dataset(source)
    rows = x[_spread(len(x))].reshape(min(len(x), ROWS), -1)
    notes = [f"{len(rows):,} of {len(x):,} samples with {rows.shape[1]:,} inputs"]
    if x.dtype == np.uint8:
        return rows / 255.0, [*notes, "pixels are scaled to [0, 1]"]
    return rows, notes


def _spread(n: int) -> np.ndarray:
    """Rows at even distances, so that a file sorted by class shows all of them."""
    import numpy as np

    return np.linspace(0, n - 1, min(n, ROWS)).astype(int) if n else np.arange(0)


def _dataset(source: str) -> np.ndarray:
    from elephant_nn.data.loading import load

    return load(source).x_train


def _array(path: Path) -> np.ndarray:
    import numpy as np

    try:
        found = np.load(path, allow_pickle=False)
        if isinstance(found, np.ndarray):
            return _as_rows(path, found)
        with found as arrays:
            for name in ("x_train", "x", "X"):
                if name in arrays:
                    return _as_rows(path, arrays[name])
            if len(arrays.files) == 1:
                return _as_rows(path, arrays[arrays.files[0]])
            raise DataError(
                f"{path} has the arrays {', '.join(arrays.files)}; name the inputs x_train or x"
            )
    except FileNotFoundError as error:
        raise DataError(f"there is no file {path}") from error
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"cannot read {path}: it is no NumPy file of plain arrays") from error


def _as_rows(path: Path, x: np.ndarray) -> np.ndarray:
    if x.ndim < 2 or len(x) < 2 or not x.size:
        raise DataError(
            f"{path}: expected one row per sample, two or more, got an array of shape {x.shape}"
        )
    return x


def _table(path: Path, drop: list[str]) -> tuple[np.ndarray, list[str]]:
    import numpy as np
    import polars as pl
    import polars.selectors as cs

    try:
        if path.suffix.lower() == ".parquet":
            table = pl.read_parquet(path)
        else:
            separator = "\t" if path.suffix.lower() == ".tsv" else ","
            table = pl.read_csv(path, separator=separator, infer_schema_length=10_000)
    except FileNotFoundError as error:
        raise DataError(f"there is no file {path}") from error
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"cannot read {path}: {str(error).splitlines()[0]}") from error
    unknown = [name for name in drop if name not in table.columns]
    if unknown:
        raise UsageError(f"--drop {unknown[0]}: the columns are {', '.join(table.columns)}")
    numbers = table.drop(drop).select(cs.numeric() | cs.boolean())
    if not numbers.width:
        raise DataError(f"{path} has no columns of numbers")
    texts = [name for name in table.columns if name not in (*numbers.columns, *drop)]
    x = numbers.cast(pl.Float64).to_numpy()
    complete = x[np.isfinite(x).all(1)]
    if len(complete) < 2:
        raise DataError(
            f"{path}: {len(complete)} of {len(x)} rows have a number in every column; two or more "
            "are needed, so drop columns with gaps (--drop) or fill them"
        )
    notes = [f"{min(len(complete), ROWS):,} of {len(x):,} rows, {numbers.width} columns"]
    if texts:
        notes.append(f"left out columns of text: {', '.join(texts)}")
    if len(complete) < len(x):
        notes.append(f"left out {len(x) - len(complete):,} rows with gaps")
    return complete[_spread(len(complete))], notes
