"""The library of regimes: gains, drags, and how far two of them lie apart."""

from dataclasses import dataclass

import numpy as np

from fallow.tracking.evidence import Spread, units
from fallow.tracking.hypotheses import Explanation


@dataclass
class KnownRegime:
    """A regime that the tracker has seen; d actuators."""

    id: int
    theta: np.ndarray  # (2 d,) gains relative to regime 0, then drags
    base: np.ndarray  # (2 d,) of the regime that it was compared with
    is_gain: bool = True
    """Whether gains explain it; False: `unexplained`."""
    score: float = 0.0
    """Nats by which it explained the episodes that made it known."""
    n_episodes: int = 0
    """Episodes of it that were learned from."""

    @property
    def gain(self) -> np.ndarray:
        """(d,) relative to regime 0."""
        return self.theta[: len(self.theta) // 2]

    def revise(self, found: Explanation) -> None:
        """Replace the explanation by one that starts from it."""
        self.base, self.theta, self.is_gain = self.theta, found.theta, found.is_gain

    def interval(self, spread: Spread) -> tuple[np.ndarray, np.ndarray]:
        """(d,) low and high of the gain, 95 % by the spread between episodes.

        The few episodes that set the gain share their errors, so those do not average
        out, and they are relative to the gains that were compared with.
        """
        if self.id == 0:
            return self.gain.copy(), self.gain.copy()
        d = len(self.gain)
        unit = np.maximum(units(self.base), units(self.theta))[:d]
        width = 1.96 * unit * np.sqrt(np.diag(spread.covariance)[:d])
        return np.maximum(self.gain - width, 0.0), self.gain + width


def mismatch(a: KnownRegime, b: KnownRegime) -> float:
    """How far the gains of two regimes lie apart."""
    return gain_mismatch(a.gain, b.gain)


def gain_mismatch(a: np.ndarray, b: np.ndarray) -> float:
    """Root mean square over actuators of |g_a - g_b| / max(g_a, g_b), from 0 to 1."""
    larger = np.maximum(np.maximum(a, b), 1e-9)
    return float(np.sqrt((((a - b) / larger) ** 2).mean()))
