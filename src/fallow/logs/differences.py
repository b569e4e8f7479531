"""Velocities of a log that has positions only.

    v[t] = (p[t] - p[t - 1]) / step

Backward, so that velocity t is known before action t is taken, and velocity t + 1 holds
what the action did. With one velocity for each position but an episode's first, the
first action of every episode is left out. The mean velocity of an interval holds about
half of what the action in it brought, and half of the action before, so K is about half
that of measured velocities in every episode; m_hat, a ratio of two K, does not change.
"""

import numpy as np

NOTE = "velocities are differences of positions; this makes K smaller in all episodes"
FULL_TURN = 2 * np.pi


def backward(position: np.ndarray, step: np.ndarray | float) -> np.ndarray:
    """(T, d) velocities of one episode from positions (T + 1, d); `step` in seconds."""
    change = np.diff(_unwrapped(position), axis=0)
    return change / np.reshape(step, (-1, 1))


def _unwrapped(position: np.ndarray) -> np.ndarray:
    """Angles that are kept within one turn, without the jumps from end to start.

    Only where all positions lie in one turn and one jumps by more than half of it.
    """
    lows, highs = position.min(axis=0), position.max(axis=0)
    one_turn = (lows >= -np.pi) & (highs <= np.pi) | (lows >= 0) & (highs <= FULL_TURN)
    jumps = np.abs(np.diff(position, axis=0)).max(axis=0, initial=0) > np.pi
    wraps = one_turn & jumps
    if not wraps.any():
        return position
    unwrapped = np.array(position, np.float64)
    unwrapped[:, wraps] = np.unwrap(unwrapped[:, wraps], axis=0)
    return unwrapped
