"""What the body model reads of an episode, and the checks that an episode must pass."""

from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from fallow.core import options
from fallow.core.errors import FallowError

LEAK_STEPS = (2.0, 8.0)
"""Time constants of the leaky means of velocity, which stand in for positions."""
N_LAGS = 2
"""Commands of the present and of the previous step act on the body."""
MIN_STEPS = 20
"""Steps of a usable episode."""
MAX_SIZE = 1e12
"""Of a usable velocity or action, in any unit; larger values are damage."""


@dataclass(frozen=True)
class Signals:
    """One episode of T steps and d actuators, in the units of the log."""

    state: np.ndarray  # (T, 4 d) velocity now, one step before, leaky means
    command: np.ndarray  # (T, 2, d) commanded action now and one step before
    change: np.ndarray  # (T, d) v[t + 1] - v[t]
    motion: np.ndarray  # (T, d) root of the leaky mean of squared velocity

    @property
    def n_steps(self) -> int:
        """T."""
        return len(self.change)


def signals_of(velocities: np.ndarray, actions: np.ndarray) -> Signals:
    """Signals of an episode from (T + 1, d) velocities and (T, d) actions."""
    v = velocities[:-1]
    previous = np.vstack([v[:1], v[:-1]])
    leaky = [_leaky_mean(v, k, np.zeros_like(v[:1])) for k in LEAK_STEPS]
    squared = v**2
    before = np.vstack([np.zeros_like(actions[:1]), actions[:-1]])
    return Signals(
        state=np.hstack([v, previous, *leaky]),
        command=np.stack([actions, before], axis=1),
        change=np.diff(velocities, axis=0),
        motion=np.sqrt(_leaky_mean(squared, LEAK_STEPS[-1], squared[:1])),
    )


def _leaky_mean(values: np.ndarray, steps: float, start: np.ndarray) -> np.ndarray:
    """(T, d) means that forget with a time constant, from what was before (1, d)."""
    keep = 1 - 1 / steps
    mean, _ = lfilter([1 / steps], [1, -keep], values, axis=0, zi=keep * start)
    return np.asarray(mean)


def checked(
    velocities: np.ndarray, actions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Both as float64 arrays of fitting shapes.

    Raises:
        FallowError: they are no numbers, or the shapes do not fit each other.
    """
    v, a = _numbers(velocities, "velocities"), _numbers(actions, "actions")
    if a.ndim != 2:
        raise FallowError(
            f"actions have shape {a.shape}; a tracker needs (T, actuators)"
        )
    if v.shape != (len(a) + 1, a.shape[1]):
        raise FallowError(
            f"velocities have shape {v.shape}; {len(a)} actions need "
            f"({len(a) + 1}, {a.shape[1]}), one velocity before and after each action"
        )
    return v, a


def _numbers(values: np.ndarray, name: str) -> np.ndarray:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise FallowError(
            f"{name} are {options.shown(values)}; give an array of numbers"
        ) from None


def defect(velocities: np.ndarray, actions: np.ndarray, n_actuators: int) -> str:
    """Why an episode cannot be used, in one sentence; empty if it can."""
    if actions.shape[1] != n_actuators:
        return f"skipped: {actions.shape[1]} actuators where there were {n_actuators}"
    if len(actions) < MIN_STEPS:
        return f"skipped: {len(actions)} steps, fewer than {MIN_STEPS}"
    for name, values in (("velocities", velocities), ("actions", actions)):
        bad = int((~(np.abs(values) <= MAX_SIZE)).sum())
        if bad:
            where = f"{bad:,} of {values.size:,} {name}"
            return f"skipped: NaN, infinite or above {MAX_SIZE:g} in {where}"
    if not np.ptp(actions, axis=0).any():
        return "skipped: the actions are constant"
    if not np.ptp(velocities, axis=0).any():
        return "skipped: the velocities are constant"
    return ""
