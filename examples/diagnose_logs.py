"""Ask a log whether the actuators changed: from the command line's parts, in Python.

python examples/diagnose_logs.py page.html
"""

import sys
from pathlib import Path

import numpy as np

from fallow.diagnosis import Example, example
from fallow.diagnosis.page import render
from fallow.diagnosis.phrases import advice
from fallow.diagnosis.pipeline import diagnose
from fallow.logs.readers import Columns

page = Path(sys.argv[1] if len(sys.argv) > 1 else "page.html")

# a log from anywhere: 60 episodes of a robot arm that weakens at episode 35
log = example(Example(gains=(1.0, 0.5), change_points=(35,), n_episodes=60))
velocity = log.velocity.reshape(60, 101, 3)
np.savez("arm.npz", state=velocity, motors=log.action.reshape(60, 100, 3))

diagnosis = diagnose("arm.npz", Columns(velocity="state[0:3]", action="motors"))
decision = diagnosis.decision
print(advice(diagnosis))
print(f"change at {decision.change_points}, m_hat {decision.magnitude.value:.2f}")
print(f"{decision.stale.sum()} of {len(decision.stale)} episodes are stale")

page.write_text(render([diagnosis]), encoding="utf-8")
print(f"page: {page}")
