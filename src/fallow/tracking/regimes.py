"""The library of regimes: gains, bodies, and the mismatch of two regimes."""

from dataclasses import dataclass

import numpy as np

from fallow.tracking.evidence import Spread, units


@dataclass
class KnownRegime:
    """A regime that the tracker has seen; d actuators."""

    id: int
    gain: np.ndarray  # (d,) relative to regime 0
    base: np.ndarray  # (d,) of the regime that it was compared with
    body: int = 0
    """Index of its body model; regimes that differ by gains share one."""
    n_episodes: int = 0
    """Episodes of it that were learned from."""

    @property
    def is_gain(self) -> bool:
        """Whether gains explain it; False: `unexplained`."""
        return self.body == 0

    def interval(self, spread: Spread) -> tuple[np.ndarray, np.ndarray]:
        """(d,) low and high of the gain, 95 % by the spread between episodes.

        The few episodes that set the gain share their errors, so those do not average
        out, and they are relative to the gains that were compared with.
        """
        if self.id == 0:
            return self.gain.copy(), self.gain.copy()
        unit = np.maximum(units(self.base), units(self.gain))
        width = 1.96 * unit * np.sqrt(np.diag(spread.covariance))
        low, high = self.gain - width, self.gain + width
        return np.where(self.gain < 0, low, np.maximum(low, 0.0)), high


def mismatch(a: KnownRegime, b: KnownRegime) -> float:
    """The mismatch of the gains of two regimes."""
    return gain_mismatch(a.gain, b.gain)


def gain_mismatch(a: np.ndarray, b: np.ndarray) -> float:
    """Root mean square over actuators of |g_a - g_b| / max(g_a, g_b), from 0 to 1.

    An actuator that was reversed has a gain below 0 and counts as 1, like a dead one.
    """
    larger = np.maximum(np.maximum(a, b), 1e-9)
    return float(np.sqrt((np.minimum(1, abs(a - b) / larger) ** 2).mean()))
