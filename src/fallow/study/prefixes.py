"""Prefixes: what branches of one trunk and one rule share until the body changes.

Branches that differ in their condition alone are the same run until then. A fleet
trains that run once, and all of them begin from it, with its evaluations in their
tables and its episodes in their histories.

<fleet>/prefixes/           table, checkpoint and histories, one for each prefix
"""

import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from fallow.agents import checkpoints
from fallow.agents.branch_state import BranchState
from fallow.agents.checkpoints import CheckpointPath
from fallow.agents.fleet import Fleet
from fallow.agents.training import CHECKPOINT, HISTORIES, Damaged
from fallow.core.legacy import ALGORITHM
from fallow.core.results import Label, read_results, write_results
from fallow.logs.history import copy_episodes
from fallow.logs.recorder import header_of
from fallow.study.fleets import PlannedFleet
from fallow.study.store import TABLE, Study

FOLDER = "prefixes"


def folder_of(study: Study, planned: PlannedFleet) -> Path:
    """Where the prefixes of a fleet are trained."""
    return study.fleet_folder(planned) / FOLDER


def begin(
    study: Study, planned: PlannedFleet, fleet: Fleet, labels: Sequence[Label]
) -> None:
    """Begin every branch of a fleet where its prefix ended.

    Raises:
        Damaged: a file of a prefix cannot be read.
    """
    source, target = folder_of(study, planned), study.fleet_folder(planned)
    shared = [planned.prefix_of(branch) for branch in planned.branches]
    try:
        where = checkpoints.found(source / CHECKPOINT) or source / CHECKPOINT
        saved = checkpoints.begin(fleet, [CheckpointPath(where, i) for i in shared])
        _copy_histories(fleet, source / HISTORIES, target / HISTORIES, shared, saved)
        _copy_rows(source / TABLE, target / TABLE, shared, labels)
    except (ValueError, KeyError) as error:
        raise Damaged(f"{error} (a prefix)") from error


def _copy_histories(
    fleet: Fleet,
    source: Path,
    target: Path,
    shared: Sequence[int],
    saved: Sequence[BranchState],
) -> None:
    """Begin every branch's history with the episodes of its prefix."""
    shutil.rmtree(target, ignore_errors=True)  # of a start that was killed
    for index, prefix in enumerate(shared):
        copy_episodes(
            source / f"{prefix:03d}.fallow",
            target / f"{index:03d}.fallow",
            header_of(fleet.worlds, index),
        )
    kept = [state.header["n_episodes"] for state in saved]
    fleet.record(target, kept, [state.below("running/") for state in saved])


def _copy_rows(
    source: Path, target: Path, shared: Sequence[int], labels: Sequence[Label]
) -> None:
    """Give every branch the evaluations of its prefix, under its own label."""
    rows, n_prefixes = read_results(source), max(shared) + 1
    write_results(
        target,
        [
            replace(rows[first + prefix], **asdict(label), algorithm=ALGORITHM)
            for first in range(0, len(rows), n_prefixes)
            for prefix, label in zip(shared, labels, strict=True)
        ],
    )
