"""Every table: its rows, grids, searches and the paper's numbers. Free of JAX.

The settings that sweeps have chosen are in one JSON file per table, written by
`elephant sweep NAME --write FILE`.
"""

from elephant_nn.experiments.spec import Table
from elephant_nn.experiments.tables.embedding import EMBEDDING
from elephant_nn.experiments.tables.embedding_protocols import EMBEDDING_PROTOCOLS
from elephant_nn.experiments.tables.rl import RL
from elephant_nn.experiments.tables.sine import ACTIVATIONS, EDIT, SINE
from elephant_nn.experiments.tables.split_cifar10 import SPLIT_CIFAR10
from elephant_nn.experiments.tables.split_digits import SPLIT_DIGITS
from elephant_nn.experiments.tables.split_fashion import SPLIT_FASHION
from elephant_nn.experiments.tables.split_mnist import SPLIT_MNIST
from elephant_nn.experiments.tables.split_protocols import SPLIT_PROTOCOLS, SPLIT_PROTOCOLS_CIFAR10

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        SINE, EDIT, ACTIVATIONS, SPLIT_DIGITS, SPLIT_MNIST, SPLIT_CIFAR10, SPLIT_FASHION,
        SPLIT_PROTOCOLS, SPLIT_PROTOCOLS_CIFAR10, *EMBEDDING, EMBEDDING_PROTOCOLS, *RL,
    )
}  # fmt: skip
