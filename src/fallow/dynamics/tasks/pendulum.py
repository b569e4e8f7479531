"""A pendulum whose motor is too weak to lift it at once.

Dimensions and constants are those of the DeepMind Control Suite's pendulum.
"""

from typing import Any

import numpy as np

from fallow.dynamics.tasks import rewards
from fallow.dynamics.tasks.body import Body, Start, Task, View

UPRIGHT_COSINE = float(np.cos(np.deg2rad(8)))
POLE = 1  # body 0 is the world

MJCF = """
<mujoco model="pendulum">
  <option timestep="0.02"><flag contact="disable"/></option>
  <worldbody>
    <light pos="0 0 2"/>
    <camera name="side" pos="0 -2 0.6" euler="90 0 0"/>
    <geom name="floor" type="plane" size="2 2 0.2" rgba="0.2 0.3 0.4 1"/>
    <body name="pole" pos="0 0 0.6">
      <joint name="hinge" type="hinge" axis="0 1 0" damping="0.1"/>
      <geom name="pole" type="capsule" fromto="0 0 0 0 0 0.5" size="0.02" mass="0"
        rgba="0.7 0.5 0.3 1"/>
      <geom name="mass" type="sphere" pos="0 0 0.5" size="0.05" mass="1"
        rgba="0.7 0.3 0.2 1"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="torque" joint="hinge" gear="1" ctrllimited="true" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"""


def sample_start(model: Any, random: np.random.RandomState) -> Start:
    """Any angle, at rest."""
    return np.array([random.uniform(-np.pi, np.pi)]), np.zeros(model.nv)


def observe(view: View) -> np.ndarray:
    """Cosine and sine of the pole (2), its velocity (1)."""
    return np.concatenate([view.xmat[:, POLE][:, [8, 2]], view.qvel], axis=1)


def swingup_reward(view: View) -> np.ndarray:
    """1 within 8 degrees of upright, else 0."""
    return rewards.within(view.xmat[:, POLE, 8], UPRIGHT_COSINE, 1.0)


BODY = Body(
    name="pendulum",
    mjcf=MJCF,
    n_substeps=1,
    columns=("pole cos", "pole sin", "pole [rad/s]"),
    actuator_velocity=(2,),
    fields=("qvel", "xmat"),
    observe=observe,
    sample_start=sample_start,
)

TASKS = (Task("pendulum-swingup", "swing up and stay", BODY, swingup_reward),)
