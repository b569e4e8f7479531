"""The training loop of a fleet: step, evaluate, save, report progress."""

import contextlib
import dataclasses
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import jax

from fallow.agents import checkpoints, clock
from fallow.agents.beliefs import write_beliefs
from fallow.agents.compiling import on_processor
from fallow.agents.evaluation import Evaluation
from fallow.agents.fleet import Fleet
from fallow.agents.progress import EvaluationResult, OnProgress, Progress
from fallow.agents.result_table import ResultTable
from fallow.core.errors import FallowError
from fallow.core.results import Label

CHECKPOINT, HISTORIES = "checkpoint", "histories"
"""Folders next to a fleet's table."""
STOPPING = "stopping after this step; Ctrl-C again stops at once"
REPORT_STEPS = 100
"""Steps between two reports of progress."""


@dataclasses.dataclass(frozen=True)
class Phase:
    """A part of a run: when to stop, evaluate and save."""

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


class Interrupted(Exception):
    """Ctrl-C was pressed; a checkpoint was written."""


class Damaged(FallowError):
    """Files of an earlier start are damaged and cannot be resumed."""


def resume(fleet: Fleet, phase: Phase, folder: Path) -> bool:
    """Load the checkpoint of a folder, if there is one; returns whether there was.

    Raises:
        Damaged: the checkpoint or a history cannot be read.
    """
    if checkpoints.found(folder / CHECKPOINT) is None:
        return False
    with _as_damaged():
        histories = folder / HISTORIES if phase.histories else None
        checkpoints.load(fleet, folder / CHECKPOINT, histories)
    return True


def train_until(
    fleet: Fleet,
    phase: Phase,
    folder: Path,
    labels: Sequence[Label],
    on_progress: OnProgress = lambda _: None,
) -> ResultTable:
    """Train a fleet from its present frame to the end of a phase, and close it.

    `folder` gets the table, the checkpoint, the histories and what trackers reported.

    Raises:
        Interrupted: Ctrl-C was pressed; a checkpoint was written.
        LearningError: a loss is not finite; the last checkpoint stays.
        Damaged: the table of an earlier start cannot be read.
    """
    results = ResultTable(folder / "results.csv", labels, phase.begin_frame)
    try:
        with _as_damaged():
            results.keep_until(fleet.frame)
        if phase.histories and not fleet.recorders:
            shutil.rmtree(folder / HISTORIES, ignore_errors=True)  # of a killed start
            fleet.record(folder / HISTORIES)
        with _interruptions(on_progress) as stop:
            _train_loop(phase, fleet, results, folder / CHECKPOINT, on_progress, stop)
        write_beliefs(fleet, folder)
    finally:
        fleet.close()
    return results


@contextlib.contextmanager
def _as_damaged() -> Iterator[None]:
    """Raise whatever error the reading of a file ends in as `Damaged`."""
    try:
        yield
    except (ValueError, KeyError) as error:
        raise Damaged(str(error)) from error


@contextlib.contextmanager
def _interruptions(on_progress: OnProgress) -> Iterator[threading.Event]:
    """Delay a first Ctrl-C until a step is done; a second one acts immediately."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)
        on_progress(Progress(0, 0, 0, 0.0, message=STOPPING))

    signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _train_loop(
    phase: Phase,
    fleet: Fleet,
    results: ResultTable,
    where: Path,
    on_progress: OnProgress,
    stop: threading.Event,
) -> None:
    """The loop: step, and at their frames evaluate and save."""
    lately, evaluations = _Pace(fleet), _Evaluations(phase, fleet, results, on_progress)
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
            on_progress(_progress(phase, fleet, lately.since_last()))
    jax.block_until_ready(fleet.learners.state)
    evaluations.finish()
    _save(fleet, where)
    if fleet.n_steps % REPORT_STEPS:
        on_progress(_progress(phase, fleet, lately.since_last()))
    if stop.is_set():  # a phase may follow
        raise Interrupted(f"stopped at frame {fleet.frame:,} of each branch")


def _progress(
    phase: Phase,
    fleet: Fleet,
    updates_per_s: float,
    evaluation: EvaluationResult | None = None,
) -> Progress:
    place = (fleet.frame, phase.until_frame, fleet.learners.n_updates, updates_per_s)
    return Progress(*place, evaluation, fleet.learners.metrics, fleet.seconds)


class _Evaluations:
    """Evaluations of a phase: concurrent on an accelerator, else at once.

    One is done before the next begins.
    """

    def __init__(
        self, phase: Phase, fleet: Fleet, results: ResultTable, on_progress: OnProgress
    ) -> None:
        self._phase, self._fleet, self._results = phase, fleet, results
        self._on_progress, self._pace = on_progress, _Pace(fleet)
        self._first = phase.begin_frame + (phase.offset_frames or phase.evaluate_frames)
        self._frame = 0
        self._evaluation: Evaluation | None = None

    def after_step(self) -> None:
        """Report one that is done, and begin one that is due."""
        if self._evaluation is not None and self._evaluation.is_done:
            self.finish()
        if _passed(self._fleet, self._phase.evaluate_frames, self._first):
            self.finish()
            self._frame = self._fleet.frame
            self._results.begin(self._fleet)
            self._evaluation = self._fleet.evaluate_concurrently(self._phase.n_episodes)
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
        self._on_progress(_progress(self._phase, self._fleet, rate, evaluation))


class _Pace:
    """Updates a second of all branches of a fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._began, self._done = time.perf_counter(), fleet.learners.n_updates

    def since_last(self) -> float:
        """Since the last call, or since construction."""
        now, n_updates = time.perf_counter(), self._fleet.learners.n_updates
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
