"""A task: a body, and the reward for moving it.

A body is written for many worlds at once: every array of a `View` has a leading
axis of worlds. `observe` and a reward read it and return one row for each world.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

EPISODE_FRAMES = 1000
"""Control steps in an episode; it ends by the time limit, never by termination."""
ACTION_REPEAT = 2
"""Frames for which agents hold an action; one transition."""


class View(Protocol):
    """The simulator's arrays over n worlds; a body names those it reads."""

    qpos: np.ndarray  # (n, nq)
    qvel: np.ndarray  # (n, nv)
    ctrl: np.ndarray  # (n, nu), as commanded
    xpos: np.ndarray  # (n, nbody, 3), body frames in the world
    xipos: np.ndarray  # (n, nbody, 3), centres of mass in the world
    xmat: np.ndarray  # (n, nbody, 9), rotation matrices row by row
    sensordata: np.ndarray  # (n, nsensordata)


Reward = Callable[[View], np.ndarray]
Start = tuple[np.ndarray, np.ndarray]
"""Positions (nq,) and velocities (nv,) at the start of an episode."""


@dataclass(frozen=True)
class Body:
    """One simulated machine."""

    name: str
    mjcf: str
    """Its MuJoCo model."""
    n_substeps: int
    """Physics steps in one frame."""
    columns: tuple[str, ...]
    """Name of every observation column, units in brackets."""
    actuator_velocity: tuple[int, ...]
    """For each actuator, the observation column of the velocity it drives."""
    fields: tuple[str, ...]
    """The simulator arrays that `observe` and the rewards read; positions and
    velocities alone are the cheapest."""
    observe: Callable[[View], np.ndarray]
    """(n, n_columns) observations."""
    sample_start: Callable[[Any, np.random.RandomState], Start]
    """The start of an episode, from the compiled model and a world's randomness."""
    settle_substeps: int = 0
    """Physics steps without action before an episode begins."""
    total_mass_kg: float | None = None
    """Scale all masses to this sum; None keeps those of the model."""


@dataclass(frozen=True)
class Task:
    """A body and what it is rewarded for, in [0, 1] a frame."""

    name: str
    summary: str
    body: Body
    reward: Reward


def sample_joint_angles(model: Any, random: np.random.RandomState) -> Start:
    """Limited joints uniform in their range, free hinges uniform in (-pi, pi).

    One number for each joint, in the model's joint order.
    """
    qpos = model.qpos0.copy()
    is_hinge = model.jnt_type == 3  # mjJNT_HINGE
    for joint in np.flatnonzero(model.jnt_limited.astype(bool) | is_hinge):
        low, high = model.jnt_range[joint]
        if not model.jnt_limited[joint]:
            low, high = -np.pi, np.pi
        qpos[model.jnt_qposadr[joint]] = random.uniform(low, high)
    return qpos, np.zeros(model.nv)
