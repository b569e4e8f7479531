"""A cart on a rail with a pole hanging from it.

Dimensions and constants are those of the DeepMind Control Suite's cart-pole.
"""

from typing import Any

import numpy as np

from fallow.dynamics.tasks import rewards
from fallow.dynamics.tasks.body import Body, Start, Task, View

START_NOISE = 0.01  # metres, radians and their rates
POLE = 2  # body 0 is the world, body 1 the cart

MJCF = """
<mujoco model="cartpole">
  <option timestep="0.01" integrator="RK4"><flag contact="disable"/></option>
  <worldbody>
    <light pos="0 0 6"/>
    <camera name="side" pos="0 -4 1" euler="90 0 0"/>
    <geom name="floor" type="plane" pos="0 0 -0.05" size="4 4 0.2"
      rgba="0.2 0.3 0.4 1"/>
    <geom name="rail" type="capsule" pos="0 0.07 1" zaxis="1 0 0" size="0.02 2"
      rgba="0.3 0.5 0.7 1"/>
    <body name="cart" pos="0 0 1">
      <joint name="slider" type="slide" axis="1 0 0" limited="true" range="-1.8 1.8"
        solreflimit="0.08 1" damping="5e-4"/>
      <geom name="cart" type="box" size="0.2 0.15 0.1" mass="1"/>
      <body name="pole">
        <joint name="hinge" type="hinge" axis="0 1 0" damping="2e-6"/>
        <geom name="pole" type="capsule" fromto="0 0 0 0 0 1" size="0.045" mass="0.1"
          rgba="0.7 0.5 0.3 1"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="slide" joint="slider" gear="10" ctrllimited="true" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"""


def sample_start(model: Any, random: np.random.RandomState) -> Start:
    """The pole hangs down; cart, pole and both rates nearly at rest."""
    cart_m = START_NOISE * random.randn()
    pole_rad = np.pi + START_NOISE * random.randn()
    return np.array([cart_m, pole_rad]), START_NOISE * random.randn(model.nv)


def observe(view: View) -> np.ndarray:
    """Cart position, cosine and sine of the pole (3), velocities (2)."""
    pole = view.xmat[:, POLE][:, [8, 2]]
    return np.concatenate([view.qpos[:, :1], pole, view.qvel], axis=1)


def swingup_reward(view: View) -> np.ndarray:
    """Pole up, times three factors for a centred cart, a calm pole, a small force."""
    upright = (1 + view.xmat[:, POLE, 8]) / 2
    centred = (1 + rewards.bell(view.qpos[:, 0], margin=2)) / 2
    gentle = (4 + rewards.parabola(view.ctrl[:, 0], margin=1)) / 5
    calm = (1 + rewards.bell(view.qvel[:, 1], margin=5)) / 2
    return upright * gentle * calm * centred


BODY = Body(
    name="cartpole",
    mjcf=MJCF,
    n_substeps=1,
    columns=("cart [m]", "pole cos", "pole sin", "cart [m/s]", "pole [rad/s]"),
    actuator_velocity=(3,),
    fields=("qpos", "qvel", "ctrl", "xmat"),
    observe=observe,
    sample_start=sample_start,
)

TASKS = (Task("cartpole-swingup", "swing the pole up", BODY, swingup_reward),)
