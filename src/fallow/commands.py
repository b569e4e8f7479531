"""The commands that train, and the one that tells how far a study is."""

import contextlib
import dataclasses
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from fallow import options
from fallow.errors import FallowError

if TYPE_CHECKING:
    from fallow.agents import training
    from fallow.study import Plan


def need_jax() -> None:
    """Say in one sentence what to install where training is not possible."""
    needed = ("jax", "equinox", "optax")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise FallowError(
            f"training needs {', '.join(missing)}: pip install 'fallow[fleet]'"
        )


@contextlib.contextmanager
def stops_told(command: str) -> Iterator[None]:
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
    """Its sizes: paper, lean or tiny, or one of them changed, e.g. lean:horizon=10."""
    condition: tuple[str, ...] = ("none",)
    """What happens to the body, e.g. gain:g=0.5,shift_frame=40000."""
    rule: tuple[str, ...] = ("passive",)
    """What is kept and drawn, e.g. recency:window_transitions=20000."""
    seeds: str = "0"
    """Seeds, e.g. 0-4 or 0,3,7."""
    frames: int = 200_000
    """Frames of each branch."""
    evaluate_frames: int = 10_000
    """Frames between two evaluations; the first comes after half of them."""
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
        need_jax()
        self._check()

        from fallow.agents import training
        from fallow.agents.compiling import keep_compiled
        from fallow.report.training import TrainingBar

        keep_compiled(self.cache)
        folder = self.resume or self.out
        run = training.Run.read(folder) if self.resume else self._run()
        events = folder / "events" if self.tensorboard else None
        with stops_told(f"fallow train --resume {folder}"), TrainingBar(events) as bar:
            table = training.train(run, folder, bar)
        print(f"results: {table}")

    def _check(self) -> None:
        for name in ("frames", "evaluate_frames", "episodes", "save_frames"):
            flag, least = f"--{name.replace('_', '-')}", int(name != "save_frames")
            options.whole("fallow train", flag, getattr(self, name), at_least=least)
        own = {"resume", "cache", "tensorboard"}  # choices of a start, not of a run
        given = [
            f"--{option.name.replace('_', '-')}"
            for option in dataclasses.fields(self)
            if option.name not in own and getattr(self, option.name) != option.default
        ]
        if self.resume is not None and given:
            raise FallowError(
                f"--resume goes on with the run in {self.resume} as it was begun; "
                f"leave out {', '.join(given)}"
            )

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
    file: TOML, or another study's plan.json, to run that one again.
    A study that was stopped or killed goes on with the same command.
    `fallow study merge A B --out C` joins parts that were run apart by seed;
    `fallow study share A --out C` makes a small copy: tables, compact histories.
    """

    name: tyro.conf.Positional[tuple[str, ...]] = ()
    """The study; or `merge` and the folders of its parts; or `share` and a folder."""
    preset: str | None = None
    """Sizes of the agent: paper, lean, tiny or e.g. lean:horizon=10; else its own."""
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
        if self.name[:1] in (("merge",), ("share",)):
            self._copy(*self.name)
            return
        need_jax()
        plan = self._plan()
        if self.dry_run:
            from fallow.study.engines import ENGINES
            from fallow.study.estimate import estimate

            ENGINES[self.engine]  # an unknown one is refused before the run, too

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
        with stops_told(go_on), StudyView(folder) as view:
            run_study(plan, folder, view, self.engine, self.address, self.trunks)

    def _plan(self) -> "Plan":
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

    def _copy(self, what: str, *folders: str) -> None:
        from fallow.study.merge import merge
        from fallow.study.sharing import share

        usage = {"merge": "merge A B --out C", "share": "share A --out C"}[what]
        if self.out is None:
            raise FallowError(f"say where to: fallow study {usage}")
        if what == "merge":
            study = merge(folders, self.out)
        elif len(folders) == 1:
            study = share(folders[0], self.out)
        else:
            raise FallowError(f"name one study: fallow study {usage}")
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
