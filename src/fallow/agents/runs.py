"""A run of `fallow train`: what to train, saved with its results, and resumed."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fallow.agents.fleet import Fleet, build_agent
from fallow.agents.memory import fleets_that_fit
from fallow.agents.progress import OnProgress, Progress
from fallow.agents.training import Phase, resume, train_until
from fallow.core import files, legacy, options
from fallow.core.errors import FallowError
from fallow.core.legacy import ALGORITHM
from fallow.core.lock import lock
from fallow.core.records import Branch
from fallow.core.results import Label, read_results, write_results
from fallow.dynamics import TASKS, Condition
from fallow.dynamics.simulator import compile_body
from fallow.dynamics.tasks import ACTION_REPEAT
from fallow.replay import Rule
from fallow.replay.ledger import Ledger

RUN_FILE, LOCK_FILE = "run.json", "lock"


@dataclasses.dataclass(frozen=True)
class Run:
    """A training run; saved with its results as `run.json`."""

    task: str
    agent: str
    preset: str
    branches: tuple[Branch, ...]
    until_frame: int
    evaluate_frames: int = 10_000
    """Frames between two evaluations."""
    n_episodes: int = 10
    """Episodes of an evaluation."""
    save_frames: int = 20_000
    """Frames between two checkpoints; 0 saves at the end only."""
    capacity_transitions: int = 200_000
    histories: bool = True
    offset_frames: int = 0
    """Evaluations come at multiples of `evaluate_frames` plus this, the first above 0.
    """
    algorithm: int = ALGORITHM
    """Version of what conditions and rules mean; see `core.legacy`."""

    def __post_init__(self) -> None:
        for name in ("until_frame", "evaluate_frames", "n_episodes"):
            options.check_int("run", name, getattr(self, name), at_least=1)
        options.check_int("run", "save_frames", self.save_frames, at_least=0)
        options.check_int("run", "offset_frames", self.offset_frames, at_least=0)

    @property
    def phase(self) -> Phase:
        """The life of its fleets: one stretch, from the very beginning."""
        return Phase(
            self.until_frame,
            self.evaluate_frames,
            self.n_episodes,
            self.save_frames,
            offset_frames=self.offset_frames,
            histories=self.histories,
        )

    @classmethod
    def read(cls, folder: Path) -> "Run":
        """The run that a folder belongs to.

        Raises:
            FallowError: there is none, or its file cannot be read.
        """
        path = folder / RUN_FILE
        if not path.is_file():
            raise FallowError(f"there is no run at {folder}: it has no {RUN_FILE}")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            content = _modern(content)
            branches = tuple(Branch(**branch) for branch in content.pop("branches"))
            return cls(branches=branches, **content)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DamagedRun(
                f"{path} cannot be read ({error}); give the command that began the run "
                f"again, with --out {folder}: it continues from the last checkpoint"
            ) from None

    def write(self, folder: Path) -> None:
        """Write `run.json`; a damaged one is set aside, another run's is an error."""
        path = folder / RUN_FILE
        try:
            if path.exists() and Run.read(folder) == self:
                return
            if path.exists():
                raise FallowError(
                    f"{folder} holds another run; choose another folder, or continue "
                    f"that run: fallow train --resume {folder}"
                )
        except DamagedRun:
            files.set_aside(path)
        files.write_text(path, json.dumps(dataclasses.asdict(self), indent=1))

    def check(self) -> None:
        """Raise if a name is unknown or a branch impossible on the task's body."""
        model = compile_body(TASKS[self.task].body)
        agent = build_agent(self.task, self.agent, self.preset)
        ledger = Ledger(agent.schedule.n_worlds, self.capacity_transitions)
        for branch in self.branches:
            Rule.parse(branch.rule).check(ledger)
            Condition.parse(branch.condition).on(model)
        step = agent.schedule.n_worlds * ACTION_REPEAT
        if self.offset_frames % step or self.offset_frames >= self.evaluate_frames:
            raise FallowError(
                f"run: offset_frames is {self.offset_frames:,}; give a multiple of "
                f"{step}, the frames of one step, below evaluate_frames, "
                f"{self.evaluate_frames:,}"
            )


def _modern(content: dict[str, Any]) -> dict[str, Any]:
    """A run of an earlier algorithm with the defaults of then written out."""
    algorithm = content.get("algorithm", 1)
    if algorithm not in legacy.WITH_CHUNKS:
        return content
    branches = [b | {"rule": legacy.rule(b["rule"])} for b in content["branches"]]
    added: dict[str, Any] = {"algorithm": ALGORITHM}
    if algorithm == 1:
        n_actuators = len(TASKS[content["task"]].body.actuator_velocity)
        branches = [
            branch | {"condition": legacy.condition(branch["condition"], n_actuators)}
            for branch in branches
        ]
        half = content.get("evaluate_frames", Run.evaluate_frames) // 2
        added["offset_frames"] = half
    return content | added | {"branches": branches}


class DamagedRun(FallowError):
    """The file that describes a run cannot be read."""


def train(
    run: Run, folder: str | Path, on_progress: OnProgress = lambda _: None
) -> Path:
    """Train all branches; resume from checkpoints where they exist.

    Returns the table of results. A fleet that does not fit into the device's memory is
    split, one part after the other.

    Raises:
        FallowError: a name is unknown, a branch is impossible, or the folder is another
            run's.
        Locked: another process trains in this folder.
    """
    folder = Path(folder)
    run.check()  # before anything is written
    with lock(folder / LOCK_FILE):
        run.write(folder)
        return _train_run(run, folder, on_progress)


def _train_run(run: Run, folder: Path, on_progress: OnProgress) -> Path:
    agent = build_agent(run.task, run.agent, run.preset)
    parts = fleets_that_fit(agent, run.branches, run.capacity_transitions)
    if len(parts) > 1:
        sizes = ", ".join(str(len(part)) for part in parts)
        text = f"{len(run.branches)} branches do not fit at once: fleets of {sizes}"
        on_progress(Progress(0, run.until_frame, 0, 0.0, message=text))
    for index, part in enumerate(parts):
        _train_part(run, part, folder / f"fleet-{index}", on_progress)
    tables = [folder / f"fleet-{i}" / "results.csv" for i in range(len(parts))]
    rows = [row for table in tables for row in read_results(table)]
    return write_results(folder / "results.csv", rows)


def _train_part(
    run: Run, branches: Sequence[Branch], folder: Path, on_progress: OnProgress
) -> None:
    agent = build_agent(run.task, run.agent, run.preset)
    fleet = Fleet(run.task, agent, branches, run.capacity_transitions)
    labels = [
        Label(
            run.task,
            run.agent,
            run.preset,
            branch.condition,
            branch.rule,
            branch.seed,
            "",
            "",
        )
        for branch in branches
    ]
    resume(fleet, run.phase, folder)
    note = f"branches: {len(branches)}; compiling, then training"
    on_progress(Progress(fleet.frame, run.until_frame, 0, 0.0, message=note))
    train_until(fleet, run.phase, folder, labels, on_progress)
