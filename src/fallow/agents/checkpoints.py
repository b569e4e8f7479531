"""Checkpoints of a fleet: two checked files a branch, and nothing half-written.

A checkpoint is a folder with `000.agent` (learner, memory, worlds, running episodes)
and `000.replay` for branch 0, and so on. It is written under another name and put in
the place of the one before, which stays until then. The files of any branch can begin
any branch of another fleet: this is how a trunk begins its branches.
"""

import dataclasses
import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fallow.agents.fleet import Fleet
from fallow.agents.programs import named
from fallow.core import arrayfile, options
from fallow.core.errors import FallowError
from fallow.core.records import NO_REGIME
from fallow.dynamics import Condition
from fallow.replay import Rule

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
        LearningError: a branch's numbers are no longer numbers; nothing is written.
    """
    fleet.check_finite()
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
    """Go on where a checkpoint of the same fleet was written, and with its histories.

    Raises:
        FallowError: there is none, or it is of another fleet.
    """
    where = found(folder)
    if where is None:
        raise FallowError(f"there is no checkpoint at {folder}")
    places = [CheckpointPath(where, index) for index in range(len(fleet.branches))]
    loaded = begin(fleet, places)
    if histories is not None:
        kept = [header["n_episodes"] for _, header in loaded]
        running = [_below("running/", arrays) for arrays, _ in loaded]
        if None in kept:
            raise FallowError(f"{where} was saved by a run that kept no histories")
        fleet.record(histories, kept, running)


Loaded = tuple[dict[str, np.ndarray], dict[str, Any]]
"""Arrays and header of a file."""


def begin(fleet: Fleet, places: Sequence[CheckpointPath]) -> list[Loaded]:
    """Begin each branch from a saved one, with its own condition and rule.

    A branch whose rule is not the saved one goes on under its own, and one whose body
    is not the saved one's has just changed. Returns what was read.

    Raises:
        FallowError: not one place for each branch, a file that is missing, damaged or
            of another agent, or places that were saved at different times.
    """
    if len(places) != len(fleet.branches):
        raise FallowError(
            f"{len(places)} saved branches for {len(fleet.branches)}; give one each"
        )
    loaded = [arrayfile.load(place.agent, KIND, VERSION) for place in places]
    for place, (_, header) in zip(places, loaded, strict=True):
        _check(fleet, place, header)
    n_steps = {header["n_steps"] for _, header in loaded}
    if len(n_steps) > 1:
        raise FallowError(
            "the saved branches were saved at different steps and cannot share a "
            f"fleet: {sorted(n_steps)}"
        )
    arrays = [own for own, _ in loaded]
    programs = fleet.programs
    state = programs.tree(programs.branch(fleet.state, 0))
    carry = programs.branch(fleet.carry, 0)
    fleet.state = programs.sharded(
        [jax.tree.leaves(_filled(state, "state", own)) for own in arrays]
    )
    fleet.carry = programs.sharded([_filled(carry, "carry", own) for own in arrays])
    fleet.n_steps = n_steps.pop()
    fleet.updates = np.array([header["n_updates"] for _, header in loaded], np.int64)
    for index, (place, branch) in enumerate(zip(places, fleet.branches, strict=True)):
        fleet.buffer.load(index, place.replay)
        sampler = fleet.buffer.samplers[index]
        if sampler.rule != Rule.parse(branch.rule):
            sampler.set_rule(branch.rule)
    fleet.worlds.restore(
        {
            name: np.concatenate([own[f"worlds/{name}"] for own in arrays])
            for name in fleet.worlds.save()
        }
    )
    fleet.begins = np.stack([own["begins"] for own in arrays])
    for index, (_, header) in enumerate(loaded):
        before = Condition.parse(header["branch"]["condition"]).regime(header["frame"])
        if before not in (None, NO_REGIME, int(fleet.worlds.regime[index])):
            fleet.buffer.note_change(index)
    return loaded


def _save_branch(fleet: Fleet, index: int, place: CheckpointPath) -> None:
    arrays = {"begins": fleet.begins[index]}
    programs = fleet.programs
    state = programs.tree(programs.branch(fleet.state, index))
    carry = programs.branch(fleet.carry, index)
    for prefix, tree in (("state", state), ("carry", carry)):
        for name, leaf in named(tree).items():
            arrays[f"{prefix}/{name}"] = _plain(leaf)
    for name, values in fleet.worlds.save().items():
        arrays[f"worlds/{name}"] = values[index : index + 1]
    n_episodes = None
    if fleet.recorders:
        recorder = fleet.recorders[index]
        n_episodes = recorder.writer.n_episodes
        for name, values in recorder.save().items():
            arrays[f"running/{name}"] = values
    header = {
        **_identity(fleet),
        "branch": dataclasses.asdict(fleet.branches[index]),
        "n_steps": fleet.n_steps,
        "n_updates": int(fleet.updates[index]),
        "n_episodes": n_episodes,
        "frame": fleet.frame,
    }
    arrayfile.save(place.agent, KIND, VERSION, arrays, header)
    fleet.buffer.save(index, place.replay)


def _identity(fleet: Fleet) -> dict[str, Any]:
    """What a saved branch and a fleet must share."""
    return {
        "task": fleet.task.name,
        "agent": fleet.agent.name,
        "sizes": options.telling(fleet.agent.config),
    }


def _check(fleet: Fleet, place: CheckpointPath, header: dict[str, Any]) -> None:
    own = _identity(fleet)
    for name in ("task", "agent"):
        if header[name] != own[name]:
            raise FallowError(
                f"{place.agent} was saved for {name} '{header[name]}', and this fleet "
                f"has '{own[name]}'"
            )
    for name, value in own["sizes"].items():
        if header["sizes"].get(name) != value:
            raise FallowError(
                f"{place.agent} was saved with {name}={header['sizes'].get(name)}, and "
                f"this fleet has {value}; use the preset it was saved with"
            )


def _plain(leaf: jax.Array) -> np.ndarray:
    """An array of a type that every reader knows; bfloat16 fits into float32."""
    wide = leaf.astype("float32") if leaf.dtype == "bfloat16" else leaf
    return np.asarray(wide)


def _filled(like: Any, prefix: str, arrays: dict[str, np.ndarray]) -> Any:
    """The saved leaves of a branch, in the shape and types of `like`."""
    leaves, tree = jax.tree.flatten(like)
    names = list(named(like))
    filled = [
        jax.device_put(_array(arrays, f"{prefix}/{name}").astype(leaf.dtype))
        for name, leaf in zip(names, leaves, strict=True)
    ]
    return jax.tree.unflatten(tree, filled)


OLD_NAMES = {"opt_state": "moments", "continues": "proceeds", "return_range": "limits"}
"""Parts of names of arrays as earlier versions wrote them."""


def _array(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    """An array by its name, or by that which earlier versions gave it."""
    if name not in arrays:
        for new, old in OLD_NAMES.items():
            name = name.replace(new, old)
    return arrays[name]


def _below(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        name[len(prefix) :]: values
        for name, values in arrays.items()
        if name.startswith(prefix)
    }
