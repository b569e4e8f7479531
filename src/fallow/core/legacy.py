"""Texts of conditions written when their defaults were others.

A text names only what differs from the defaults, so a changed default would change what
old texts mean. Files of algorithm 1 are read with the defaults of then written out:

    damage     actuator 1, or 0 on a body with a single actuator
    drifts     a level drawn every 1,000 frames; friction in steps of 0.01
"""

from typing import Any

from fallow.core import options

ALGORITHM = 2
"""Raised when a change of the code changes what comes out for the same plan.

1: the first one. 2: `damage` takes actuator 0, drifts draw at resets, evaluations come
at multiples of their interval.
"""
DRAW_FRAMES, FRICTION_STD = 1000, 0.01
DRIFTING = ("damping", "friction")
"""Conditions whose usual schedule drifts."""
SWITCHES = ("never", "permanent", "recurring")
"""Schedules that do not drift."""


def condition(text: str, n_actuators: int) -> str:
    """A condition of algorithm 1 with its defaults written out, options sorted."""
    name, given = options.parse(text)
    schedule = given.get("schedule", "cyclic_pos" if name in DRIFTING else "permanent")
    added: dict[str, Any] = {}
    if name == "damage":
        added["actuator"] = min(1, n_actuators - 1)
    if schedule not in SWITCHES:
        added["draw_frames"] = DRAW_FRAMES
        if name == "friction":
            added["std"] = FRICTION_STD
    return options.render(name, added | given)
