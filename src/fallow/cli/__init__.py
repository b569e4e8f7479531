"""The command line, one file a command."""

import atexit
import contextlib
import os
import signal
import sys

INTERRUPTED, CLOSED_PIPE = 130, 141
"""Exit codes as shells have them: 128 and the number of the signal."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    from fallow.cli.commands import run

    return run(sys.argv[1:] if arguments is None else arguments)


def console() -> None:
    """The program `fallow`: Ctrl-C ends it with one line, whatever it is doing."""
    from fallow.cli.interrupts import raise_safely

    raise_safely()
    codes: list[int] = []
    atexit.register(_leave_if_interrupted, codes)  # the first to come runs last
    try:
        code = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        print("fallow: interrupted", file=sys.stderr)
        code = INTERRUPTED
    except BrokenPipeError:
        # Python flushes at its end; there is nobody to read it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = CLOSED_PIPE
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while threads end
    codes.append(code)
    sys.exit(code)


def _leave_if_interrupted(codes: list[int]) -> None:
    """End without unloading libraries, if Ctrl-C ended the command.

    JAX that was interrupted while it compiled crashes when it is unloaded.
    """
    if codes == [INTERRUPTED]:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(INTERRUPTED)


__all__ = ["console", "main"]
