"""Checkpoints of a fleet: two checked files a branch, written atomically.

A checkpoint is a folder with `000.agent` (learner, memory, worlds, running episodes)
and `000.replay` for branch 0, and so on. It is written under another name and then
replaces the previous one. Any branch of another fleet can start from the files of a
branch; the branches of a study start from their trunk this way.
"""

import dataclasses
import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from fallow.agents.branch_state import BranchState
from fallow.agents.fleet import Fleet
from fallow.core import arrayfile
from fallow.core.errors import FallowError

KIND, VERSION = "branch", 1


@dataclasses.dataclass(frozen=True)
class CheckpointPath:
    """Where a branch was saved: the folder of a checkpoint, and its number in it."""

    folder: Path
    index: int = 0

    @property
    def agent(self) -> Path:
        """The file with all but the replay."""
        return self.folder / f"{self.index:03d}.agent"

    @property
    def replay(self) -> Path:
        """The file with the replay."""
        return self.folder / f"{self.index:03d}.replay"

    def fingerprint(self) -> str:
        """Twelve hexadecimal digits of all that was saved: learner and replay."""
        files = [arrayfile.fingerprint(path) for path in (self.agent, self.replay)]
        return hashlib.blake2b(" ".join(files).encode(), digest_size=6).hexdigest()


def save(fleet: Fleet, folder: str | Path) -> None:
    """Write a checkpoint of all branches, or leave the old one as it is.

    Raises:
        LearningError: a branch's state is no longer finite; nothing is written.
    """
    fleet.learners.check_finite(fleet.frame)
    folder = Path(folder)
    part = folder.with_name(f"{folder.name}.part")
    old = folder.with_name(f"{folder.name}.old")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        for index in range(len(fleet.branches)):
            _save_branch(fleet, index, CheckpointPath(part, index))
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            os.replace(folder, old)
        os.replace(part, folder)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def found(folder: str | Path) -> Path | None:
    """The checkpoint at `folder`, also if writing a newer one was cut off."""
    folder = Path(folder)
    old = folder.with_name(f"{folder.name}.old")
    return next((path for path in (folder, old) if path.is_dir()), None)


def load(fleet: Fleet, folder: str | Path, histories: str | Path | None = None) -> None:
    """Resume from a checkpoint of the same fleet, with its histories.

    Raises:
        FallowError: there is none, or it is of another fleet.
    """
    where = found(folder)
    if where is None:
        raise FallowError(f"there is no checkpoint at {folder}")
    places = [CheckpointPath(where, index) for index in range(len(fleet.branches))]
    saved = begin(fleet, places)
    if histories is not None:
        kept = [state.header["n_episodes"] for state in saved]
        running = [state.below("running/") for state in saved]
        if None in kept:
            raise FallowError(f"{where} was saved by a run that kept no histories")
        fleet.record(histories, kept, running)


def begin(fleet: Fleet, places: Sequence[CheckpointPath]) -> list[BranchState]:
    """Begin each branch from a saved one, with its own condition and rule.

    Returns what was read.

    Raises:
        FallowError: not one place for each branch, a file that is missing, damaged or
            of another agent, or places that were saved at different times.
    """
    if len(places) != len(fleet.branches):
        raise FallowError(
            f"{len(places)} saved branches for {len(fleet.branches)}; give one each"
        )
    read = {
        place: BranchState(*arrayfile.load(place.agent, KIND, VERSION))
        for place in dict.fromkeys(places)  # branches of one trunk share its file
    }
    saved = [read[place] for place in places]
    for place, state in zip(places, saved, strict=True):
        fleet.check(state, str(place.agent))
    for index, place in enumerate(places):
        fleet.buffer.load(index, place.replay)
    fleet.load_state_dict(saved)
    return saved


def _save_branch(fleet: Fleet, index: int, place: CheckpointPath) -> None:
    arrays, header = fleet.state_dict(index)
    arrayfile.save(place.agent, KIND, VERSION, arrays, header)
    fleet.buffer.save(index, place.replay)
