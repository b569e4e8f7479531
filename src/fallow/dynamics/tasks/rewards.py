"""Shapes that rewards are made of, over n worlds at once."""

import numpy as np

VALUE_AT_MARGIN = 0.1
"""Value of a bell one margin away from its centre."""

_BELL_SCALE = np.sqrt(-2 * np.log(VALUE_AT_MARGIN))


def ramp(value: np.ndarray, full: float) -> np.ndarray:
    """0 at zero or below, 1 at `full` or above, a straight line between."""
    return np.minimum(np.maximum(value / full, 0.0), 1.0)


def bell(distance: np.ndarray, margin: float) -> np.ndarray:
    """1 at distance zero, a Gaussian that falls to 0.1 at `margin`."""
    return np.exp(-0.5 * np.square(distance / margin * _BELL_SCALE))


def parabola(distance: np.ndarray, margin: float) -> np.ndarray:
    """1 at distance zero, 0 at `margin` and beyond, a parabola between."""
    return np.maximum(0.0, 1 - np.square(distance / margin))


def within(value: np.ndarray, low: float, high: float) -> np.ndarray:
    """1 inside [low, high], else 0."""
    return ((value >= low) & (value <= high)).astype(np.float64)
