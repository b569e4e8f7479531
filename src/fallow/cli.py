"""The command line. Everything heavy is imported by the command that needs it."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from fallow import __version__
from fallow.errors import FallowError


@dataclass(frozen=True)
class List:
    """Show what can be chosen by name: tasks, conditions, schedules, rules."""

    json: bool = False
    """Print the names as JSON."""

    def run(self) -> None:
        from fallow.dynamics.conditions import CONDITIONS
        from fallow.dynamics.schedules import SCHEDULES
        from fallow.dynamics.tasks import TASKS
        from fallow.replay.rules import RULES

        summaries = {
            "tasks": {name: task.summary for name, task in TASKS.items()},
            "conditions": {name: kind.summary for name, kind in CONDITIONS.items()},
            "schedules": {name: named.summary for name, named in SCHEDULES.items()},
            "rules": {name: rule.summary for name, rule in RULES.items()},
        }
        if self.json:
            names = {group: list(entries) for group, entries in summaries.items()}
            print(json.dumps(names, indent=1))
            return
        for group, entries in summaries.items():
            print(group)
            for name, summary in entries.items():
                print(f"  {name:18}{summary}")


@dataclass(frozen=True)
class Demo:
    """Watch a walker lose half its strength: one picture, two lines, a few seconds."""

    out: Path = Path("runs/demo")
    """Folder for the picture and the history."""
    seed: int = 0
    """Seed of the starting pose."""

    def run(self) -> None:
        from fallow.report.demo import run_demo

        for line in run_demo(self.out, self.seed):
            print(line)


Command = (
    Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[List, tyro.conf.subcommand("list")]
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; bad input is one sentence on stderr and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["--version"]:
        print(f"fallow {__version__}")
        return 0
    command: Demo | List = tyro.cli(
        Command,
        prog="fallow",
        description=(
            "Which of its past experience should a learning robot keep after its "
            "body changed?"
        ),
        args=arguments,
    )
    try:
        command.run()
    except BrokenPipeError:  # the reader had enough, as with `fallow list | head`
        sys.stderr.close()
    except (FallowError, OSError) as error:
        print(f"fallow: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
