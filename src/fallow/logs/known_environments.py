"""Where the observations of public environments hold the velocity of each actuator.

The observation of a Gymnasium MuJoCo environment is the positions (some left out), the
velocities, then contact forces and others, so its width says where velocities begin.
The tests build every environment and compare. Versions 2 and 3 share these layouts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fallow.dynamics.tasks import TASKS


@dataclass(frozen=True)
class ObservationLayout:
    """The velocities of one environment."""

    dofs: tuple[int, ...]
    """For each actuator, the place in qvel of the joint that it drives."""
    n_dofs: int
    """Width of qvel."""
    first: Mapping[int, int]
    """By the width of an observation: the column where qvel begins in it."""


def _legs(n_joints: int, first: Mapping[int, int]) -> ObservationLayout:
    """A planar body: three degrees of freedom, then joints in the actuators' order."""
    return ObservationLayout(tuple(range(3, 3 + n_joints)), 3 + n_joints, first)


_HUMANOID_DOFS = (7, 6, *range(8, 23))
LAYOUTS: Mapping[str, ObservationLayout] = {
    "Ant": ObservationLayout(
        (12, 13, 6, 7, 8, 9, 10, 11),
        14,
        {27: 13, 29: 15, 105: 13, 107: 15, 111: 13, 113: 15},
    ),
    "HalfCheetah": _legs(6, {17: 8, 18: 9}),
    "Hopper": _legs(3, {11: 5, 12: 6}),
    "Humanoid": ObservationLayout(
        _HUMANOID_DOFS, 23, {376: 22, 378: 24, 348: 22, 350: 24, 45: 22, 47: 24}
    ),
    "HumanoidStandup": ObservationLayout(
        _HUMANOID_DOFS, 23, {376: 22, 348: 22, 350: 24, 45: 22, 47: 24}
    ),
    "InvertedDoublePendulum": ObservationLayout((0,), 3, {11: 5, 9: 5}),
    "InvertedPendulum": ObservationLayout((0,), 2, {4: 2}),
    "Pusher": ObservationLayout(tuple(range(7)), 11, {23: 7}),
    "Reacher": ObservationLayout((0, 1), 4, {11: 6, 10: 6}),
    "Swimmer": _legs(2, {8: 3, 10: 5}),
    "Walker2d": _legs(6, {17: 8, 18: 9}),
}
"""By the name of an environment, without its version."""

_GYMNASIUM = re.compile(r"(?P<name>\w+)-v(?P<version>[2-5])")
_D4RL = re.compile(
    r"(?P<name>ant|halfcheetah|hopper|walker2d)_?"
    r"(maze)?[-_](random|simple|medium|expert|full|umaze|u-maze|large|hardest|big)",
    re.IGNORECASE,
)
_D4RL_NAMES = {name.lower(): name for name in LAYOUTS}
_FALLOW = {  # as `dynamics.gym.environment_id` spells them, without Gymnasium
    "fallow/" + "".join(word.capitalize() for word in task.split("-")) + "-v0": task
    for task in TASKS
}


def layout_of(environment: str) -> ObservationLayout | None:
    """The layout of `HalfCheetah-v5`, `fallow/WalkerWalk-v0` or a D4RL file's name."""
    if environment in _FALLOW:
        body = TASKS[_FALLOW[environment]].body
        return ObservationLayout(body.actuator_velocity, 0, {len(body.columns): 0})
    if match := _D4RL.match(environment):
        return LAYOUTS[_D4RL_NAMES[match["name"].lower()]]
    if match := _GYMNASIUM.fullmatch(environment):
        return LAYOUTS.get(match["name"])
    return None
