"""The state of a branch at one step: plain arrays and a header."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from fallow.agents.programs import named
from fallow.core.errors import FallowError
from fallow.dynamics import Condition

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

    @property
    def regime(self) -> int | None:
        """In force when it was saved; None: its condition has no regimes."""
        condition = Condition.parse(self.header["branch"]["condition"])
        return condition.regime(self.header["frame"])

    def check(self, identity: dict[str, Any], source: str) -> None:
        """Raise if it is not of this task, agent and sizes.

        Raises:
            FallowError: it names the difference and `source`.
        """
        for name in ("task", "agent"):
            if self.header[name] != identity[name]:
                raise FallowError(
                    f"{source} was saved for {name} '{self.header[name]}', and this "
                    f"fleet has '{identity[name]}'"
                )
        sizes = self.header["sizes"]
        for name, value in identity["sizes"].items():
            if sizes.get(name) != value:
                raise FallowError(
                    f"{source} was saved with {name}={sizes.get(name)}, and this fleet "
                    f"has {value}; use the preset it was saved with"
                )

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


def common_step(saved: Sequence[BranchState]) -> int:
    """The step at which branches were saved.

    Raises:
        FallowError: they were saved at different steps.
    """
    n_steps = {state.header["n_steps"] for state in saved}
    if len(n_steps) > 1:
        raise FallowError(
            "the saved branches were saved at different steps and cannot share a "
            f"fleet: {sorted(n_steps)}"
        )
    return int(n_steps.pop())
