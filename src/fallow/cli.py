"""The command line. Everything heavy is imported by the command that needs it."""

import contextlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import tyro

from fallow import __version__, options
from fallow.errors import FallowError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fallow.agents import training
    from fallow.study import Plan


@dataclass(frozen=True)
class List:
    """Show what can be chosen by name: tasks, conditions, rules, agents, formats."""

    json: bool = False
    """Print the names as JSON."""

    def run(self) -> None:
        from fallow.agents import AGENTS
        from fallow.dynamics.conditions import CONDITIONS
        from fallow.dynamics.schedules import SCHEDULES
        from fallow.dynamics.tasks import TASKS
        from fallow.logs.readers import READERS
        from fallow.replay.rules import RULES

        summaries = {
            "tasks": {name: task.summary for name, task in TASKS.items()},
            "conditions": {name: kind.summary for name, kind in CONDITIONS.items()},
            "schedules": {name: named.summary for name, named in SCHEDULES.items()},
            "rules": {name: rule.summary for name, rule in RULES.items()},
            "agents": {
                name: f"{kind.summary}; presets {', '.join(kind.presets)}"
                for name, kind in AGENTS.items()
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
        from fallow.agents.compiling import keep_compiled
        from fallow.report.paired_demo import run_demo

        keep_compiled()
        with _stops_told("fallow demo"):
            yield from run_demo(self.out or Path("runs/demo"))


@contextlib.contextmanager
def _stops_told(command: str) -> "Iterator[None]":
    """Say how to go on when training stops before its end."""
    from fallow.agents.fleet import LearningError
    from fallow.agents.training import Interrupted
    from fallow.dynamics import PhysicsError

    try:
        yield
    except (Interrupted, LearningError, PhysicsError, KeyboardInterrupt) as stopped:
        why = str(stopped) or "stopped"
        raise FallowError(
            f"{why}; go on from the last checkpoint with: {command}"
        ) from None


@dataclass(frozen=True)
class Train:
    """Train agents, all branches together in one program.

    One branch for each seed, condition and rule given. Ctrl-C saves and says how to go
    on. Results are in `results.csv`, histories beside them.
    """

    task: str = "walker-walk"
    """What to learn; `fallow list` shows all tasks."""
    agent: str = "dreamer"
    """Who learns."""
    preset: str = "lean"
    """Its sizes: paper, lean or tiny."""
    condition: tuple[str, ...] = ("none",)
    """What happens to the body, e.g. gain:g=0.5,shift_frame=40000."""
    rule: tuple[str, ...] = ("passive",)
    """What is kept and drawn, e.g. recency:window_transitions=20000."""
    seeds: str = "0"
    """Seeds, e.g. 0-4 or 0,3,7."""
    frames: int = 200_000
    """Frames of each branch."""
    evaluate_frames: int = 10_000
    """Frames between two evaluations."""
    episodes: int = 10
    """Episodes of an evaluation."""
    save_frames: int = 20_000
    """Frames between two checkpoints; 0 saves at the end only."""
    histories: bool = True
    """Record what every branch lives through."""
    tensorboard: bool = False
    """Also write TensorBoard event files."""
    out: Path = Path("runs/train")
    """Folder for results, histories and checkpoints."""
    resume: Path | None = None
    """Go on with the run in this folder; all other choices are the run's own."""
    cache: Path | None = None
    """Folder of compiled programs, which can be carried to another machine."""

    def run(self) -> None:
        from fallow.agents import training
        from fallow.agents.compiling import keep_compiled
        from fallow.report.training import TrainingBar

        keep_compiled(self.cache)
        folder = self.resume or self.out
        run = training.Run.read(folder) if self.resume else self._run()
        events = folder / "events" if self.tensorboard else None
        with _stops_told(f"fallow train --resume {folder}"), TrainingBar(events) as bar:
            table = training.train(run, folder, bar)
        print(f"results: {table}")

    def _run(self) -> "training.Run":
        from fallow.agents import training
        from fallow.records import Branch

        return training.Run(
            task=self.task,
            agent=self.agent,
            preset=self.preset,
            branches=tuple(
                Branch(seed, condition, rule)
                for seed in options.seeds(self.seeds)
                for condition in self.condition
                for rule in self.rule
            ),
            until_frame=self.frames,
            evaluate_frames=self.evaluate_frames,
            n_episodes=self.episodes,
            save_frames=self.save_frames,
            histories=self.histories,
        )


@dataclass(frozen=True)
class Study:
    """Run a paired study: trunks, then branches of each under conditions and rules.

    NAME is one of table1, table2, table3, recurrence, magnitude, window, demo, or a
    TOML file. A study that was stopped or killed goes on with the same command.
    `fallow study merge A B --out C` joins parts that were run apart by seed.
    """

    name: tyro.conf.Positional[tuple[str, ...]] = ()
    """The study; or `merge` and the folders of its parts."""
    preset: str | None = None
    """Sizes of the agent: paper, lean or tiny; else the study's own."""
    seeds: str | None = None
    """Run the part of these seeds, e.g. 0-1."""
    out: Path | None = None
    """Folder for results; runs/NAME unless given."""
    resume: Path | None = None
    """Go on with the study in this folder, whatever its name."""
    trunks: Path | None = None
    """Folder of trunks that studies share; `trunks` beside the results unless given."""
    device: str | None = None
    """Size fleets for this device: here, cpu, h200, or memory such as 24GiB."""
    seeds_per_fleet: int | None = None
    """Train so many seeds together; 0: what fits."""
    engine: str = "local"
    """Who runs it: local, or ray (a cluster; `fallow[ray]`)."""
    address: str | None = None
    """Of the Ray cluster; else one is started on this machine."""
    cache: Path | None = None
    """Folder of compiled programs, which can be carried to another machine."""
    dry_run: bool = False
    """Print branches, fleets, updates, memory and time, and train nothing."""

    def run(self) -> None:
        if self.name[:1] == ("merge",):
            self._merge()
            return
        plan = self._plan()
        if self.dry_run:
            from fallow.study.estimate import estimate

            print("\n".join(estimate(plan).lines()))
            return
        folder = self.resume or self.out or Path("runs") / plan.name
        self._run(plan, folder)
        print(f"results: {folder / 'results.csv'}")

    def _run(self, plan: "Plan", folder: Path) -> None:
        from fallow.agents.compiling import keep_compiled
        from fallow.report.study_view import StudyView
        from fallow.study.engines import run_study

        keep_compiled(self.cache)
        go_on = f"fallow study --resume {folder}"
        with _stops_told(go_on), StudyView(folder) as view:
            run_study(plan, folder, view, self.engine, self.address, self.trunks)

    def _plan(self) -> "Plan":
        import dataclasses

        from fallow.study.named import find_plan
        from fallow.study.plan import Plan

        if self.resume is not None:
            return Plan.read(self.resume)
        if len(self.name) != 1:
            raise FallowError("name one study, e.g. fallow study table1 --dry-run")
        plan = find_plan(self.name[0], self.preset, self.seeds)
        given = {"device": self.device, "seeds_per_fleet": self.seeds_per_fleet}
        chosen = {name: value for name, value in given.items() if value is not None}
        return dataclasses.replace(plan, **chosen)  # type: ignore[arg-type]

    def _merge(self) -> None:
        from fallow.study.merge import merge

        if self.out is None:
            raise FallowError("say where to: fallow study merge A B --out C")
        study = merge(self.name[1:], self.out)
        print(f"results: {study.table}")


@dataclass(frozen=True)
class Status:
    """Show how far a study is: done, running, left, and the time that it will take."""

    folder: tyro.conf.Positional[Path]
    """Of the study."""

    def run(self) -> None:
        from rich.console import Console

        from fallow.report.study_view import show_status
        from fallow.study.status import status_of

        show_status(status_of(self.folder), Console(highlight=False))


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
