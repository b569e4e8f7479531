"""The command line. Everything heavy is imported by the command that needs it."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from fallow import __version__, options
from fallow.errors import FallowError

if TYPE_CHECKING:
    from fallow.agents import training


@dataclass(frozen=True)
class List:
    """Show what can be chosen by name: tasks, conditions, schedules, rules, agents."""

    json: bool = False
    """Print the names as JSON."""

    def run(self) -> None:
        from fallow.agents import AGENTS
        from fallow.dynamics.conditions import CONDITIONS
        from fallow.dynamics.schedules import SCHEDULES
        from fallow.dynamics.tasks import TASKS
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
        from fallow.report.progress import TrainingBar

        keep_compiled(self.cache)
        folder = self.resume or self.out
        run = training.Run.read(folder) if self.resume else self._run()
        events = folder / "events" if self.tensorboard else None
        try:
            with TrainingBar(run.branches, events) as bar:
                table = training.train(run, folder, bar)
        except training.Interrupted as stopped:
            raise FallowError(
                f"{stopped}; go on with: fallow train --resume {folder}"
            ) from None
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


Command = (
    Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Train, tyro.conf.subcommand("train")]
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; bad input is one sentence on stderr and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["--version"]:
        print(f"fallow {__version__}")
        return 0
    command: Demo | List | Train = tyro.cli(
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
