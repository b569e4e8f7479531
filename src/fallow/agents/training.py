"""Training a fleet from start to end: evaluating, saving, telling how it goes."""

import contextlib
import dataclasses
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import jax
import numpy as np

from fallow import options
from fallow.agents import saving
from fallow.agents.fleet import Fleet, build_agent
from fallow.agents.memory import fleets_that_fit
from fallow.agents.results import Results
from fallow.dynamics import Condition
from fallow.errors import FallowError
from fallow.records import Branch
from fallow.replay import Rule
from fallow.results import read_results, write_results


@dataclasses.dataclass(frozen=True)
class Run:
    """What to train; saved beside its results as `run.json`."""

    task: str
    agent: str
    preset: str
    branches: tuple[Branch, ...]
    until_frame: int
    evaluate_frames: int = 10_000
    """Frames between two evaluations; the first comes after half of them."""
    n_episodes: int = 10
    """Episodes of an evaluation."""
    save_frames: int = 20_000
    """Frames between two checkpoints; 0 saves at the end only."""
    capacity_transitions: int = 200_000
    histories: bool = True

    def __post_init__(self) -> None:
        for name in ("until_frame", "evaluate_frames", "n_episodes"):
            options.whole("run", name, getattr(self, name), at_least=1)
        options.whole("run", "save_frames", self.save_frames, at_least=0)

    @classmethod
    def read(cls, folder: Path) -> "Run":
        """The run that a folder belongs to."""
        path = folder / "run.json"
        if not path.is_file():
            raise FallowError(f"there is no run at {folder}: it has no run.json")
        content = json.loads(path.read_text())
        branches = tuple(Branch(**own) for own in content.pop("branches"))
        return cls(branches=branches, **content)

    def write(self, folder: Path) -> None:
        """Put the run beside what will come of it; another run's folder is refused."""
        path = folder / "run.json"
        if path.exists() and Run.read(folder) != self:
            raise FallowError(
                f"{folder} holds another run; choose another folder, or go on with it: "
                f"fallow train --resume {folder}"
            )
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(dataclasses.asdict(self), indent=1))


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where a fleet stands, for whoever watches."""

    frame: int
    until_frame: int
    n_updates: int
    updates_per_s: float
    """Of all branches together, since the last time."""
    returns: np.ndarray | None = None
    """(R, n_episodes), right after an evaluation."""
    metrics: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    message: str = ""


Watch = Callable[[Progress], None]


def train(run: Run, folder: str | Path, watch: Watch = lambda _: None) -> Path:
    """Train all branches, going on from checkpoints where there are some.

    Returns the table of results. A fleet that does not fit into the device's memory is
    split, one part after the other.
    """
    folder = Path(folder)
    agent = build_agent(run.task, run.agent, run.preset)
    for branch in run.branches:  # so that a wrong name leaves nothing behind
        Rule.parse(branch.rule)
        Condition.parse(branch.condition)
    run.write(folder)
    parts = fleets_that_fit(agent, run.branches, run.capacity_transitions)
    if len(parts) > 1:
        sizes = ", ".join(str(len(part)) for part in parts)
        text = f"{len(run.branches)} branches do not fit at once: fleets of {sizes}"
        watch(Progress(0, run.until_frame, 0, 0.0, message=text))
    for index, part in enumerate(parts):
        _train_fleet(run, part, folder / f"fleet-{index}", watch)
    tables = [folder / f"fleet-{i}" / "results.csv" for i in range(len(parts))]
    rows = [row for table in tables for row in read_results(table)]
    return write_results(folder / "results.csv", rows)


def _train_fleet(
    run: Run, branches: Sequence[Branch], folder: Path, watch: Watch
) -> None:
    agent = build_agent(run.task, run.agent, run.preset)
    fleet = Fleet(run.task, agent, branches, run.capacity_transitions)
    names = {"task": run.task, "agent": run.agent, "preset": run.preset}
    results, where = Results(folder / "results.csv", names), folder / "checkpoint"
    histories = folder / "histories" if run.histories else None
    if saving.found(where) is not None:
        saving.load(fleet, where, histories)
        results.keep_until(fleet.frame)
    elif histories is not None:
        fleet.record(histories)
    try:
        with _interruptions() as stop:
            _live(run, fleet, results, where, watch, stop)
    finally:
        fleet.close()


class Interrupted(Exception):
    """Somebody pressed Ctrl-C; a checkpoint was written."""


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


def _live(
    run: Run,
    fleet: Fleet,
    results: Results,
    where: Path,
    watch: Watch,
    stop: threading.Event,
) -> None:
    """The loop: step, and at their frames evaluate and save."""
    began, done = time.perf_counter(), fleet.n_updates
    while fleet.frame < run.until_frame:
        if stop.is_set():
            saving.save(fleet, where)
            raise Interrupted(f"stopped at frame {fleet.frame:,} of each branch")
        fleet.step()
        judged = None
        if _passed(fleet, run.evaluate_frames, run.evaluate_frames // 2):
            judged = fleet.evaluate(run.n_episodes)
            results.add(fleet, judged)
        if run.save_frames and _passed(fleet, run.save_frames):
            saving.save(fleet, where)
        if judged is not None or fleet.n_steps % 100 == 0:
            now = time.perf_counter()
            made = (fleet.n_updates - done) * len(fleet.branches)
            rate = made / max(now - began, 1e-9)
            watch(
                Progress(
                    fleet.frame,
                    run.until_frame,
                    fleet.n_updates,
                    rate,
                    judged,
                    fleet.metrics,
                )
            )
            began, done = time.perf_counter(), fleet.n_updates
    jax.block_until_ready(fleet.state)
    saving.save(fleet, where)


def _passed(fleet: Fleet, every: int, first: int | None = None) -> bool:
    """Whether the last step reached a frame of the series first, first + every, …"""
    first = every if first is None else first
    now, before = fleet.frame, fleet.frame - fleet.frames_per_step
    return now >= first and (now - first) // every > (before - first) // every
