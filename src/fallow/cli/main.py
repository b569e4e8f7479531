"""The command line. Everything heavy is imported by the command that needs it."""

import sys
from typing import Annotated, Protocol

import tyro

from fallow import __version__
from fallow.cli.demo import DemoCommand
from fallow.cli.diagnose import DiagnoseCommand
from fallow.cli.list import ListCommand
from fallow.cli.report import ReportCommand
from fallow.cli.simulate import SimulateCommand
from fallow.cli.status import StatusCommand
from fallow.cli.study import StudyCommand
from fallow.cli.train import TrainCommand
from fallow.core.errors import FallowError


class CommandLike(Protocol):
    """A command: its fields are its options."""

    def run(self) -> int | None:
        """Do it; returns the exit code, None for 0."""


Command = (
    Annotated[DemoCommand, tyro.conf.subcommand("demo")]
    | Annotated[DiagnoseCommand, tyro.conf.subcommand("diagnose")]
    | Annotated[ListCommand, tyro.conf.subcommand("list")]
    | Annotated[ReportCommand, tyro.conf.subcommand("report")]
    | Annotated[SimulateCommand, tyro.conf.subcommand("simulate")]
    | Annotated[StatusCommand, tyro.conf.subcommand("status")]
    | Annotated[StudyCommand, tyro.conf.subcommand("study")]
    | Annotated[TrainCommand, tyro.conf.subcommand("train")]
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; bad input is one sentence on stderr and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["--version"]:
        print(f"fallow {__version__}")
        return 0
    command: CommandLike = tyro.cli(
        Command,
        prog="fallow",
        description=(
            "Which of its past experience should a learning robot keep after its "
            "body changed?"
        ),
        args=arguments,
    )
    try:
        return command.run() or 0
    except BrokenPipeError:  # the reader had enough, as with `fallow list | head`
        sys.stderr.close()
    except (FallowError, OSError) as error:
        print(f"fallow: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
