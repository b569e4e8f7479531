"""Texts of conditions and rules written when their defaults were others.

A text names only what differs from the defaults, so a changed default would change what
old texts mean. Files of algorithm 1 are read with the defaults of then written out:

    damage     actuator 1, or 0 on a body with a single actuator
    drifts     a level sampled every 1,000 frames; friction in steps of 0.01
    wmar       a long part of 500,000 transitions
"""

from typing import Any

from fallow.core import options

DRAW_FRAMES, FRICTION_STD, LONG_TRANSITIONS = 1000, 0.01, 500_000
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


def rule(text: str) -> str:
    """A rule of algorithm 1 with its defaults written out."""
    name, given = options.parse(text)
    added = {"long_transitions": LONG_TRANSITIONS} if name == "wmar" else {}
    return options.render(name, added | given)
