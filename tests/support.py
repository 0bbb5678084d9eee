from pathlib import Path

from beartype import BeartypeConf, beartype

# Checks annotations at run time; whole numbers are floats too, as PEP 484 has it.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))

# What conftest gives XLA in this process; others need it too where their bits are compared.
QUICK_TO_COMPILE = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false"
)


def name_of(value):
    """A test id for a parameter that is the same in every process."""
    return getattr(value, "name", None) or getattr(value, "__name__", None)


def children_of(pid):
    """The processes that any thread of a process has started."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for children in lists for child in children.read_text().split()]


INCOMPLETE = {
    "embedding-cifar10", "embedding-cifar100", "embedding-tiny-imagenet",
    "split-mnist", "split-cifar10", "split-fashion",
}  # fmt: skip
"""Tables whose searches are not finished: their published rows are those that are ready."""
