"""The command line. Everything heavy is imported by the command that needs it."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import tyro

from fallow import __version__
from fallow.commands import Status, Study, Train, need_jax, stops_told
from fallow.errors import FallowError

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class List:
    """Show what can be chosen by name: tasks, conditions, rules and more."""

    json: bool = False
    """Print the names as JSON."""

    def run(self) -> None:
        from fallow.agents import AGENTS
        from fallow.dynamics.conditions import CONDITIONS
        from fallow.dynamics.schedules import SCHEDULES
        from fallow.dynamics.tasks import TASKS
        from fallow.logs.readers import READERS
        from fallow.replay.rules import RULES
        from fallow.study.named import STUDIES

        summaries = {
            "tasks": {name: task.summary for name, task in TASKS.items()},
            "conditions": {name: kind.summary for name, kind in CONDITIONS.items()},
            "schedules": {name: named.summary for name, named in SCHEDULES.items()},
            "rules": {name: rule.summary for name, rule in RULES.items()},
            "agents": {
                name: f"{kind.summary}; presets {', '.join(kind.presets)}"
                for name, kind in AGENTS.items()
            },
            "studies": {
                name: f"{len(plan.branches())} branches, preset {plan.preset}"
                for name, plan in STUDIES.items()
            },
            "formats": {name: reader.summary for name, reader in READERS.items()},
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
    """See it all in small: a paired study in a few minutes, its page, and words.

    With --walker: a walker loses half its strength, in a few seconds.
    """

    out: Path | None = None
    """Folder for all of it; runs/demo, or runs/walker, unless given."""
    walker: bool = False
    """Only watch a scripted walker: one picture, two lines."""
    seed: int = 0
    """Seed of the walker's starting pose."""

    def run(self) -> None:
        for line in self._walk() if self.walker else self._study():
            print(line)

    def _walk(self) -> "Iterator[str]":
        from fallow.report.demo import run_demo

        return run_demo(self.out or Path("runs/walker"), self.seed)

    def _study(self) -> "Iterator[str]":
        need_jax()

        from fallow.agents.compiling import keep_compiled
        from fallow.report.paired_demo import run_demo

        keep_compiled()
        with stops_told("fallow demo"):
            yield from run_demo(self.out or Path("runs/demo"))


@dataclass(frozen=True)
class Diagnose:
    """Did the actuators change, when, by how much, and should the old data go?

    Exit codes: 0, and 2 for bad input; with --ci also 10 for "discard".
    """

    paths: tyro.conf.Positional[tuple[Path, ...]]
    """Logs, data sets or folders of logs."""
    variant: Literal["joint", "mean", "large"] = "joint"
    """Look for changes in each joint's response, the mean, or that of large actions."""
    json: bool = False
    """Print everything as JSON."""
    html: Path | None = None
    """Write one self-contained page."""
    ci: bool = False
    """Exit with 10 if data should be discarded."""
    velocity: str | None = None
    """Velocity columns: names, places (11:17) or both (qvel[3:9]); else guessed."""
    action: str | None = None
    """Action columns, likewise, in the order of the velocities they drive."""
    episode: str | None = None
    """The column that numbers the episodes."""
    time: str | None = None
    """The column of times in seconds."""
    episode_steps: int | None = None
    """Cut a recording without episodes into pieces of so many rows."""
    scale: Literal["mad", "mad_normal"] = "mad"
    """Unit of the standardised series; mad_normal is 1.4826 times larger."""

    def run(self) -> int:
        from fallow.diagnose import diagnose_all, exit_code
        from fallow.logs.columns import Columns

        columns = Columns(
            self.velocity, self.action, self.episode, self.time, self.episode_steps
        )
        results = diagnose_all(self.paths, columns, self.variant, self.scale)
        if self.html is not None:
            from fallow.report.page import render

            self.html.parent.mkdir(parents=True, exist_ok=True)
            self.html.write_text(render(results), encoding="utf-8")
        if self.json:
            from fallow.report.machine import as_json

            shown = [as_json(result) for result in results]
            content = shown[0] if len(shown) == 1 else shown
            print(json.dumps(content, indent=1, allow_nan=False))
        else:
            from rich.console import Console

            from fallow.report.terminal import show

            show(results, Console(highlight=False))
        return exit_code(results, self.ci)


@dataclass(frozen=True)
class Report:
    """Turn a study into one page to read and to share, with its figures and tables.

    A study that is not finished gives a page that says what is missing.
    """

    folder: tyro.conf.Positional[Path]
    """The study's folder."""
    compare: Path | None = None
    """Another study's folder: put the two side by side on a page of its own."""
    until: int | None = None
    """Leave out evaluations after this branch frame, to compare what came so far."""
    tables: bool = False
    """Show the tables here as well."""
    open: bool = False
    """Show the page in the browser."""

    def run(self) -> None:
        from fallow.report.comparison import write_comparison
        from fallow.report.study_page import write_report

        if self.tables:
            self._show_tables()
        if self.compare is None:
            page = write_report(self.folder, self.until)
        else:
            page = write_comparison(self.folder, self.compare, self.until)
        print(f"report: {page}")
        if self.open:
            import webbrowser

            webbrowser.open(page.resolve().as_uri())

    def _show_tables(self) -> None:
        from rich.console import Console

        from fallow.report.folder import read_study
        from fallow.report.formats import terminal
        from fallow.report.study_page import sentences, tables

        study = read_study(self.folder, self.until)
        console = Console(highlight=False)
        for table in tables(study):
            console.print(terminal(table), "")
        for sentence in sentences(study):
            console.print(sentence, markup=False)


@dataclass(frozen=True)
class Simulate:
    """Record a body that changes, moved by a scripted policy whose amplitude drifts."""

    task: tyro.conf.Positional[str]
    """One of `fallow list`."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The history to write; it must not be there yet."""
    condition: str = "none"
    """What changes and when, e.g. gain, gain:g=0.7, recurring, damage."""
    episodes: int = 150
    """500 transitions each; changes come at episode 40 unless the condition says."""
    seed: int = 0
    """Everything follows from it."""

    def run(self) -> None:
        from fallow.logs.simulate import simulate
        from fallow.report.progress import progress

        with progress(self.episodes, "simulating") as tick:
            condition = simulate(
                self.task, self.condition, self.episodes, self.seed, self.out, tick
            )
        print(
            f"{self.out}: {self.episodes} episodes of {self.task} under {condition}, "
            f"seed {self.seed}"
        )


class Runs(Protocol):
    """A command: its fields are its options."""

    def run(self) -> int | None:
        """Do it; returns the exit code, None for 0."""


Command = (
    Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[Diagnose, tyro.conf.subcommand("diagnose")]
    | Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Simulate, tyro.conf.subcommand("simulate")]
    | Annotated[Status, tyro.conf.subcommand("status")]
    | Annotated[Study, tyro.conf.subcommand("study")]
    | Annotated[Train, tyro.conf.subcommand("train")]
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; bad input is one sentence on stderr and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["--version"]:
        print(f"fallow {__version__}")
        return 0
    command: Runs = tyro.cli(
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
