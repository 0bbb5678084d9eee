"""The command `elephant`."""

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import tyro

from elephant_nn.cli import commands
from elephant_nn.cli.arguments import UsageError, known
from elephant_nn.cli.playing import play

COMMANDS: dict[str, Callable[..., int]] = {
    "list": commands.list_experiments,
    "reproduce": commands.reproduce,
    "sweep": commands.sweep,
    "show": commands.show,
    "play": play,
    "report": commands.report,
    "data": commands.data,
    "bench": commands.bench,
}

STOPPED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 done; 1 some runs failed; 2 the call was wrong; 130 stopped by Ctrl-C."""
    from elephant_nn.files import DataError, StorageError

    warnings.showwarning = _one_line_warning
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        from importlib.metadata import version

        print(f"elephant-nn {version('elephant-nn')}")
        return 0
    if arguments and not arguments[0].startswith("-"):
        try:
            known(arguments[0], COMMANDS, "command")
        except UsageError as error:
            return _complain(error, 2)
    try:
        return tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="elephant",
            description="Neural networks that keep what they learned while data streams by: the "
            "experiments of the paper, one command each. Start with: elephant reproduce sine",
            args=arguments,
        )
    except UsageError as error:
        return _complain(error, 2)
    except (StorageError, DataError) as error:
        return _complain(error, 1)
    except KeyboardInterrupt:
        return _complain(
            "stopped; what was finished is kept, the same command goes on from here", STOPPED
        )


def run() -> None:
    """What the installed command calls: `main`, with streams that may be closed or cut short."""
    sys.stdout, sys.stderr = (
        stream if stream is not None else Path(os.devnull).open("w")  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr)
    )
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    if status == STOPPED:  # a compiled run may still be at work, and leaving in order would crash
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _complain(message: object, status: int) -> int:
    print(f"elephant: {message}", file=sys.stderr)
    return status


def _one_line_warning(message, category, filename, lineno, file=None, line=None) -> None:  # type: ignore[no-untyped-def]
    print(f"elephant: {message}", file=sys.stderr)
