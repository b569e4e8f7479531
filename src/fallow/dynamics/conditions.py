"""A condition: a shift on a schedule, by name with options.

`gain`, `gain:g=0.7`, `recurring:period_frames=10000`, `damage:actuator=2`,
`damping:schedule=saw_wave,std=0.2`, `friction`, `none`.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError, unknown
from fallow.core.records import NO_REGIME
from fallow.core.registry import Registry
from fallow.dynamics.schedules import SCHEDULES, Drift, Never, Schedule
from fallow.dynamics.shifts import (
    Damage,
    Damping,
    Fields,
    Friction,
    Gain,
    Original,
    Reversal,
    Shift,
)
from fallow.dynamics.tasks.body import EPISODE_FRAMES


class ConditionKind(NamedTuple):
    """A named condition: its shift, its default schedule."""

    label: str
    """The label in tables and figures."""
    summary: str
    shift: type[Shift] | None
    schedule: str


CONDITIONS: Registry[ConditionKind] = Registry("condition")
for _name, _kind in {
    "gain": ConditionKind(
        "Gain reduction", "all actuators at half strength, for good", Gain, "permanent"
    ),
    "damage": ConditionKind(
        "Actuator damage", "one actuator dead, for good", Damage, "permanent"
    ),
    "recurring": ConditionKind(
        "Recurring", "half strength and full in turn", Gain, "recurring"
    ),
    "reversal": ConditionKind(
        "Reversal", "all actuators push the other way, for good", Reversal, "permanent"
    ),
    "damping": ConditionKind(
        "Damping", "joint damping that climbs and jumps back", Damping, "cyclic_pos"
    ),
    "friction": ConditionKind(
        "Friction", "floor friction that drifts towards ice", Friction, "drift_neg"
    ),
    "none": ConditionKind("No change", "the body never changes", None, "never"),
}.items():
    CONDITIONS.add(_name, _kind)


@dataclass(frozen=True)
class Condition:
    """What changes and when. `str` gives the shortest text that parses back to it."""

    name: str
    shift: Shift | None
    schedule: Schedule
    schedule_name: str

    @classmethod
    def parse(cls, text: "str | Condition") -> "Condition":
        """Read `name:option=value,…`; a condition passes through."""
        if isinstance(text, Condition):
            return text
        if not isinstance(text, str):
            raise FallowError(
                f"a condition is {options.shown(text)}; write its name, e.g. 'gain'"
            )
        name, given = options.parse(text)
        kind = CONDITIONS[name]
        if kind.shift is None:
            if given:
                raise FallowError(f"condition '{name}' takes no options: '{text}'")
            return cls(name, None, Never(), kind.schedule)
        schedule_name = str(given.pop("schedule", kind.schedule))
        named = SCHEDULES[schedule_name]
        shift_options = _names(kind.shift)
        schedule_options = _names(named.cls) - set(named.fixed)
        for option in given:
            if option not in shift_options | schedule_options:
                known = shift_options | schedule_options | {"schedule"}
                raise unknown(f"option of '{name}'", option, known)
        if named.cls is Drift and (bad := shift_options & set(given)):
            raise FallowError(
                f"condition '{name}': {bad.pop()} is the level of a switch, and "
                f"{schedule_name} sets the level itself; leave it out or add "
                "schedule=permanent"
            )
        shift = options.build(kind.shift, _only(given, shift_options), name)
        schedule = options.build(
            named.cls, _only(given, schedule_options) | named.fixed, schedule_name
        )
        return cls(name, shift, schedule, schedule_name)

    def __str__(self) -> str:
        kind = CONDITIONS[self.name]
        changed: dict[str, Any] = {}
        if self.schedule_name != kind.schedule:
            changed["schedule"] = self.schedule_name
        if self.shift is not None:
            changed |= options.changed(self.shift) | options.changed(self.schedule)
            changed.pop("kind", None)
        return options.render(self.name, changed)

    def regime(self, frame: int) -> int | None:
        """The regime in force at a frame of the agent's clock; None: it has none."""
        return self.schedule.regime(self.schedule.segment(frame))

    def gains(self, n_actuators: int) -> np.ndarray | None:
        """(2, n_actuators) true gains of regimes 0 and 1; None: other things change.

        Raises:
            FallowError: the body has other actuators.
        """
        before = np.ones(n_actuators)
        if self.shift is None:
            return np.stack([before, before])
        if isinstance(self.schedule, Drift):
            return None
        after = self.shift.gains(n_actuators)
        return None if after is None else np.stack([before, after])

    def on(
        self, model: Any, seed: int = 0, episode_frames: int = EPISODE_FRAMES
    ) -> "Course":
        """Bind the condition to a compiled model and a seed for its levels.

        The agent's worlds reset every `episode_frames` of its clock.
        """
        return Course(self, Original.of(model), seed, episode_frames)


class Course:
    """A condition on one body: which model fields are in force in each segment."""

    def __init__(
        self,
        condition: Condition,
        original: Original,
        seed: int,
        episode_frames: int = EPISODE_FRAMES,
    ) -> None:
        self.condition = condition
        self.schedule = condition.schedule.on_clock(episode_frames)
        self._original = original
        self._seed = seed
        shift = condition.shift
        if shift is None:
            return
        if isinstance(self.schedule, Drift):
            self._range = self.schedule.range(shift.range(original))
            for bound in (self._range.min, self._range.max):
                shift.fields(original, bound)  # both ends must be possible
        elif not isinstance(self.schedule, Never):
            self._switched = shift.levels(original)
            shift.fields(original, self._switched)

    def level(self, segment: int) -> Any:
        """The shift's level in a segment; None: the original body."""
        if isinstance(self.schedule, Drift):
            if segment == 0:
                return None
            return self.schedule.level(segment, self._range, self._seed)
        return self._switched if self.schedule.regime(segment) else None

    def truth(self, segment: int) -> dict[str, int | float]:
        """What evaluations may read and agents may not: regime, drifting level."""
        regime = self.schedule.regime(segment)
        truth: dict[str, int | float] = {
            "regime": NO_REGIME if regime is None else regime
        }
        if isinstance(self.schedule, Drift):
            truth["level"] = self._range.start if segment == 0 else self.level(segment)
        return truth

    def fields(self, segment: int) -> Fields:
        """The model fields in force in a segment; always the same names."""
        shift = self.condition.shift
        if shift is None:
            return {}
        return shift.fields(self._original, self.level(segment))


def _names(cls: type[Any]) -> set[str]:
    return {field.name for field in dataclasses.fields(cls)}


def _only(given: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key in names}
