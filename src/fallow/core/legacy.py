"""Texts of conditions and rules from versions with other defaults.

A text names only what differs from the defaults, so a changed default would change what
old texts mean. Files of earlier algorithms are read with their defaults written out.
Those of algorithm 1:

    damage     actuator 1, or 0 on a body with a single actuator
    drifts     a level sampled every 1,000 frames; friction in steps of 0.01

Those of algorithms 1 and 2:

    reservoir  by chunks
"""

from functools import cache
from typing import Any

from fallow.core import options
from fallow.core.errors import FallowError

ALGORITHM = 3
"""Raised when a change of the code changes the results of a plan.

1: the first one. 2: `damage` takes actuator 0, drifts are sampled at resets,
evaluations come at multiples of their interval. 3: `reservoir` keeps whole episodes.
"""
WITH_CHUNKS = (1, 2)
"""Algorithms whose `reservoir` keeps chunks."""
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


@cache
def rule(text: str) -> str:
    """A rule of algorithm 1 or 2 as it is written today.

    A text that cannot be read stays as it is.
    """
    try:
        name, given = options.parse(text)
    except FallowError:
        return text
    if name != "reservoir":
        return text
    unit = given.pop("unit", "chunk")
    if unit == "episode":
        return options.render(name, given)
    # in the order of the rule's fields
    stretch = given.pop("stretch_transitions", None)
    written = {**given, "unit": unit}
    if stretch is not None:
        written["stretch_transitions"] = stretch
    return options.render(name, written)
