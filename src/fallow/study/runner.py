"""One fleet of a study: its trunks, its prefixes, its branches, until it is done."""

import dataclasses
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fallow.agents import checkpoints, training
from fallow.agents.fleet import Fleet, build_agent
from fallow.agents.learners import LearningError
from fallow.agents.progress import Progress
from fallow.core import arrayfile, files
from fallow.core.errors import FallowError
from fallow.core.lock import lock
from fallow.core.records import Branch
from fallow.core.results import Label
from fallow.dynamics import PhysicsError
from fallow.replay import replay_file as replay_saving
from fallow.study import prefixes
from fallow.study.fleets import PlannedFleet, prefix_end
from fallow.study.planned import PlannedBranch
from fallow.study.store import (
    DONE,
    FAILED,
    STATUS,
    Study,
    is_done,
    link,
    mark_done,
    read_json,
    read_status,
    write_json,
)
from fallow.study.trunks import HISTORY, ensure_trunks, place_of

BEGUN = "begun.json"
"""Fingerprints of the trunks that a fleet began from."""
STATUS_S = 1.0
"""Seconds between two writings of a fleet's status."""


@dataclass(frozen=True)
class Event:
    """Progress or a message of one fleet."""

    fleet: PlannedFleet
    stage: str
    """`trunks`, `prefixes` or `branches`."""
    progress: Progress


OnEvent = Callable[[Event], None]


def try_fleet(study: Study, fleet: PlannedFleet, on_event: OnEvent) -> None:
    """Run a fleet; if learning or physics fails, mark it failed and return."""
    path = study.fleet_folder(fleet) / FAILED
    path.unlink(missing_ok=True)
    try:
        run_fleet(study, fleet, on_event)
    except (LearningError, PhysicsError) as error:
        write_json(path, {"reason": str(error)})
        send_message(fleet, on_event, f"fleet {fleet.id} failed: {error}")


def run_fleet(study: Study, fleet: PlannedFleet, on_event: OnEvent) -> None:
    """Run a fleet to its end, or resume it.

    Damaged files are reported and set aside, and their work is repeated.

    Raises:
        Locked: another process works on it.
    """
    folder = study.fleet_folder(fleet)
    with lock(folder.with_name(f"{fleet.id}.lock")):
        if is_done(folder):
            _clean_up(folder)
            return
        if (folder / DONE).exists():
            _set_aside(study, fleet, on_event, f"the table of {folder} was changed")
        try:
            _train(study, fleet, on_event)
        except training.Damaged as damage:
            _set_aside(study, fleet, on_event, str(damage))
            _train(study, fleet, on_event)
        _finish(study, fleet)


@dataclass(frozen=True)
class _Stage:
    """The prefixes of a fleet, or its branches."""

    name: str
    branches: tuple[PlannedBranch, ...]
    folder: Path
    until_frame: int


def _train(study: Study, planned: PlannedFleet, on_event: OnEvent) -> None:
    """Resume the branches of a fleet, or begin them from what is before, and train."""
    plan, folder = study.plan, study.fleet_folder(planned)
    last = plan.trunk_frames + plan.branch_frames
    branches = _Stage("branches", planned.branches, folder, last)
    if checkpoints.found(folder / training.CHECKPOINT) is None:
        _trunks(study, planned, on_event)
        _note_trunks(study, planned)
        if planned.cost.prefix_updates:
            _train_prefixes(study, planned, on_event)
    _train_stage(study, planned, branches, on_event)


def _train_prefixes(study: Study, planned: PlannedFleet, on_event: OnEvent) -> None:
    """Train what branches share before the change, unless it is done."""
    folder = prefixes.folder_of(study, planned)
    if not is_done(folder):
        until = prefix_end(study.plan, planned.branches[0].agent)
        stage = _Stage("prefixes", planned.prefixes, folder, until)
        _train_stage(study, planned, stage, on_event)
        mark_done(folder)


def _train_stage(
    study: Study, planned: PlannedFleet, stage: _Stage, on_event: OnEvent
) -> None:
    plan, first = study.plan, stage.branches[0]
    agent = build_agent(first.task, first.agent, first.preset)
    branches = [
        Branch(branch.training_seed, branch.world_condition, branch.rule)
        for branch in stage.branches
    ]
    phase = training.Phase(
        stage.until_frame,
        plan.evaluate_frames,
        plan.n_episodes,
        plan.save_frames,
        begin_frame=plan.trunk_frames,
        offset_frames=plan.offset_frames,
    )
    fleet = Fleet(first.task, agent, branches, plan.capacity_transitions)
    labels = _labels(study, planned, stage.branches)
    if not training.resume(fleet, phase, stage.folder):
        _begin(study, planned, stage, fleet, labels)
    note = f"{stage.name}: {len(branches)}; compiling, then training"
    send_message(planned, on_event, note)
    reporter = Reporter(study, planned, stage.name, on_event)
    training.train_until(fleet, phase, stage.folder, labels, reporter)


def _labels(
    study: Study, planned: PlannedFleet, branches: Sequence[PlannedBranch]
) -> list[Label]:
    """The columns that name rows of branches, with the training of their trunk."""
    fingerprints = _begun_from(study, planned)
    return [
        dataclasses.replace(branch.label, trunk_fingerprint=fingerprints[branch.trunk])
        for branch in branches
    ]


def _trunks(study: Study, fleet: PlannedFleet, on_event: OnEvent) -> None:
    reporter = Reporter(study, fleet, "trunks", on_event)
    ensure_trunks(study.plan, fleet.trunks, study.store, reporter)
    for trunk in fleet.trunks:
        history = study.store / trunk.id / HISTORY
        link(history, study.folder / "histories" / f"{trunk.id}.fallow")


def _note_trunks(study: Study, fleet: PlannedFleet) -> None:
    """Record which training of its trunks a fleet starts from.

    Raises:
        FallowError: another fleet of the study began from another training of one.
    """
    found = {trunk.id: _fingerprint(study, trunk.id) for trunk in fleet.trunks}
    for other in study.fleets:
        for trunk, known in _begun_from(study, other).items():
            if other.id != fleet.id and known and found.get(trunk, known) != known:
                raise FallowError(
                    f"trunk {trunk} was trained again: fleet {other.id} began from "
                    f"{known}, and {study.store / trunk} holds {found[trunk]}; put the "
                    "first training back, or begin in another folder"
                )
    write_json(study.fleet_folder(fleet) / BEGUN, found)


def _fingerprint(study: Study, trunk: str) -> str:
    try:
        return place_of(trunk, study.store).fingerprint()
    except FallowError:
        _check_trunk(study, trunk)
        raise


def _begun_from(study: Study, fleet: PlannedFleet) -> dict[str, str]:
    """Fingerprints of the trunks that a fleet began from; empty if not known."""
    known = read_json(study.fleet_folder(fleet) / BEGUN)
    return {trunk.id: str(known.get(trunk.id, "")) for trunk in fleet.trunks}


def _begin(
    study: Study,
    planned: PlannedFleet,
    stage: _Stage,
    fleet: Fleet,
    labels: Sequence[Label],
) -> None:
    """Start every branch from its prefix, or else from its trunk.

    Samples are counted from the trunk on.
    """
    if stage.name == "branches" and planned.cost.prefix_updates:
        prefixes.begin(study, planned, fleet, labels)
        return
    places = [place_of(branch.trunk, study.store) for branch in stage.branches]
    try:
        checkpoints.begin(fleet, places)
    except (ValueError, KeyError) as error:
        for trunk in planned.trunks:
            _check_trunk(study, trunk.id)
        raise FallowError(f"cannot begin from the trunks: {error}") from error
    for sampler in fleet.buffer.samplers:
        sampler.record.clear()


def _check_trunk(study: Study, trunk: str) -> None:
    """Set a trunk aside if one of its files is damaged, and say so."""
    place = place_of(trunk, study.store)
    try:
        arrayfile.load(place.agent, checkpoints.KIND, checkpoints.VERSION)
        arrayfile.load(place.replay, replay_saving.KIND, replay_saving.VERSION)
    except (ValueError, KeyError) as error:
        files.set_aside(place.folder)
        raise training.Damaged(f"{error} (a trunk)") from error


def _set_aside(study: Study, fleet: PlannedFleet, on_event: OnEvent, why: str) -> None:
    folder = study.fleet_folder(fleet)
    text = f"{why}; "
    if folder.exists():
        text += f"set aside as {files.set_aside(folder).name}; "
    send_message(
        fleet, on_event, f"{text}its {len(fleet.branches)} branches are run again"
    )


def send_message(fleet: PlannedFleet, on_event: OnEvent, message: str) -> None:
    """Send a message as an event."""
    progress = Progress(0, 0, 0, 0.0, message=message)
    on_event(Event(fleet, "branches", progress))


def _finish(study: Study, fleet: PlannedFleet) -> None:
    """Move histories to the study, mark the fleet done, remove its checkpoint."""
    folder = study.fleet_folder(fleet)
    for index, branch in enumerate(fleet.branches):
        history = folder / "histories" / f"{index:03d}.fallow"
        link(history, study.folder / "histories" / f"{branch.id}.fallow")
    mark_done(folder)
    _clean_up(folder)


def _clean_up(folder: Path) -> None:
    """Remove what a finished fleet no longer needs."""
    for name in ("checkpoint", "histories", prefixes.FOLDER):
        shutil.rmtree(folder / name, ignore_errors=True)


class Reporter:
    """Writes a fleet's status next to its table, and sends events."""

    def __init__(
        self, study: Study, fleet: PlannedFleet, stage: str, on_event: OnEvent
    ) -> None:
        self._path = study.fleet_folder(fleet) / STATUS
        self._fleet, self._stage, self._on_event = fleet, stage, on_event
        self._built_s = self._began_s = self._written_s = time.monotonic()
        self._spent: dict[str, Any] = read_status(self._path.parent).get("spent_s", {})
        self._first: int | None = None

    def __call__(self, progress: Progress) -> None:
        if not progress.message:
            self._note(progress, time.monotonic())
        self._on_event(Event(self._fleet, self._stage, progress))

    def _note(self, progress: Progress, now_s: float) -> None:
        if self._first is None:
            self._first, self._began_s = progress.n_updates, now_s
        is_last = progress.frame >= progress.until_frame
        if now_s - self._written_s > STATUS_S or is_last:
            self._write(progress, now_s)
            self._written_s = now_s

    def _write(self, progress: Progress, now_s: float) -> None:
        sizes = {stage: company for stage, company, _ in self._fleet.stages()}
        made = progress.n_updates - (self._first or 0)
        session_s = now_s - self._built_s
        self._spent[self._stage] = {"total": session_s, **progress.seconds}
        write_json(
            self._path,
            {
                "stage": self._stage,
                "frame": progress.frame,
                "until_frame": progress.until_frame,
                "n_updates": progress.n_updates,
                "session_updates": made * sizes[self._stage],
                "session_s": now_s - self._began_s,
                "spent_s": self._spent,
                "time": time.time(),
            },
        )
