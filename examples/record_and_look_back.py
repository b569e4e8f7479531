"""Record a weakening walker, then read the log and simulate one episode again.

python examples/record_and_look_back.py looked.fallow
"""

import sys

import numpy as np

from fallow.dynamics import Worlds
from fallow.logs import Recorder, read_history, resimulate

path = sys.argv[1] if len(sys.argv) > 1 else "looked.fallow"
worlds = Worlds("walker-walk", "gain:shift_frame=2000", seeds=[[0, 1]])
random = np.random.default_rng(0)

with Recorder(worlds, path) as recorder:
    for _ in range(1000):  # two episodes in each of two worlds
        actions = random.uniform(-1, 1, (1, 2, 6)).astype(np.float32)
        recorder.add(actions, worlds.step(actions))

history = read_history(path)
rows = history.rows()
print(f"{len(history.episodes)} episodes, {history.n_transitions} transitions")
print(f"reduced gain in {rows['regime'].mean():.0%} of them")

velocity = list(history.header.actuator_velocity)
change = (rows["next_observation"] - rows["observation"])[:, velocity]
for regime in (0, 1):
    chosen = rows["regime"] == regime
    action = rows["action"][chosen]
    response = (change[chosen] * action).sum(axis=0) / (action**2).sum(axis=0)
    print(f"actuator response in regime {regime}: {response.round(1)}")

seen = [world.observation[0, 0] for world in resimulate(history, 3)]
print(f"episode 3 simulated again: {len(seen) - 1} transitions")
