"""Every table and figure: methods, tuned settings, grid, the paper's numbers. Free of JAX."""

from elephant_nn.experiments.activations import ACTIVATIONS
from elephant_nn.experiments.edit import EDIT
from elephant_nn.experiments.rl import (
    RL_ACROBOT,
    RL_BUFFERS,
    RL_CATCHER,
    RL_MOUNTAIN_CAR,
    RL_PIXELCOPTER,
)
from elephant_nn.experiments.sine import SINE
from elephant_nn.experiments.spec import Experiment
from elephant_nn.experiments.split_cifar10 import SPLIT_CIFAR10
from elephant_nn.experiments.split_digits import SPLIT_DIGITS
from elephant_nn.experiments.split_mnist import SPLIT_MNIST
from elephant_nn.experiments.split_protocols import SPLIT_PROTOCOLS, SPLIT_PROTOCOLS_CIFAR10

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        SINE,
        EDIT,
        ACTIVATIONS,
        SPLIT_DIGITS,
        SPLIT_MNIST,
        SPLIT_CIFAR10,
        SPLIT_PROTOCOLS,
        SPLIT_PROTOCOLS_CIFAR10,
        RL_MOUNTAIN_CAR,
        RL_ACROBOT,
        RL_CATCHER,
        RL_PIXELCOPTER,
        RL_BUFFERS,
    )
}
