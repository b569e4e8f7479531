"""The planar cheetah: a spine with a hind and a front leg on springs.

Dimensions and constants are those of the DeepMind Control Suite's cheetah.
"""

from typing import Any, NamedTuple

import numpy as np

from fallow.dynamics.tasks import rewards
from fallow.dynamics.tasks.body import Body, Start, Task, View

RUN_SPEED_M_S = 10.0
RADIUS_M = 0.046
SETTLE_SUBSTEPS = 200


class Limb(NamedTuple):
    """One segment of a leg, hinged to the one above it."""

    name: str
    position_m: str  # of its joint in the parent's frame
    centre_m: str  # of its capsule
    tilt_deg: float
    half_length_m: float
    range_deg: str
    stiffness_n_m: float
    damping: float
    gear_n_m: float


HIND = (
    Limb("bthigh", "-.5 0 0", ".1 0 -.13", -218, 0.145, "-30 60", 240, 6, 120),
    Limb("bshin", ".16 0 -.25", "-.14 0 -.07", -116, 0.15, "-50 50", 180, 4.5, 90),
    Limb("bfoot", "-.28 0 -.14", ".03 0 -.097", -15, 0.094, "-230 50", 120, 3, 60),
)
FRONT = (
    Limb("fthigh", ".5 0 0", "-.07 0 -.12", 30, 0.133, "-57 .40", 180, 4.5, 90),
    Limb("fshin", "-.14 0 -.24", ".065 0 -.09", -34, 0.106, "-70 50", 120, 3, 60),
    Limb("ffoot", ".13 0 -.18", ".045 0 -.07", -34, 0.07, "-28 28", 60, 1.5, 30),
)
JOINTS = tuple(limb.name for limb in HIND + FRONT)
TORSO_HALF_LENGTH_M = 0.5
HEAD_HALF_LENGTH_M = 0.15
HEAD_M = ".6 0 .1"  # centre of its capsule
SEGMENTS = ((2,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 6), (2, 6, 7), (2, 6, 7, 8))
"""The torso, then each limb: the hinges, by index, whose angles add up to its own."""


def _leg(limbs: tuple[Limb, ...]) -> str:
    if not limbs:
        return ""
    limb = limbs[0]
    return f"""
      <body name="{limb.name}" pos="{limb.position_m}">
        <joint name="{limb.name}" range="{limb.range_deg}" damping="{limb.damping}"
          stiffness="{limb.stiffness_n_m}"/>
        <geom name="{limb.name}" pos="{limb.centre_m}" euler="0 {limb.tilt_deg} 0"
          size="{RADIUS_M} {limb.half_length_m}"/>{_leg(limbs[1:])}
      </body>"""


def _motors() -> str:
    return "".join(
        f'<motor name="{limb.name}" joint="{limb.name}" gear="{limb.gear_n_m}"/>'
        for limb in HIND + FRONT
    )


MJCF = f"""
<mujoco model="cheetah">
  <option timestep="0.01"/>
  <statistic extent="2" center="0 0 0.7"/>
  <default>
    <motor ctrlrange="-1 1" ctrllimited="true"/>
    <default class="limb">
      <joint type="hinge" axis="0 1 0" limited="true" armature="0.1"/>
      <geom type="capsule" condim="3" friction="0.4 0.1 0.1" rgba="0.7 0.5 0.3 1"/>
    </default>
  </default>
  <worldbody>
    <geom name="ground" type="plane" pos="98 0 0" size="100 0.8 0.5"
      rgba="0.2 0.3 0.4 1"/>
    <body name="torso" pos="0 0 0.7" childclass="limb">
      <light pos="0 0 2" mode="trackcom"/>
      <camera name="side" pos="0 -3 0" euler="90 0 0" mode="trackcom"/>
      <joint name="rootx" type="slide" axis="1 0 0" limited="false" armature="0"/>
      <joint name="rootz" type="slide" axis="0 0 1" limited="false" armature="0"/>
      <joint name="rooty" axis="0 1 0" limited="false" armature="0"/>
      <geom name="torso" fromto="-{TORSO_HALF_LENGTH_M} 0 0 {TORSO_HALF_LENGTH_M} 0 0"
        size="{RADIUS_M}"/>
      <geom name="head" pos="{HEAD_M}" euler="0 50 0"
        size="{RADIUS_M} {HEAD_HALF_LENGTH_M}"/>
      {_leg(HIND)}{_leg(FRONT)}
    </body>
  </worldbody>
  <actuator>{_motors()}</actuator>
</mujoco>
"""


def sample_start(model: Any, random: np.random.RandomState) -> Start:
    """Leg joints uniform in their range, in one call; the rest at zero."""
    qpos = model.qpos0.copy()
    limited = model.jnt_limited.astype(bool)
    low, high = model.jnt_range[limited].T
    qpos[limited] = random.uniform(low, high)
    return qpos, np.zeros(model.nv)


def observe(view: View) -> np.ndarray:
    """Positions without the distance run (8), velocities (9)."""
    return np.concatenate([view.qpos[:, 1:], view.qvel], axis=1)


def _mass(half_length_m: float) -> float:
    """Of a capsule, up to a factor that all of them share."""
    return 2 * half_length_m + 4 / 3 * RADIUS_M


def _in_plane(position_m: str) -> np.ndarray:
    x, _, z = position_m.split()
    return np.array([float(x), float(z)])


def _moments() -> np.ndarray:
    """(7, 2) first moment (x, z) of what each segment carries, over the body's mass.

    A segment carries its own capsules where they are and all below it at its joint.
    """
    moments = np.zeros((7, 2))
    total = _mass(TORSO_HALF_LENGTH_M) + _mass(HEAD_HALF_LENGTH_M)
    moments[0] = _mass(HEAD_HALF_LENGTH_M) * _in_plane(HEAD_M)
    for first, limbs in ((1, HIND), (4, FRONT)):
        below = 0.0
        for place, limb in reversed(list(enumerate(limbs, start=first))):
            moments[place] += _mass(limb.half_length_m) * _in_plane(limb.centre_m)
            below += _mass(limb.half_length_m)
            carrier = 0 if place == first else place - 1
            moments[carrier] += below * _in_plane(limb.position_m)
        total += below
    return moments / total


_TURNS = (
    np.array([[joint in hinges for joint in range(9)] for hinges in SEGMENTS]) * 1.0
)
_X, _Z = _moments().T
_ARM_M, _PHASE_RAD = np.hypot(_X, _Z)[:, None], np.arctan2(_X, _Z)[:, None]


def forward_speed(view: View) -> np.ndarray:
    """(n,) speed of the centre of mass in m/s, MuJoCo's `subtreelinvel` of the torso.

    A segment at angle a that turns at w moves its moment (x, z) forwards by
    w (z cos a - x sin a) = w r cos(a + phase). From positions and velocities alone it
    is known after every frame, without a look at the simulator.
    """
    swing = np.cos(_TURNS @ view.qpos.T + _PHASE_RAD)  # (7, n)
    swing *= _ARM_M
    swing *= _TURNS @ view.qvel.T
    return view.qvel[:, 0] + swing.sum(axis=0)


def run_reward(view: View) -> np.ndarray:
    """How near the forward speed is to 10 m/s."""
    return rewards.ramp(forward_speed(view), full=RUN_SPEED_M_S)


BODY = Body(
    name="cheetah",
    mjcf=MJCF,
    n_substeps=1,
    columns=("rootz [m]", "rooty [rad]")
    + tuple(f"{joint} [rad]" for joint in JOINTS)
    + ("rootx [m/s]", "rootz [m/s]", "rooty [rad/s]")
    + tuple(f"{joint} [rad/s]" for joint in JOINTS),
    actuator_velocity=tuple(range(11, 17)),
    fields=("qpos", "qvel"),
    observe=observe,
    sample_start=sample_start,
    settle_substeps=SETTLE_SUBSTEPS,
    total_mass_kg=14.0,
)

TASKS = (Task("cheetah-run", "run forward at 10 m/s", BODY, run_reward),)
