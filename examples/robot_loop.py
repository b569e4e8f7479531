"""A robot-side loop: know the regime after every episode, and save the tracker.

python examples/robot_loop.py
"""

from pathlib import Path

from fallow.diagnosis import Example, example
from fallow.tracking import Tracker, read_tracker, write_tracker

STATE = Path("tracker.safetensors")
# stands in for a robot: three joints lose half their gain, then are repaired
ROBOT = example(Example((1.0, 0.5, 1.0), (20, 35), n_episodes=50))

tracker = read_tracker(STATE) if STATE.exists() else Tracker(3, ROBOT.control_step_s)
for velocities, actions in ROBOT.episodes():  # (T + 1, 3), (T, 3)
    update = tracker.update(velocities, actions)
    if update.state == "changed":
        gain = update.gain.round(2)
        print(f"episode {update.episode}: regime {update.regime}, gain {gain}")
    if update.note.startswith("skipped"):
        print(f"episode {update.episode}: {update.note}")
    write_tracker(STATE, tracker)  # a robot that restarts continues here

keep = (tracker.labels() == tracker.present).nonzero()[0]
print(f"train on {len(keep)} of {tracker.n_episodes} episodes, the last is {keep[-1]}")
