"""The body model: a forgetful Bayesian regression of velocity change on features.

    change[t] = W' phi[t] + noise,   noise ~ Student t with scatter Sigma

The sums S = sum w phi phi' and C = sum w phi change' decay with the steps learned, so
W = (S + ridge I)^-1 C follows the policy through the state space. Slow sums, of little
weight, decay ten times later: a walker that walks for long and then falls is still
known to fall. Before an episode W is uncertain with precision S / drift: a policy in
new states makes W wrong there, and the evidence about gains must not mistake that for
a change.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fallow.tracking.features import Design

DEGREES_OF_FREEDOM = 4.0
"""Of the Student noise: contacts make velocity jump."""
RIDGE = 1.0
"""Precision of W before any data, in squared feature units."""
SLOW_FACTOR = 10.0
"""By which the slow sums remember longer."""
SLOW_WEIGHT = 0.1
"""Of the slow sums: little where there is recent data, all where there is none."""
SCATTER_SHARE = 0.1
"""Weight of one episode in the running scatter of the noise."""
N_ROUNDS = 2
"""Of robust regression: on a changed body every step is an outlier at first."""
MIN_SCATTER = 1e-6
"""Added to the scatter's diagonal, in squared units of velocity change."""


@dataclass(frozen=True)
class Fit:
    """The evidence of an episode about gains, with the body model integrated out.

    The log likelihood of gain + step is score @ step - step @ information @ step / 2
    plus a constant.
    """

    score: np.ndarray  # (d,)
    information: np.ndarray  # (d, d)


@dataclass(frozen=True)
class Sums:
    """Sums over steps that a regression needs; p features, d actuators."""

    gram: np.ndarray  # (p, p)
    cross: np.ndarray  # (p, d)

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.gram + other.gram, self.cross + other.cross)

    def __mul__(self, factor: float) -> "Sums":
        return Sums(factor * self.gram, factor * self.cross)

    def solve(self) -> np.ndarray:
        """(p, d) weights."""
        precision = self.gram + RIDGE * np.eye(len(self.gram))
        return np.asarray(cho_solve(cho_factor(precision), self.cross))


class BodyModel:
    """Sums, weights and noise of the regression."""

    def __init__(self, p: int, d: int, memory_steps: float, drift: float) -> None:
        self.memory_steps, self.drift = memory_steps, drift
        none = Sums(np.zeros((p, p)), np.zeros((p, d)))
        self.set_sums(none, none)
        self.scatter = np.eye(d)
        self.weights = np.zeros((p, d))

    def set_sums(self, fast: Sums, slow: Sums) -> None:
        """Set the sums of recent episodes and the slow ones."""
        self.fast, self.slow = fast, slow
        self.sums = fast + slow * SLOW_WEIGHT

    @property
    def vague(self) -> Sums:
        """The prior of a changed body: the same weights, far less certain."""
        return self.sums * (1 / self.drift)

    def warm_up(self, designs: list[Design], gain: np.ndarray) -> None:
        """Learn the first episodes: once unweighted, then with Student weights."""
        phis = [(design.phi(gain), design.change) for design in designs]
        start, n = self.sums, len(phis)
        plain = (Sums(phi.T @ phi, phi.T @ change) for phi, change in phis)
        self.weights = sum(plain, start).solve()
        residual = np.concatenate([y - phi @ self.weights for phi, y in phis])
        self.scatter = _scatter(residual, np.ones(len(residual)))
        for i, design in enumerate(designs):
            self.learn(design, gain, solve=i == n - 1)

    def learn(self, design: Design, gain: np.ndarray, solve: bool = True) -> None:
        """Add an episode that was recorded under gains (d,)."""
        phi = design.phi(gain)
        residual = design.change - phi @ self.weights
        weight = student_weights(residual, self.scatter)
        new, age = _sums(phi, weight, design.change), len(phi) / self.memory_steps
        keep, keep_slow = float(np.exp(-age)), float(np.exp(-age / SLOW_FACTOR))
        self.set_sums(self.fast * keep + new, self.slow * keep_slow + new)
        share = SCATTER_SHARE
        self.scatter = (1 - share) * self.scatter + share * _scatter(residual, weight)
        if solve:
            self.weights = self.sums.solve()

    def sums_of(self, design: Design, gain: np.ndarray, weights: np.ndarray) -> Sums:
        """Sums of an episode with Student weights by its residuals under weights."""
        phi = design.phi(gain)
        weight = student_weights(design.change - phi @ weights, self.scatter)
        return _sums(phi, weight, design.change)

    def robust_weights(
        self, start: Sums, designs: list[Design], gain: np.ndarray
    ) -> np.ndarray:
        """(p, d) weights from start sums and some episodes."""
        weights = self.weights
        for _ in range(N_ROUNDS):
            learned = (self.sums_of(design, gain, weights) for design in designs)
            weights = sum(learned, start).solve()
        return weights

    def restart(self, designs: list[Design], gain: np.ndarray) -> None:
        """Forget nearly all, for another body of which there are some episodes."""
        share = 1 / self.drift**2
        self.set_sums(self.fast * share, self.slow * share)
        self.weights = self.robust_weights(self.sums, designs, gain)

    def loss(self, design: Design, gain: np.ndarray, weights: np.ndarray) -> float:
        """Mean negative log likelihood of an episode's steps, up to a constant."""
        residual = design.change - design.phi(gain) @ weights
        weight = student_weights(residual, self.scatter)
        nu = DEGREES_OF_FREEDOM + len(self.scatter)
        return float(-nu / 2 * np.log(weight).mean())

    def fit(self, design: Design, gain: np.ndarray) -> Fit:
        """Evidence of one episode about gains, linearised at gain (d,)."""
        phi = design.phi(gain)
        residual = design.change - phi @ self.weights  # (T, d)
        weight = student_weights(residual, self.scatter)
        whiten = np.linalg.cholesky(np.linalg.inv(self.scatter))
        n_steps, d = residual.shape
        jacobian = design.jacobian(self.weights) @ whiten  # (T, d, d)
        right = np.concatenate([(residual @ whiten)[:, None], jacobian], axis=1)
        right = right.reshape(n_steps, -1)  # (T, (1 + d) d)
        weighted = phi * weight[:, None]
        bend = Sums(self.vague.gram + weighted.T @ phi, weighted.T @ right)
        n = 1 + d
        total = _pair(right * weight[:, None], right, n)
        total = total - _pair(bend.cross, bend.solve(), n)
        return Fit(total[0, 1:], total[1:, 1:])


def student_weights(residual: np.ndarray, scatter: np.ndarray) -> np.ndarray:
    """(T,) weights of rows of residuals (T, d) under Student noise."""
    d = len(scatter)
    distance = (residual * np.linalg.solve(scatter, residual.T).T).sum(axis=1)
    nu = DEGREES_OF_FREEDOM
    return np.asarray((nu + d) / (nu + distance))


def _sums(phi: np.ndarray, weight: np.ndarray, change: np.ndarray) -> Sums:
    weighted = phi * weight[:, None]
    return Sums(weighted.T @ phi, weighted.T @ change)


def _scatter(residual: np.ndarray, weight: np.ndarray) -> np.ndarray:
    scatter = (residual * weight[:, None]).T @ residual / len(residual)
    return np.asarray(scatter + MIN_SCATTER * np.eye(residual.shape[1]))


def _pair(left: np.ndarray, right: np.ndarray, n: int) -> np.ndarray:
    """(n, n) inner products over rows and outputs of two (rows, n * d) matrices."""
    rows = len(left)
    a = left.reshape(rows, n, -1).transpose(1, 0, 2).reshape(n, -1)
    b = right.reshape(rows, n, -1).transpose(1, 0, 2).reshape(n, -1)
    return np.asarray(a @ b.T)
