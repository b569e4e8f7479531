"""The planar walker: a torso on two legs of thigh, shin and foot.

Dimensions and constants are those of the DeepMind Control Suite's walker.
"""

import numpy as np

from fallow.dynamics.tasks import rewards
from fallow.dynamics.tasks.body import Body, Task, View, sample_joint_angles

STAND_HEIGHT_M = 1.2
WALK_SPEED_M_S = 1.0
RUN_SPEED_M_S = 8.0

LIMBS = ("torso",) + tuple(
    f"{side}_{limb}" for side in ("right", "left") for limb in ("thigh", "leg", "foot")
)
JOINTS = tuple(
    f"{side}_{joint}"
    for side in ("right", "left")
    for joint in ("hip", "knee", "ankle")
)
GEAR_N_M = (100, 50, 20)  # hip, knee, ankle
N_ORIENTATIONS = 2 * len(LIMBS)
TORSO = 1  # body 0 is the world


def _leg(side: str, y_m: float) -> str:
    return f"""
      <body name="{side}_thigh" pos="0 {y_m} -0.3">
        <joint name="{side}_hip" range="-20 100"/>
        <geom name="{side}_thigh" pos="0 0 -0.225" size="0.05 0.225"/>
        <body name="{side}_leg" pos="0 0 -0.7">
          <joint name="{side}_knee" pos="0 0 0.25" range="-150 0"/>
          <geom name="{side}_leg" size="0.04 0.25"/>
          <body name="{side}_foot" pos="0.06 0 -0.25">
            <joint name="{side}_ankle" pos="-0.06 0 0" range="-45 45"/>
            <geom name="{side}_foot" zaxis="1 0 0" size="0.05 0.1"/>
          </body>
        </body>
      </body>"""


def _motors() -> str:
    return "".join(
        f'<motor name="{joint}" joint="{joint}" gear="{gear}"/>'
        for joint, gear in zip(JOINTS, 2 * GEAR_N_M, strict=True)
    )


MJCF = f"""
<mujoco model="walker">
  <option timestep="0.0025"/>
  <statistic extent="2" center="0 0 1"/>
  <default>
    <joint axis="0 -1 0" damping="0.1" armature="0.01" limited="true"
      solimplimit="0 0.99 0.01"/>
    <geom type="capsule" contype="1" conaffinity="0" friction="0.7 0.1 0.1"
      rgba="0.7 0.5 0.3 1"/>
    <motor ctrlrange="-1 1" ctrllimited="true"/>
    <default class="root">
      <joint limited="false" armature="0" damping="0"/>
    </default>
  </default>
  <worldbody>
    <geom name="floor" type="plane" conaffinity="1" pos="248 0 0" size="250 0.8 0.2"
      rgba="0.2 0.3 0.4 1"/>
    <body name="torso" pos="0 0 1.3">
      <light pos="0 0 2" mode="trackcom"/>
      <camera name="side" pos="0 -3 0.5" euler="80 0 0" mode="trackcom"/>
      <joint name="rootz" class="root" type="slide" axis="0 0 1"/>
      <joint name="rootx" class="root" type="slide" axis="1 0 0"/>
      <joint name="rooty" class="root" type="hinge" axis="0 1 0"/>
      <geom name="torso" size="0.07 0.3"/>{_leg("right", -0.05)}{_leg("left", 0.05)}
    </body>
  </worldbody>
  <sensor><subtreelinvel name="velocity" body="torso"/></sensor>
  <actuator>{_motors()}</actuator>
</mujoco>
"""


def observe(view: View) -> np.ndarray:
    """Limb orientations (14), torso height (1), velocities (9)."""
    out = np.empty((len(view.qvel), N_ORIENTATIONS + 1 + view.qvel.shape[1]))
    out[:, 0:N_ORIENTATIONS:2] = view.xmat[:, 1:, 0]
    out[:, 1:N_ORIENTATIONS:2] = view.xmat[:, 1:, 2]
    out[:, N_ORIENTATIONS] = view.xpos[:, TORSO, 2]
    out[:, N_ORIENTATIONS + 1 :] = view.qvel
    return out


def stand_reward(view: View) -> np.ndarray:
    """Three parts height, one part uprightness."""
    shortfall_m = np.maximum(0.0, STAND_HEIGHT_M - view.xpos[:, TORSO, 2])
    standing = rewards.bell(shortfall_m, margin=STAND_HEIGHT_M / 2)
    upright = (1 + view.xmat[:, TORSO, 8]) / 2
    return (3 * standing + upright) / 4


def _move_reward(view: View, speed_m_s: float) -> np.ndarray:
    moving = rewards.ramp(view.sensordata[:, 0], full=speed_m_s)
    return stand_reward(view) * (5 * moving + 1) / 6


def walk_reward(view: View) -> np.ndarray:
    """Standing, times how near the forward speed is to 1 m/s."""
    return _move_reward(view, WALK_SPEED_M_S)


def run_reward(view: View) -> np.ndarray:
    """Standing, times how near the forward speed is to 8 m/s."""
    return _move_reward(view, RUN_SPEED_M_S)


BODY = Body(
    name="walker",
    mjcf=MJCF,
    n_substeps=10,
    columns=tuple(f"{limb} {axis}" for limb in LIMBS for axis in ("xx", "xz"))
    + ("torso height [m]", "rootz [m/s]", "rootx [m/s]", "rooty [rad/s]")
    + tuple(f"{joint} [rad/s]" for joint in JOINTS),
    actuator_velocity=tuple(range(18, 24)),
    fields=("qvel", "xpos", "xmat", "sensordata"),
    observe=observe,
    sample_start=sample_joint_angles,
)

TASKS = (
    Task("walker-stand", "stand upright", BODY, stand_reward),
    Task("walker-walk", "walk forward at 1 m/s", BODY, walk_reward),
    Task("walker-run", "run forward at 8 m/s", BODY, run_reward),
)
