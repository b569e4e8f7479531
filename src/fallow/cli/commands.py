"""The command line. Everything heavy is imported by the command that needs it."""

import io
import os
import sys
from typing import Annotated, Protocol, get_args

import tyro

from fallow import __version__
from fallow.cli.demo import DemoCommand
from fallow.cli.diagnose import DiagnoseCommand
from fallow.cli.help_types import REGISTRY
from fallow.cli.list import ListCommand
from fallow.cli.report import ReportCommand
from fallow.cli.simulate import SimulateCommand
from fallow.cli.status import StatusCommand
from fallow.cli.study import StudyCommand
from fallow.cli.track import TrackCommand
from fallow.cli.train import TrainCommand
from fallow.core.errors import FallowError, RunError, sentence_of, unknown
from fallow.core.text import printable

MAX_SENTENCE = 1500
"""Characters of an error that are shown; it may name what a file contains."""

FIRST = f"""\
Fallow {__version__}
Which past experience should a learning robot keep after its body changed?

Try first:
  fallow demo --walker             a walker that loses half its strength, in seconds
  fallow demo                      a paired study in small, in minutes
  fallow diagnose LOG              did the actuators change? npz, CSV, ROS bags and more
  fallow list                      tasks, changes, rules, agents, studies, log formats
  fallow study table1 --dry-run    what a whole study takes on this machine

fallow --help shows all commands, fallow COMMAND --help the options of one.
"""


class CommandLike(Protocol):
    """A command: its fields are its options."""

    def run(self) -> int | None:
        """Run the command; returns the exit code, None for 0."""


Command = (
    Annotated[DemoCommand, tyro.conf.subcommand("demo")]
    | Annotated[DiagnoseCommand, tyro.conf.subcommand("diagnose")]
    | Annotated[ListCommand, tyro.conf.subcommand("list")]
    | Annotated[ReportCommand, tyro.conf.subcommand("report")]
    | Annotated[SimulateCommand, tyro.conf.subcommand("simulate")]
    | Annotated[StatusCommand, tyro.conf.subcommand("status")]
    | Annotated[StudyCommand, tyro.conf.subcommand("study")]
    | Annotated[TrackCommand, tyro.conf.subcommand("track")]
    | Annotated[TrainCommand, tyro.conf.subcommand("train")]
)


def run(arguments: list[str]) -> int:
    """Run one command; a failure is one sentence on stderr.

    Returns 0; 1 if a run cannot continue; 2 for bad input; 130 after Ctrl-C; 141 where
    nobody reads the output; and what the command's help names.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name may not fit its encoding
            stream.reconfigure(errors="backslashreplace")
    if not arguments:
        print(FIRST, end="")
        return 0
    if arguments[:1] == ["--version"]:
        print(f"fallow {__version__}")
        return 0
    try:
        _check_name(arguments[0])
        return _command(arguments).run() or 0
    except (FallowError, OSError, RunError, MemoryError) as error:
        if isinstance(error, BrokenPipeError) or os.environ.get("FALLOW_DEBUG"):
            raise
        sentence = printable(sentence_of(error), MAX_SENTENCE, keep_lines=True)
        print(f"fallow: {sentence}", file=sys.stderr)
        return exit_code(error)


def _command(arguments: list[str]) -> CommandLike:
    return tyro.cli(
        Command,
        prog="fallow",
        description=(
            "Which of its past experience should a learning robot keep after its "
            "body changed? `fallow --version` prints the version."
        ),
        args=arguments,
        config=(tyro.conf.FlagCreatePairsOff,),
        registry=REGISTRY,
    )


def _check_name(name: str) -> None:
    """Raise, with the nearest name, if there is no such command."""
    names = [
        subcommand.name
        for command in get_args(Command)
        for subcommand in command.__metadata__
    ]
    if not name.startswith("-") and name not in names:
        raise unknown("command", name, names)


def exit_code(error: BaseException) -> int:
    """2 for bad input, 1 for a run or a machine that fails, or the error's code."""
    code = getattr(error, "exit_code", None)
    if isinstance(code, int):
        return code
    return 1 if isinstance(error, RunError | MemoryError) else 2
