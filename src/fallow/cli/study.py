"""`fallow study`: run a paired study, merge its parts, make a small copy."""

import dataclasses
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from fallow.cli.training import (
    need_jax,
    refuse_with_resume,
    resume_command,
    resume_hint,
)
from fallow.core.errors import FallowError

if TYPE_CHECKING:
    from fallow.study import Plan


OF_A_START = (
    *("resume", "trunks", "engine", "address", "cache", "trust_cache"),
    *("tensorboard", "wandb", "dry_run", "quiet"),
)
"""Options that may change from one start of a study to the next."""


@dataclass(frozen=True)
class StudyCommand:
    """Run a paired study: trunks, then branches of each under conditions and rules.

    NAME is one of table1, table2, table3, recurrence, magnitude, window, selector,
    online, demo, or a file: TOML, or another study's plan.json, to run that one again.
    The same command resumes a study that was stopped or killed.
    `fallow study merge A B --out C` joins parts that were run with different seeds;
    `fallow study share A --out C` makes a small copy: tables, compact histories.
    """

    name: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="[NAME ...]")
    ] = ()
    """The study; or `merge` and the folders of its parts; or `share` and a folder."""
    preset: str | None = None
    """Sizes of the agent: paper, lean, tiny or e.g. lean:horizon=10; else its own."""
    seeds: str | None = None
    """Run the part of these seeds, e.g. 0-1."""
    out: Path | None = None
    """Folder for results; runs/NAME unless given."""
    resume: Path | None = None
    """Resume the study in this folder, whatever its name."""
    trunks: Path | None = None
    """Folder of trunks that studies share; default: `trunks` next to the results."""
    device: str | None = None
    """Size fleets for this device: here, cpu, h200, or memory such as 24GiB."""
    seeds_per_fleet: int | None = None
    """Seeds trained together; 0: as many as fit."""
    engine: str = "local"
    """Engine: local, or ray (a cluster; extra `ray`)."""
    address: str | None = None
    """Of the Ray cluster; else one is started on this machine."""
    cache: Path | None = None
    """Folder of compiled programs, which can be carried to another machine."""
    trust_cache: bool = False
    """Run programs from a --cache folder that another machine or user filled."""
    tensorboard: bool = False
    """Also write TensorBoard event files, to `events` in the folder."""
    wandb: str | None = None
    """Also log to this project of Weights & Biases."""
    dry_run: bool = False
    """Print branches, fleets, updates, memory and time without training."""
    quiet: bool = False
    """Print the path of the results only."""

    def run(self) -> None:
        if self.name[:1] in (("merge",), ("share",)):
            self._copy(*self.name)
            return
        need_jax()
        refuse_with_resume(self, *OF_A_START)
        plan = self._plan()
        if self.dry_run:
            self._estimate(plan)
            return
        folder = self.resume or self.out or Path("runs") / plan.name
        self._run(plan, folder)
        print(f"results: {folder / 'results.csv'}")
        if not self.quiet:
            print(f"next: {shlex.join(['fallow', 'report', str(folder)])}")

    def _estimate(self, plan: "Plan") -> None:
        from fallow.study.engines import ENGINES, check_bodies
        from fallow.study.estimate import estimate

        ENGINES[self.engine]  # what a run would refuse is refused here, too
        check_bodies(plan)
        print("\n".join(estimate(plan).lines()))

    def _run(self, plan: "Plan", folder: Path) -> None:
        from fallow.agents.compiling import keep_compiled
        from fallow.console.scalars import writers
        from fallow.console.study import StudyView
        from fallow.study.engines import run_study

        keep_compiled(self.cache, self.trust_cache)
        resume = resume_command("study", folder, self, OF_A_START)
        scalars = writers(folder, self.tensorboard, self.wandb)
        with resume_hint(resume), StudyView(folder, self.quiet, scalars) as view:
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
            raise FallowError(f"--out is missing: fallow study {usage}")
        if what == "merge":
            study = merge(folders, self.out)
        elif len(folders) == 1:
            study = share(folders[0], self.out)
        else:
            raise FallowError(f"name one study: fallow study {usage}")
        print(f"results: {study.table}")
