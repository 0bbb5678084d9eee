"""`python -m elephant_nn` is the command `elephant`."""

from elephant_nn.cli import run

run()
