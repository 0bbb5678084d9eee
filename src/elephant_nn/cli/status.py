"""The command `elephant status`."""

from elephant_nn.cli.arguments import Address
from elephant_nn.experiments.names import UsageError


def status(cluster: Address = "") -> int:
    """Print what a Dask cluster runs where, how far it is, what failed, and the time left.

    Args:
        cluster: the address of its scheduler (tcp://host:8786), or its scheduler file.
    """
    if not cluster or cluster.startswith("local:"):
        raise UsageError("--cluster takes the address of a scheduler or a scheduler file")
    from elephant_nn.runs.connection import connected, silence_dask
    from elephant_nn.runs.status import cluster_status, lines

    silence_dask()
    try:
        with connected(cluster) as client:
            print("\n".join(lines(cluster_status(client))))
    except ValueError as error:
        raise UsageError(f"--{error}") from error
    return 0
