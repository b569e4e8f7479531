"""Ask a log whether the actuators changed, from Python.

python examples/diagnose_logs.py page.html
"""

import sys
from pathlib import Path

import numpy as np

import fallow
from fallow.diagnosis import Example, example
from fallow.diagnosis.page import render

page = Path(sys.argv[1] if len(sys.argv) > 1 else "page.html")

# a log from anywhere: 60 episodes of a robot arm that weakens at episode 35
log = example(Example(gains=(1.0, 0.5), change_points=(35,), n_episodes=60))
velocity = log.velocity.reshape(60, 101, 3)
np.savez("arm.npz", state=velocity, motors=log.action.reshape(60, 100, 3))

# a file, a DataFrame, a dictionary of arrays or a Log; a notebook shows the result
diagnosis = fallow.diagnose("arm.npz", velocity="state[0:3]", action="motors")
print(diagnosis)

# the paper's selector
decision = diagnosis.decision
print(f"change at {decision.change_points}, m_hat {decision.magnitude.value:.2f}")
print(f"{decision.stale.sum()} of {len(decision.stale)} episodes are stale")

# every actuator, with the 95 % of resamples
for joint in diagnosis.joints:
    low, high = joint.interval
    print(f"{joint.label}: lost {joint.lost:.2f} ({low:.2f} to {high:.2f})")

page.write_text(render([diagnosis]), encoding="utf-8")
print(f"page: {page}")
