"""A task: the pendulum of the suite, rewarded for rest."""

import numpy as np

from fallow.dynamics.tasks import TASKS, Task, View
from fallow.dynamics.tasks.pendulum import BODY


def rest_reward(view: View) -> np.ndarray:
    """(n,) 1 at rest, less the faster the pole turns [rad/s]."""
    return np.exp(-np.abs(view.qvel[:, 0]))


TASKS.add("pendulum-rest", Task("pendulum-rest", "stay at rest", BODY, rest_reward))
