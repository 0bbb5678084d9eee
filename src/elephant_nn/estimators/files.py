"""Save and load fitted estimators: settings and arrays in one safetensors file, no pickle."""

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from elephant_nn.arrays import Arrays, read_arrays, write_arrays
from elephant_nn.files import StorageError

FORMAT = 1


def write_estimator(
    path: Path, kind: str, settings: Mapping[str, Any], state: Mapping[str, Any], arrays: Arrays
) -> Path:
    """Settings and state are what JSON can say; a file is complete or absent."""
    about = {
        "kind": kind,
        "format": str(FORMAT),
        "settings": json.dumps(settings),
        "state": json.dumps(state),
        "versions": json.dumps(
            {"elephant-nn": version("elephant-nn"), "numpy": np.__version__,
             "python": platform.python_version()}
        ),
    }  # fmt: skip
    return write_arrays(path, arrays, about)


def read_estimator(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, Any], Arrays]:
    """Settings, state and arrays of a file with an estimator of this kind."""
    arrays, about = read_arrays(path, f"a saved {kind}", f"{kind}.save")
    if about.get("kind") != kind:
        raise StorageError(f"{path} holds {about.get('kind', 'something else')}, expected {kind}")
    if about.get("format") != str(FORMAT):
        raise StorageError(
            f"{path} has format {about.get('format')}, this version of elephant-nn reads format "
            f"{FORMAT}; install the version that wrote it: {about.get('versions')}"
        )
    return json.loads(about["settings"]), json.loads(about["state"]), arrays
