"""Runs the program `fallow` inside a fuzzer's worker, up to where training would begin.

`run` holds a command to what a user sees: an exit code that the help names, and on
stderr one printable sentence, or the usage.
"""

import contextlib
import io
from collections.abc import Sequence
from unittest import mock

from fallow.cli import main
from fallow.core.errors import FallowError

EXIT_CODES = (0, 1, 2, 10)


def load() -> None:
    """Import what commands need before workers fork; JAX does not start before."""
    import fallow.agents.runs
    import fallow.console.study
    import fallow.report.study_page
    import fallow.study.estimate
    import fallow.study.runner  # noqa: F401


class Stop(FallowError):
    """The command is about to do what takes minutes; all its input is accepted."""


def run(arguments: Sequence[str]) -> None:
    """Run one command line.

    Raises:
        FallowError: the sentence that the user would see.
        AssertionError: what the user would see is something else.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _stopped():
        try:
            code = main(list(arguments))
        except SystemExit as usage:  # by tyro
            code = usage.code if isinstance(usage.code, int) else 2
            err.truncate(0)
    assert code in EXIT_CODES, f"exit code {code}"
    assert "\x1b" not in out.getvalue(), "an escape code in the output"
    assert "Traceback" not in err.getvalue(), err.getvalue()
    said = [line for line in err.getvalue().splitlines() if line.startswith("fallow: ")]
    if code in (1, 2) and said:
        raise FallowError(said[-1])


@contextlib.contextmanager
def _stopped():
    """Nothing trains, simulates, opens a browser or keeps compiled programs."""
    import fallow.agents.runs
    import fallow.study.runner
    import fallow.study.trunks

    patches = [
        mock.patch.object(module, "Fleet", side_effect=Stop("would train"))
        for module in (fallow.agents.runs, fallow.study.runner, fallow.study.trunks)
    ]
    patches += [
        mock.patch(
            "fallow.dynamics.worlds.Worlds.step", side_effect=Stop("would step")
        ),
        mock.patch("fallow.demo.walker.run_demo", side_effect=Stop("would walk")),
        mock.patch("fallow.demo.study.run_demo", side_effect=Stop("would train")),
        mock.patch("webbrowser.open"),
        mock.patch("fallow.agents.compiling.keep_compiled"),
    ]
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield
