"""The command `elephant`."""

import codecs
import io
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

STOPPED = 130
EXTRAS = {
    **dict.fromkeys(
        ("tyro", "polars", "matplotlib", "rich", "sklearn", "scipy", "PIL"), "experiments"
    ),
    **dict.fromkeys(("dask", "distributed"), "cluster"),
}
"""The extra that each package is in."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 done; 1 some runs failed; 2 the call was wrong; 130 stopped by Ctrl-C."""
    try:
        arguments = list(sys.argv[1:] if argv is None else argv)
        warnings.showwarning = _one_line_warning
        if arguments == ["--version"]:
            from importlib.metadata import version

            print(f"elephant-nn {version('elephant-nn')}")
            return 0
        return _dispatch(arguments)
    except KeyboardInterrupt:
        message = "stopped; finished runs are stored, and the same command continues from here"
        return _report_error(message, STOPPED)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        message = f'this command needs {error.name}; run: pip install "elephant-nn[{extra}]"'
        return _report_error(message, 2)


def _dispatch(arguments: list[str]) -> int:
    import tyro

    from elephant_nn.cli.commands import COMMANDS
    from elephant_nn.experiments.names import UsageError, known
    from elephant_nn.experiments.tables import TABLES
    from elephant_nn.files import ClusterError, DataError, StorageError

    try:
        if arguments and arguments[0] in TABLES:
            raise UsageError(f"say what to do: elephant reproduce {arguments[0]}")
        if arguments and not arguments[0].startswith("-"):
            known(arguments[0], COMMANDS, "command")
        return tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="elephant",
            description="Neural networks that keep what they learned while data streams by: the "
            "experiments of the paper, one command each. Start with: elephant reproduce sine",
            args=arguments,
        )
    except UsageError as error:
        return _report_error(error, 2)
    except (StorageError, DataError, ClusterError) as error:
        return _report_error(error, 1)


def run() -> None:
    """The entry point: `main`, with output that may be closed, full, or plain ASCII."""
    codecs.register_error("plain", _plain)
    sys.stdout, sys.stderr = (
        stream if stream is not None else Path(os.devnull).open("w")  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr)
    )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="plain")
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as with `| head`
        _discard_output()
        status = 0
    except OSError as error:
        _discard_output()
        status = _report_error(f"cannot write the output: {error.strerror or error}", 1)
    if status == STOPPED:  # a compiled run in this process may still be at work: do not wait for it
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    replacements = {"±": "+-", "≤": "<=", "≥": ">=", "…": "...", "─": "-", "━": "-", "╺": "-"}
    text = error.object[error.start : error.end]
    return "".join(replacements.get(character, "?") for character in text), error.end


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_error(message: object, status: int) -> int:
    print(f"elephant: {message}", file=sys.stderr)
    return status


def _one_line_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    print(f"elephant: {message}", file=sys.stderr)
