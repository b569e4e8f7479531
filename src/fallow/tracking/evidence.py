"""Evidence about gains and drags, with the spread between episodes taken into account.

One episode says N(score, information) about theta as if the body model were exact. It
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
    """Log likelihood of theta (n,): vector @ theta - theta @ precision @ theta / 2."""

    vector: np.ndarray  # (n,)
    precision: np.ndarray  # (n, n)

    def __add__(self, other: "Evidence") -> "Evidence":
        return Evidence(self.vector + other.vector, self.precision + other.precision)

    def log_likelihood(self, theta: np.ndarray) -> np.ndarray:
        """Of every theta (..., n), up to a constant."""
        square = ((theta @ self.precision) * theta).sum(axis=-1)
        return np.asarray(theta @ self.vector - square / 2)

    def best_along(self, base: np.ndarray, direction: np.ndarray) -> float:
        """The step along a direction (n,) from a base (n,) that is most likely."""
        slope = direction @ (self.vector - self.precision @ base)
        return float(slope / max(direction @ self.precision @ direction, 1e-12))


def no_evidence(n: int) -> Evidence:
    """Evidence of nothing about n parameters."""
    return Evidence(np.zeros(n), np.zeros((n, n)))


class Spread:
    """Covariance (2 d, 2 d) of what episodes of one regime say, in relative units."""

    def __init__(self, d: int) -> None:
        gains = np.concatenate([np.ones(d), np.zeros(d)])
        self.covariance = START_SPREAD**2 * (np.eye(2 * d) + np.outer(gains, gains))
        self.n_episodes = 0

    def weaken(self, fit: Fit, theta: np.ndarray) -> Evidence:
        """The evidence of an episode that was linearised at theta (2 d,)."""
        score, information = self._weakened(fit, theta)
        return Evidence(score + information @ theta, information)

    def learn(self, fit: Fit, theta: np.ndarray) -> None:
        """Update the covariance by one settled episode (one step of EM)."""
        unit = units(theta)
        score, information = self._weakened(fit, theta)
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

    def _weakened(self, fit: Fit, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        unit = units(theta)
        covariance = self.covariance * np.outer(unit, unit)
        both = np.column_stack([fit.score, fit.information])
        both = np.linalg.solve(np.eye(len(theta)) + fit.information @ covariance, both)
        information = both[:, 1:]
        return both[:, 0], (information + information.T) / 2


def units(theta: np.ndarray) -> np.ndarray:
    """(2 d,) units in which deviations from theta are compared."""
    gain, drag = np.split(theta, 2)
    return np.concatenate([np.maximum(gain, MIN_UNIT), np.ones_like(drag)])
