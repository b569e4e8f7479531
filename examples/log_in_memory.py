"""Diagnose data in memory: a pandas frame works the same way as this dict of arrays.

python examples/log_in_memory.py
"""

import numpy as np

from fallow.diagnosis import decide
from fallow.logs import Columns, from_data

# a recording of two motors without episodes, which lose half their force at row 3000
random = np.random.default_rng(0)
torque = random.uniform(-1, 1, (5000, 2))
gain = np.where(np.arange(5000) < 3000, 1.0, 0.5)[:, None]
acceleration = gain * torque + random.normal(0, 0.1, (5000, 2))
velocity = np.cumsum(np.concatenate([np.zeros((1, 2)), acceleration[:-1]]), axis=0)

columns = Columns(velocity="wheels", action="torque", episode_steps=100)
log = from_data({"wheels": velocity, "torque": torque}, columns, name="my robot")
decision = decide(log)
print(f"{log.source}: {log.n_episodes} episodes, change at {decision.change_points}")
print(f"m_hat {decision.magnitude.value:.2f}: {decision.word} the old data")
