"""The planar hopper: torso, pelvis and one leg.

Dimensions and constants are those of the DeepMind Control Suite's hopper.
"""

import numpy as np

from fallow.dynamics.tasks import rewards
from fallow.dynamics.tasks.body import Body, Task, View, sample_joint_angles

STAND_HEIGHT_M = 0.6  # of the torso's centre above the foot's
MAX_HEIGHT_M = 2.0
HOP_SPEED_M_S = 2.0
JOINTS = ("waist", "hip", "knee", "ankle")
GEAR_N_M = (30, 40, 30, 10)
TORSO, FOOT = 1, 5  # body 0 is the world
TOUCH = slice(3, 5)  # sensors: velocity (3), toe (1), heel (1)


def _motors() -> str:
    return "".join(
        f'<motor name="{joint}" joint="{joint}" gear="{gear}"/>'
        for joint, gear in zip(JOINTS, GEAR_N_M, strict=True)
    )


MJCF = f"""
<mujoco model="hopper">
  <option timestep="0.005"/>
  <statistic extent="2" center="0 0 0.5"/>
  <default>
    <motor ctrlrange="-1 1" ctrllimited="true"/>
    <default class="limb">
      <joint type="hinge" axis="0 1 0" limited="true" damping="0.05" armature="0.2"/>
      <geom type="capsule" rgba="0.7 0.5 0.3 1"/>
      <site type="sphere" size="0.05" group="3"/>
    </default>
    <default class="root">
      <joint limited="false" damping="0" armature="0"/>
    </default>
  </default>
  <worldbody>
    <geom name="floor" type="plane" pos="48 0 0" size="50 1 0.2" rgba="0.2 0.3 0.4 1"/>
    <body name="torso" pos="0 0 1" childclass="limb">
      <light pos="0 0 2" mode="trackcom"/>
      <camera name="side" pos="0 -2.8 0.8" euler="90 0 0" mode="trackcom"/>
      <joint name="rootx" class="root" type="slide" axis="1 0 0"/>
      <joint name="rootz" class="root" type="slide" axis="0 0 1"/>
      <joint name="rooty" class="root" type="hinge" axis="0 1 0"/>
      <geom name="torso" fromto="0 0 -0.05 0 0 0.2" size="0.0653"/>
      <geom name="nose" fromto="0.08 0 0.13 0.15 0 0.14" size="0.03"/>
      <body name="pelvis" pos="0 0 -0.05">
        <joint name="waist" range="-30 30"/>
        <geom name="pelvis" fromto="0 0 0 0 0 -0.15" size="0.065"/>
        <body name="thigh" pos="0 0 -0.2">
          <joint name="hip" range="-170 10"/>
          <geom name="thigh" fromto="0 0 0 0 0 -0.33" size="0.04"/>
          <body name="calf" pos="0 0 -0.33">
            <joint name="knee" range="5 150"/>
            <geom name="calf" fromto="0 0 0 0 0 -0.32" size="0.03"/>
            <body name="foot" pos="0 0 -0.32">
              <joint name="ankle" range="-45 45"/>
              <geom name="foot" fromto="-0.08 0 0 0.17 0 0" size="0.04"/>
              <site name="toe" pos="0.17 0 0"/>
              <site name="heel" pos="-0.08 0 0"/>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <sensor>
    <subtreelinvel name="velocity" body="torso"/>
    <touch name="toe" site="toe"/>
    <touch name="heel" site="heel"/>
  </sensor>
  <actuator>{_motors()}</actuator>
</mujoco>
"""


def observe(view: View) -> np.ndarray:
    """Positions without the distance hopped (6), velocities (7), touch (2)."""
    touch = np.log1p(view.sensordata[:, TOUCH])
    return np.concatenate([view.qpos[:, 1:], view.qvel, touch], axis=1)


def hop_reward(view: View) -> np.ndarray:
    """1 at 2 m/s or more while the torso is above the foot, less when slower."""
    height_m = view.xipos[:, TORSO, 2] - view.xipos[:, FOOT, 2]
    standing = rewards.within(height_m, STAND_HEIGHT_M, MAX_HEIGHT_M)
    return standing * rewards.ramp(view.sensordata[:, 0], full=HOP_SPEED_M_S)


BODY = Body(
    name="hopper",
    mjcf=MJCF,
    n_substeps=4,
    columns=("rootz [m]", "rooty [rad]")
    + tuple(f"{joint} [rad]" for joint in JOINTS)
    + ("rootx [m/s]", "rootz [m/s]", "rooty [rad/s]")
    + tuple(f"{joint} [rad/s]" for joint in JOINTS)
    + ("toe [log N]", "heel [log N]"),
    actuator_velocity=tuple(range(9, 13)),
    fields=("qpos", "qvel", "xipos", "sensordata"),
    observe=observe,
    sample_start=sample_joint_angles,
)

TASKS = (Task("hopper-hop", "hop forward at 2 m/s", BODY, hop_reward),)
