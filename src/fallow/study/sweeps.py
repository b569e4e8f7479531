"""The places of conditions and rules along the paper's three sweeps.

Tables and figures read these and derive nothing themselves.
"""

import math

from fallow.core.errors import FallowError
from fallow.dynamics.conditions import Condition
from fallow.dynamics.schedules import Permanent, Recurring
from fallow.dynamics.shifts import Gain
from fallow.replay.rules import Rule
from fallow.replay.rules.recency import Recency

PERMANENT = math.inf
"""The period of a change that stays."""


def gain_of(condition: str) -> float | None:
    """The gain that a permanent change of all actuators leaves; `none` leaves all."""
    found = _parsed(condition)
    if found is None:
        return None
    if found.shift is None:
        return 1.0
    shift = found.shift
    if not isinstance(found.schedule, Permanent) or not isinstance(shift, Gain):
        return None
    return None if isinstance(shift.g, tuple) else float(shift.g)


def period_of(condition: str) -> float | None:
    """Frames between switches to half the gain; infinite if the change stays."""
    found = _parsed(condition)
    if found is None or found.shift != Gain():
        return None
    if isinstance(found.schedule, Recurring):
        return float(found.schedule.period_frames)
    return PERMANENT if isinstance(found.schedule, Permanent) else None


def window_of(rule: str) -> int | None:
    """Transitions in the window of `recency`; None for other rules."""
    try:
        found = Rule.parse(rule)
    except FallowError:
        return None
    return found.window_transitions if isinstance(found, Recency) else None


def _parsed(condition: str) -> Condition | None:
    try:
        return Condition.parse(condition)
    except FallowError:  # of another version, or of somebody else
        return None
