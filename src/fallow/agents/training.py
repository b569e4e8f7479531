"""Training a fleet from start to end: evaluating, saving, telling how it goes."""

import contextlib
import dataclasses
import json
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from fallow.agents import checkpoints, clock
from fallow.agents.compiling import on_processor
from fallow.agents.evaluation import Evaluation
from fallow.agents.fleet import Fleet, build_agent
from fallow.agents.memory import fleets_that_fit
from fallow.agents.result_table import Results
from fallow.core import files, legacy, options
from fallow.core.errors import FallowError
from fallow.core.lock import lock
from fallow.core.records import Branch
from fallow.core.results import Label, read_results, write_results
from fallow.dynamics import TASKS, Condition
from fallow.dynamics.simulator import compile_body
from fallow.dynamics.tasks import ACTION_REPEAT
from fallow.replay import Rule
from fallow.replay.ledger import Ledger

REPORT_STEPS = 100
"""Steps between two reports of progress."""
RUN_FILE, LOCK_FILE = "run.json", "lock"


@dataclasses.dataclass(frozen=True)
class Phase:
    """A stretch of a fleet's life, and what happens on the way."""

    until_frame: int
    evaluate_frames: int
    """Frames between two evaluations."""
    n_episodes: int
    """Episodes of an evaluation."""
    save_frames: int
    """Frames between two checkpoints; 0 saves at the end only."""
    begin_frame: int = 0
    """From which evaluations are counted."""
    offset_frames: int = 0
    """Evaluations come at multiples of `evaluate_frames` plus this, the first above 0.
    """
    histories: bool = True


@dataclasses.dataclass(frozen=True)
class Run:
    """What to train; saved beside its results as `run.json`."""

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
    algorithm: int = 2
    """Version of what conditions and rules mean; see `core.legacy`."""

    def __post_init__(self) -> None:
        for name in ("until_frame", "evaluate_frames", "n_episodes"):
            options.whole("run", name, getattr(self, name), at_least=1)
        options.whole("run", "save_frames", self.save_frames, at_least=0)
        options.whole("run", "offset_frames", self.offset_frames, at_least=0)

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
            if "algorithm" not in content:
                content = _of_algorithm_1(content)
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


def _of_algorithm_1(content: dict[str, Any]) -> dict[str, Any]:
    """A run of algorithm 1 with the defaults of then written out."""
    n_actuators = len(TASKS[content["task"]].body.actuator_velocity)
    branches = [
        branch
        | {
            "condition": legacy.condition(branch["condition"], n_actuators),
            "rule": legacy.rule(branch["rule"]),
        }
        for branch in content["branches"]
    ]
    half = content.get("evaluate_frames", Run.evaluate_frames) // 2
    added = {"offset_frames": half, "algorithm": 1, "branches": branches}
    return content | added


class DamagedRun(FallowError):
    """The file that describes a run cannot be read."""


class EvaluationResult(NamedTuple):
    """What an evaluation gave."""

    frame: int
    """At which it began."""
    returns: np.ndarray
    """(R, n_episodes)."""


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where a fleet stands, for whoever watches."""

    frame: int
    until_frame: int
    n_updates: int
    updates_per_s: float
    """Of all branches together, since the last time; right after an evaluation since
    the evaluation before, all that there was to do included."""
    evaluation: EvaluationResult | None = None
    """Right after an evaluation."""
    metrics: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    """Since the fleet was built, by what they were spent on; see `clock`."""
    message: str = ""


Watch = Callable[[Progress], None]
Begin = Callable[[Fleet], None]


def train(run: Run, folder: str | Path, watch: Watch = lambda _: None) -> Path:
    """Train all branches, going on from checkpoints where there are some.

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
        return _train_run(run, folder, watch)


def _train_run(run: Run, folder: Path, watch: Watch) -> Path:
    agent = build_agent(run.task, run.agent, run.preset)
    parts = fleets_that_fit(agent, run.branches, run.capacity_transitions)
    if len(parts) > 1:
        sizes = ", ".join(str(len(part)) for part in parts)
        text = f"{len(run.branches)} branches do not fit at once: fleets of {sizes}"
        watch(Progress(0, run.until_frame, 0, 0.0, message=text))
    for index, part in enumerate(parts):
        _train_part(run, part, folder / f"fleet-{index}", watch)
    tables = [folder / f"fleet-{i}" / "results.csv" for i in range(len(parts))]
    rows = [row for table in tables for row in read_results(table)]
    return write_results(folder / "results.csv", rows)


def _train_part(
    run: Run, branches: Sequence[Branch], folder: Path, watch: Watch
) -> None:
    agent = build_agent(run.task, run.agent, run.preset)
    fleet = Fleet(run.task, agent, branches, run.capacity_transitions)
    labels = [
        Label(
            run.task, run.agent, run.preset, own.condition, own.rule, own.seed, "", ""
        )
        for own in branches
    ]
    train_until(fleet, run.phase, folder, labels, watch)


def train_until(
    fleet: Fleet,
    phase: Phase,
    folder: Path,
    labels: Sequence[Label],
    watch: Watch = lambda _: None,
    begin: Begin = lambda _: None,
) -> Results:
    """Let a fleet live a leg, from its checkpoint or, without one, from `begin`.

    `folder` gets the table, the checkpoint and the histories; the fleet is closed.

    Raises:
        Interrupted: somebody pressed Ctrl-C; a checkpoint was written.
        LearningError: a loss is no number; the last checkpoint stays.
        Damaged: the checkpoint, the table or a history cannot be read.
    """
    results = Results(folder / "results.csv", labels, phase.begin_frame)
    where = folder / "checkpoint"
    histories = folder / "histories" if phase.histories else None
    try:
        if checkpoints.found(where) is None:
            begin(fleet)
        with _damage_told():
            _take_up(fleet, results, where, histories)
        with _interruptions() as stop:
            _train_loop(phase, fleet, results, where, watch, stop)
    finally:
        fleet.close()
    return results


class Interrupted(Exception):
    """Somebody pressed Ctrl-C; a checkpoint was written."""


class Damaged(FallowError):
    """What an earlier run left cannot be gone on with."""


@contextlib.contextmanager
def _damage_told() -> Iterator[None]:
    """Whatever cannot be read back, by whatever error, is damage."""
    try:
        yield
    except (ValueError, KeyError) as error:
        raise Damaged(str(error)) from error


def _take_up(
    fleet: Fleet, results: Results, where: Path, histories: Path | None
) -> None:
    """Go on from the checkpoint, if there is one; drop what came after it."""
    if checkpoints.found(where) is not None:
        checkpoints.load(fleet, where, histories)
    elif histories is not None:
        shutil.rmtree(histories, ignore_errors=True)  # of a run cut off
        fleet.record(histories)
    results.keep_until(fleet.frame)


@contextlib.contextmanager
def _interruptions() -> Iterator[threading.Event]:
    """Let a first Ctrl-C wait until a step is done; a second one acts at once."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _train_loop(
    phase: Phase,
    fleet: Fleet,
    results: Results,
    where: Path,
    watch: Watch,
    stop: threading.Event,
) -> None:
    """The loop: step, and at their frames evaluate and save."""
    lately, evaluations = _Pace(fleet), _Evaluations(phase, fleet, results, watch)
    save_is_due = False
    while fleet.frame < phase.until_frame:
        if stop.is_set():
            evaluations.finish()
            _save(fleet, where)
            raise Interrupted(f"stopped at frame {fleet.frame:,} of each branch")
        fleet.step()
        evaluations.after_step()
        if phase.save_frames and _passed(fleet, phase.save_frames, phase.save_frames):
            save_is_due = True
        if save_is_due and not evaluations.is_running:
            _save(fleet, where)  # it holds no evaluation that is under way
            save_is_due = False
        if fleet.n_steps % REPORT_STEPS == 0:
            watch(_progress(phase, fleet, lately.since_last()))
    jax.block_until_ready(fleet.state)
    evaluations.finish()
    _save(fleet, where)


def _progress(
    phase: Phase,
    fleet: Fleet,
    updates_per_s: float,
    evaluation: EvaluationResult | None = None,
) -> Progress:
    place = (fleet.frame, phase.until_frame, fleet.n_updates, updates_per_s)
    return Progress(*place, evaluation, fleet.metrics, dict(fleet.clock.seconds))


class _Evaluations:
    """Those of a leg: on an accelerator concurrent with training, else at once.

    One is done before the next begins.
    """

    def __init__(
        self, phase: Phase, fleet: Fleet, results: Results, watch: Watch
    ) -> None:
        self._phase, self._fleet, self._results = phase, fleet, results
        self._watch, self._pace = watch, _Pace(fleet)
        self._first = phase.begin_frame + (phase.offset_frames or phase.evaluate_frames)
        self._frame = 0
        self._evaluation: Evaluation | None = None

    def after_step(self) -> None:
        """Tell of one that is done, and begin one that is due."""
        if self._evaluation is not None and self._evaluation.is_done:
            self.finish()
        if _passed(self._fleet, self._phase.evaluate_frames, self._first):
            self.finish()
            self._frame = self._fleet.frame
            self._results.begin(self._fleet)
            self._evaluation = self._fleet.evaluate_beside(self._phase.n_episodes)
            if on_processor():  # learning takes the cores that its worlds would have
                self.finish()

    @property
    def is_running(self) -> bool:
        """Whether one is under way."""
        return self._evaluation is not None

    def finish(self) -> None:
        """End the one that is under way, if there is one."""
        if self._evaluation is None:
            return
        with self._fleet.clock.on(clock.EVALUATING):
            evaluation = EvaluationResult(self._frame, self._evaluation.finish())
        self._evaluation = None
        self._results.end(evaluation.returns)
        rate = self._pace.since_last()
        self._watch(_progress(self._phase, self._fleet, rate, evaluation))


class _Pace:
    """Updates a second of all branches of a fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._began, self._done = time.perf_counter(), fleet.n_updates

    def since_last(self) -> float:
        """Since it was last asked, or built."""
        now, n_updates = time.perf_counter(), self._fleet.n_updates
        made = (n_updates - self._done) * len(self._fleet.branches)
        rate = made / max(now - self._began, 1e-9)
        self._began, self._done = now, n_updates
        return rate


def _save(fleet: Fleet, where: Path) -> None:
    with fleet.clock.on(clock.SAVING):
        checkpoints.save(fleet, where)


def _passed(fleet: Fleet, every: int, first: int) -> bool:
    """Whether the last step reached a frame of the series first, first + every, …"""
    now, before = fleet.frame, fleet.frame - fleet.frames_per_step
    return now >= first and (now - first) // every > (before - first) // every
