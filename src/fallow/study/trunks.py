"""Trunks: trained once, kept by id, and shared between studies.

<store>/<id>/               000.agent, 000.replay, history.fallow, results.csv
<store>/work-<id>/          trunks being trained together
"""

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fallow.agents import training
from fallow.agents.checkpoints import CheckpointPath, found
from fallow.agents.fleet import Fleet, build_agent
from fallow.agents.progress import OnProgress, Progress
from fallow.core import files
from fallow.core.lock import Locked, lock
from fallow.core.records import Branch
from fallow.core.results import Label, read_results, write_results
from fallow.study.plan import Plan
from fallow.study.planned import PlannedTrunk, identity
from fallow.study.store import TABLE, link

HISTORY = "history.fallow"
WAIT_S = 5.0
"""Between two looks whether another process is done with a trunk."""


def ensure_trunks(
    plan: Plan,
    trunks: Sequence[PlannedTrunk],
    store: Path,
    on_progress: OnProgress,
) -> None:
    """Train those trunks that the store has not, together.

    Where another process trains them, wait for it.
    """
    while missing := [one for one in trunks if not (store / one.id).is_dir()]:
        begun = _work(store, trunks).exists()  # also one cut off while handing over
        try:
            _train_together(plan, trunks if begun else missing, store, on_progress)
        except Locked as locked:
            _report(plan, on_progress, f"waiting for trunks: {locked}")
            time.sleep(WAIT_S)
    shutil.rmtree(_work(store, trunks), ignore_errors=True)  # cut off at the very end


def _train_together(
    plan: Plan, together: Sequence[PlannedTrunk], store: Path, on_progress: OnProgress
) -> None:
    work = _work(store, together)
    with lock(work.with_name(f"{work.name}.lock")):
        _report(plan, on_progress, f"trunks: {len(together)}; compiling, then training")
        try:
            _train(plan, together, work, on_progress)
        except training.Damaged as damage:
            aside = files.set_aside(work)
            _report(
                plan, on_progress, f"{damage}; set aside as {aside.name}; begun again"
            )
            _train(plan, together, work, on_progress)
        for index, trunk in enumerate(together):
            _hand_over(work, index, trunk, store)
        shutil.rmtree(work)


def _report(plan: Plan, on_progress: OnProgress, message: str) -> None:
    on_progress(Progress(0, plan.trunk_frames, 0, 0.0, message=message))


def place_of(trunk: str, store: Path) -> CheckpointPath:
    """The checkpoint of a trunk."""
    return CheckpointPath(store / trunk)


def _work(store: Path, trunks: Sequence[PlannedTrunk]) -> Path:
    name = identity("work", {"trunks": [trunk.id for trunk in trunks]})
    return store / f"work-{name}"


def _train(
    plan: Plan, trunks: Sequence[PlannedTrunk], work: Path, on_progress: OnProgress
) -> None:
    first = trunks[0]
    agent = build_agent(first.task, first.agent, first.preset)
    branches = [Branch(trunk.training_seed) for trunk in trunks]
    fleet = Fleet(first.task, agent, branches, plan.capacity_transitions)
    labels = [
        Label(t.task, t.agent, t.preset, "none", "passive", t.seed, t.id, "")
        for t in trunks
    ]
    phase = training.Phase(
        plan.trunk_frames,
        plan.evaluate_frames,
        plan.n_episodes,
        plan.save_frames,
        offset_frames=plan.offset_frames,
    )
    training.resume(fleet, phase, work)
    training.train_until(fleet, phase, work, labels, on_progress)


def _hand_over(work: Path, index: int, trunk: PlannedTrunk, store: Path) -> None:
    """Give a trained trunk its own folder, all at once."""
    target = store / trunk.id
    if target.is_dir():
        return
    part = store / f"{trunk.id}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    saved = CheckpointPath(found(work / "checkpoint") or work / "checkpoint", index)
    linked = CheckpointPath(part)
    link(saved.agent, linked.agent)
    link(saved.replay, linked.replay)
    link(work / "histories" / f"{index:03d}.fallow", part / HISTORY)
    rows = [
        replace(row, trunk_fingerprint=linked.fingerprint())
        for row in read_results(work / TABLE)
        if row.trunk == trunk.id
    ]
    write_results(part / TABLE, rows)
    os.replace(part, target)
