"""Learn an actuator's response online while the actuator weakens, unannounced.

python examples/replay_numpy.py

All of the history answers for the old body, the newest part of it for the present one.
`adaptive` finds the change by itself and turns to the data of the present body.
"""

import numpy as np

from fallow.replay import Buffer, Field
from fallow.replay.labeler import Tracked

N_EPISODES, CHANGE_EPISODE, N_STEPS = 60, 40, 50
GAIN = (1.0, 0.5)  # before and after
DRAG, NOISE = 0.1, 0.1
FIELDS = {name: Field((3,)) for name in ("velocity", "action", "change")}
TRACKED = Tracked("velocity", "action")
# one number a joint needs few transitions, and old ones are worth as few
RULES = (
    "passive",
    "recency:window_transitions=500",
    "adaptive:kappa_transitions=20",
)

for rule in RULES:
    random = np.random.default_rng(0)
    buffer = Buffer(FIELDS, rule=rule, tracked=TRACKED)
    response = np.zeros(3)
    for episode in range(N_EPISODES):
        gain = GAIN[episode >= CHANGE_EPISODE]
        velocity = action = change = np.zeros((1, 3), np.float32)
        for step in range(N_STEPS):
            if step:
                action = random.uniform(-1, 1, (1, 3)).astype(np.float32)
                noise = random.normal(0, NOISE, (1, 3))
                change = (gain * action - DRAG * velocity + noise).astype(np.float32)
                velocity = velocity + change
            row = {"velocity": velocity, "action": action, "change": change}
            buffer.add(is_first=np.array([step == 0]), **row)
            batch = buffer.sample(16, 1)  # (16, 1, 3)
            error = batch["change"] - response * batch["action"]
            response += 0.1 * (error * batch["action"]).mean(axis=(0, 1))
    print(f"{rule}: response {response.mean():.2f}, truth {GAIN[1]:.2f}")
tracker = buffer.tracker
first = int(np.argmax(tracker.labels() == 1))
gain = tracker.regime.gain.mean()
print(f"regime {tracker.present} since episode {first}, gain {gain:.2f}")
