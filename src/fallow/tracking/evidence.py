"""Evidence about gains, with the spread between episodes taken into account.

One episode says N(score, information) about gains as if the body model were exact. It
is not: estimates from episodes of an unchanged body scatter by more. `Spread` learns
the covariance of that scatter from settled episodes, and every episode's evidence is
weakened by it, so that thresholds in nats keep their meaning.
"""

from dataclasses import dataclass

import numpy as np

from fallow.tracking.body import Fit

START_SPREAD = 0.1
"""Relative standard deviation of an episode's gain estimate before any is known."""
MIN_SPREAD = 0.03
"""Smallest one that is believed."""
SPREAD_SHARE = 0.05
"""Least weight of one episode in the running covariance."""
START_EPISODES = 2.0
"""Episodes that the start spread counts for."""
MAX_DISTANCE = 16.0
"""Squared standard deviations at which an episode's deviation is clipped."""
MIN_UNIT = 0.2
"""Gains are compared relative to themselves, but not to less than this."""


@dataclass(frozen=True)
class Evidence:
    """Log likelihood of gains (d,): vector @ gain - gain @ precision @ gain / 2."""

    vector: np.ndarray  # (d,)
    precision: np.ndarray  # (d, d)

    def __add__(self, other: "Evidence") -> "Evidence":
        return Evidence(self.vector + other.vector, self.precision + other.precision)

    def log_likelihood(self, gain: np.ndarray) -> np.ndarray:
        """Of every row of gains (..., d), up to a constant."""
        square = ((gain @ self.precision) * gain).sum(axis=-1)
        return np.asarray(gain @ self.vector - square / 2)

    def best_along(self, base: np.ndarray, direction: np.ndarray) -> float:
        """The step along a direction (d,) from a base (d,) that is most likely."""
        slope = direction @ (self.vector - self.precision @ base)
        return float(slope / max(direction @ self.precision @ direction, 1e-12))


class Spread:
    """Covariance (d, d) of estimates from episodes of one regime, in relative units."""

    def __init__(self, d: int) -> None:
        self.covariance = START_SPREAD**2 * (np.eye(d) + np.ones((d, d)))
        self.n_episodes = 0

    def weaken(self, fit: Fit, gain: np.ndarray) -> Evidence:
        """The evidence of an episode that was linearised at gains (d,)."""
        score, information = self._weakened(fit, gain)
        return Evidence(score + information @ gain, information)

    def learn(self, fit: Fit, gain: np.ndarray) -> None:
        """Update the covariance by one settled episode (one step of EM)."""
        unit = units(gain)
        score, information = self._weakened(fit, gain)
        score, information = score * unit, information * np.outer(unit, unit)
        mean = self.covariance @ score
        distance = float(mean @ score)
        mean = mean * min(1.0, np.sqrt(MAX_DISTANCE / max(distance, 1e-12)))
        rest = self.covariance - self.covariance @ information @ self.covariance
        found = np.outer(mean, mean) + (rest + rest.T) / 2
        self.n_episodes += 1
        share = max(SPREAD_SHARE, 1 / (self.n_episodes + START_EPISODES))
        self.covariance = (1 - share) * self.covariance + share * (
            found + MIN_SPREAD**2 * np.eye(len(mean))
        )

    def _weakened(self, fit: Fit, gain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        unit = units(gain)
        covariance = self.covariance * np.outer(unit, unit)
        both = np.column_stack([fit.score, fit.information])
        both = np.linalg.solve(np.eye(len(gain)) + fit.information @ covariance, both)
        information = both[:, 1:]
        return both[:, 0], (information + information.T) / 2


def units(gain: np.ndarray) -> np.ndarray:
    """(d,) units in which deviations from gains are compared."""
    return np.asarray(np.maximum(np.abs(gain), MIN_UNIT))
