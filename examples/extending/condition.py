"""A shift and the condition that names it: joints that turn viscous for good."""

from dataclasses import dataclass

import numpy as np

from fallow.core import options
from fallow.dynamics.conditions import CONDITIONS, ConditionKind
from fallow.dynamics.schedules import Range
from fallow.dynamics.shifts import Fields, Original, Shift


@dataclass(frozen=True)
class Viscous(Shift):
    """Damping of every joint plus `added` newton metre seconds."""

    added: float = 0.5

    def __post_init__(self) -> None:
        options.check_number("viscous", "added", self.added, at_least=0)

    def levels(self, original: Original) -> float:
        """The level of the changed body."""
        return self.added

    def range(self, original: Original) -> Range:
        """The level's start, bounds and step under a drifting schedule."""
        return Range(start=0.0, min=0.0, max=2.0, std=0.1)

    def fields(self, original: Original, level: float | None) -> Fields:
        """The model's numbers at a level; None is the original body."""
        return {"dof_damping": np.add(original.damping, level or 0.0)}


CONDITIONS.add(
    "viscous",
    ConditionKind("Viscous joints", "joints damped, for good", Viscous, "permanent"),
)
