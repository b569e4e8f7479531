"""Estimate an actuator's response online while the actuator weakens.

python examples/replay_numpy.py

All of the history answers for the old body; the newest part of it for the present one.
"""

import numpy as np

from fallow.replay import Buffer, Field

N_STEPS, CHANGE_STEP, EPISODE = 4000, 3000, 100
GAIN = (1.0, 0.5)  # before and after
NOISE = 0.1

for rule in ("passive", "recency:window_transitions=500"):
    random = np.random.default_rng(0)
    buffer = Buffer({"action": Field((3,)), "change": Field((3,))}, rule=rule)
    response = np.zeros(3)
    for step in range(N_STEPS):
        regime = int(step >= CHANGE_STEP)
        action = random.uniform(-1, 1, (1, 3)).astype(np.float32)
        noise = random.normal(0, NOISE, (1, 3)).astype(np.float32)
        change = np.float32(GAIN[regime]) * action + noise
        is_first = np.array([step % EPISODE == 0])
        buffer.add(is_first=is_first, regime=regime, action=action, change=change)
        if step == CHANGE_STEP:
            buffer.sampler.record.clear()  # count samples from here on
        batch = buffer.sample(16, 1)  # (16, 1, 3)
        error = batch["change"] - response * batch["action"]
        response += 0.1 * (error * batch["action"]).mean(axis=(0, 1))
    print(
        f"{rule}: response {response.mean():.2f}, truth {GAIN[1]:.2f}; "
        f"{buffer.sampled().stale_share:.0%} of samples after the change were stale"
    )
