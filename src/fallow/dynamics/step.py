"""What a step of all worlds returns, and the error that it can raise."""

from typing import NamedTuple

import numpy as np

from fallow.core.errors import RunError


class PhysicsError(RunError):
    """The simulation of a world diverged; all worlds are as they were before."""


class Step(NamedTuple):
    """Results of one transition, for A agents of W worlds each."""

    observation: np.ndarray
    """(A, W, n_columns) where the action led, also at the end of an episode."""
    reward: np.ndarray
    """(A, W) summed over the repeated frames."""
    truncated: np.ndarray
    """(A, W) whether the episode ended here, by the time limit."""
    frame: np.ndarray
    """(A,) the agent's clock when the transition began."""
    regime: np.ndarray
    """(A,) the regime in force; `NO_REGIME` where the condition has none."""
