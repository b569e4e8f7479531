"""Trunks and branches of a plan, and the ids by which equal work is found again."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from fallow.core.results import Label
from fallow.dynamics.conditions import Condition


@dataclass(frozen=True)
class PlannedTrunk:
    """A run before the branch point."""

    task: str
    agent: str
    preset: str
    seed: int
    training_seed: int
    """The seed of its randomness; the seed itself in the first set."""
    trunk_set: str
    id: str


@dataclass(frozen=True)
class PlannedBranch(Label):
    """One continuation of a trunk under one condition and one rule."""

    id: str
    training_seed: int
    world_condition: str
    """Frames counted on the agent's clock, trunk included."""

    @property
    def label(self) -> Label:
        """The columns that name its rows."""
        names = (field.name for field in dataclasses.fields(Label))
        return Label(*(getattr(self, name) for name in names))


def shifted(condition: str, shift_frame: int) -> str:
    """A condition whose change comes at a frame of the agent's clock."""
    parsed = Condition.parse(condition)
    if parsed.schedule.shift_frame is None:
        return condition
    schedule = dataclasses.replace(parsed.schedule, shift_frame=shift_frame)  # type: ignore[type-var]
    return str(dataclasses.replace(parsed, schedule=schedule))


def identity(kind: str, content: dict[str, Any]) -> str:
    """Twelve hexadecimal digits: a hash of everything that determines the result."""
    text = json.dumps([kind, content], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
