"""Every table and figure: methods, tuned settings, grid, the paper's numbers. Free of JAX."""

from elephant_nn.experiments.activations import ACTIVATIONS
from elephant_nn.experiments.edit import EDIT
from elephant_nn.experiments.sine import SINE
from elephant_nn.experiments.spec import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for experiment in (SINE, EDIT, ACTIVATIONS)
}
