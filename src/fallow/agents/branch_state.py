"""All that a branch is at one step, as plain arrays and a header: its state dict."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from fallow.agents.programs import named
from fallow.core import options
from fallow.core.errors import FallowError
from fallow.core.records import NO_REGIME
from fallow.dynamics import Condition
from fallow.replay import Rule

if TYPE_CHECKING:
    from fallow.agents.fleet import Fleet

OLD_NAMES = {"opt_state": "moments", "continues": "proceeds", "return_range": "limits"}
"""Parts of names of arrays as earlier versions wrote them."""


class BranchState(NamedTuple):
    """Learner, carry, worlds and running episodes of a branch, without its replay."""

    arrays: dict[str, np.ndarray]
    """By path: `state/…`, `carry/…`, `worlds/…`, `running/…`, `begins`."""
    header: dict[str, Any]
    """Task, agent, sizes, the branch, and counts of steps, updates and episodes."""

    def below(self, prefix: str) -> dict[str, np.ndarray]:
        """Arrays whose path begins with a prefix, without it."""
        return {
            name[len(prefix) :]: values
            for name, values in self.arrays.items()
            if name.startswith(prefix)
        }

    def tree(self, prefix: str, like: Any) -> Any:
        """The arrays below a prefix in the shape and types of a pytree."""
        leaves, structure = jax.tree.flatten(like)
        filled = [
            jax.device_put(self._array(f"{prefix}/{name}").astype(leaf.dtype))
            for name, leaf in zip(named(like), leaves, strict=True)
        ]
        return jax.tree.unflatten(structure, filled)

    def _array(self, name: str) -> np.ndarray:
        """An array by its name, or by that which earlier versions gave it."""
        if name not in self.arrays:
            for new, old in OLD_NAMES.items():
                name = name.replace(new, old)
        return self.arrays[name]


def flattened(prefix: str, tree: Any) -> dict[str, np.ndarray]:
    """A pytree as arrays by path, in types that every reader knows.

    bfloat16 fits into float32.
    """

    def plain(leaf: jax.Array) -> np.ndarray:
        wide = leaf.astype("float32") if leaf.dtype == "bfloat16" else leaf
        return np.asarray(wide)

    return {f"{prefix}/{name}": plain(leaf) for name, leaf in named(tree).items()}


def state_of(fleet: "Fleet", index: int) -> BranchState:
    """All of a branch but its replay."""
    programs = fleet.programs
    state = programs.tree(programs.branch(fleet.state, index))
    carry = programs.branch(fleet.carry, index)
    arrays = {"begins": fleet.begins[index]}
    arrays |= flattened("state", state) | flattened("carry", carry)
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
    return BranchState(arrays, header)


def load(fleet: "Fleet", saved: Sequence[BranchState]) -> None:
    """See `Fleet.load_state_dict`."""
    n_steps = {state.header["n_steps"] for state in saved}
    if len(n_steps) > 1:
        raise FallowError(
            "the saved branches were saved at different steps and cannot share a "
            f"fleet: {sorted(n_steps)}"
        )
    programs = fleet.programs
    state = programs.tree(programs.branch(fleet.state, 0))
    carry = programs.branch(fleet.carry, 0)
    fleet.state = programs.sharded(
        [jax.tree.leaves(one.tree("state", state)) for one in saved]
    )
    fleet.carry = programs.sharded([one.tree("carry", carry) for one in saved])
    fleet.n_steps = n_steps.pop()
    counts = [one.header["n_updates"] for one in saved]
    fleet.updates = np.array(counts, np.int64)
    for sampler, branch in zip(fleet.buffer.samplers, fleet.branches, strict=True):
        if sampler.rule != Rule.parse(branch.rule):
            sampler.set_rule(branch.rule)
    fleet.buffer.read_stored()
    fleet.set_true_mismatches()
    fleet.worlds.restore(
        {
            name: np.concatenate([one.arrays[f"worlds/{name}"] for one in saved])
            for name in fleet.worlds.save()
        }
    )
    fleet.begins = np.stack([one.arrays["begins"] for one in saved])
    for index, one in enumerate(saved):
        condition = Condition.parse(one.header["branch"]["condition"])
        before = condition.regime(one.header["frame"])
        if before not in (None, NO_REGIME, int(fleet.worlds.regime[index])):
            fleet.buffer.note_change(index)


def check(fleet: "Fleet", saved: BranchState, source: str) -> None:
    """Raise if a saved branch is of another task, agent or size."""
    identity, header = _identity(fleet), saved.header
    for name in ("task", "agent"):
        if header[name] != identity[name]:
            raise FallowError(
                f"{source} was saved for {name} '{header[name]}', and this fleet "
                f"has '{identity[name]}'"
            )
    for name, value in identity["sizes"].items():
        if header["sizes"].get(name) != value:
            raise FallowError(
                f"{source} was saved with {name}={header['sizes'].get(name)}, and "
                f"this fleet has {value}; use the preset it was saved with"
            )


def _identity(fleet: "Fleet") -> dict[str, Any]:
    """What a saved branch and a fleet must share."""
    return {
        "task": fleet.task.name,
        "agent": fleet.agent.name,
        "sizes": options.identifying(fleet.agent.config),
    }
