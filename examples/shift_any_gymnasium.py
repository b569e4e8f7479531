"""Shift the dynamics of a Gymnasium environment that is not ours.

python examples/shift_any_gymnasium.py
"""

import gymnasium

from fallow.dynamics.gym import ShiftDynamics

env = ShiftDynamics(
    gymnasium.make("HalfCheetah-v5"), "recurring:shift_frame=300,period_frames=200"
)
observation, info = env.reset(seed=0)
env.action_space.seed(0)
regimes = []
for _ in range(1000):
    observation, reward, terminated, truncated, info = env.step(
        env.action_space.sample()
    )
    regimes.append(info["regime"])
changes = [t for t in range(1, 1000) if regimes[t] != regimes[t - 1]]
print(f"the body changed at frames {changes}")
