"""The body model: a forgetful Bayesian regression of velocity change on features.

    change[t] = W' phi[t] + noise,   noise ~ Student t with scatter Sigma

The sums S = sum w phi phi' and C = sum w phi change' decay with the steps learned, so
W = (S + ridge I)^-1 C follows the policy through the state space. Before an episode W
is uncertain with precision S / drift: a policy in new states makes W wrong there, and
the evidence about gains must not mistake that for a change.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fallow.tracking.features import Design

DEGREES_OF_FREEDOM = 4.0
"""Of the Student noise: contacts make velocity jump."""
RIDGE = 1.0
"""Precision of W before any data, in squared feature units."""
SCATTER_SHARE = 0.1
"""Weight of one episode in the running scatter of the noise."""
MIN_SCATTER = 1e-6
"""Added to the scatter's diagonal, in squared units of velocity change."""


@dataclass(frozen=True)
class Fit:
    """What an episode says about theta, with the body model integrated out.

    The log likelihood of theta + step is score @ step - step @ information @ step / 2
    plus a constant.
    """

    score: np.ndarray  # (2 d,)
    information: np.ndarray  # (2 d, 2 d)
    surprise: float
    """Mean squared innovation, near 1 or less where the model holds."""


class BodyModel:
    """Sums, weights and noise of the regression; p features, d actuators."""

    def __init__(self, p: int, d: int, memory_steps: float, drift: float) -> None:
        self.memory_steps, self.drift = memory_steps, drift
        self.gram = np.zeros((p, p))
        self.cross = np.zeros((p, d))
        self.scatter = np.eye(d)
        self.weights = np.zeros((p, d))

    def warm_up(self, designs: list[Design], theta: np.ndarray) -> None:
        """Learn the first episodes: once unweighted, then with Student weights."""
        phis = [(design.phi(theta), design.change) for design in designs]
        self.gram = sum((phi.T @ phi for phi, _ in phis), self.gram)
        self.cross = sum((phi.T @ change for phi, change in phis), self.cross)
        self._solve()
        residual = np.concatenate([y - phi @ self.weights for phi, y in phis])
        self.scatter = _scatter(residual, np.ones(len(residual)))
        self.gram, self.cross = np.zeros_like(self.gram), np.zeros_like(self.cross)
        for design in designs:
            self.learn(design, theta, solve=False)
        self._solve()

    def learn(self, design: Design, theta: np.ndarray, solve: bool = True) -> None:
        """Add an episode that was recorded under parameters theta."""
        phi = design.phi(theta)
        residual = design.change - phi @ self.weights
        weight = student_weights(residual, self.scatter)
        keep = np.exp(-len(phi) / self.memory_steps)
        weighted = phi * weight[:, None]
        self.gram = keep * self.gram + weighted.T @ phi
        self.cross = keep * self.cross + weighted.T @ design.change
        share = SCATTER_SHARE
        self.scatter = (1 - share) * self.scatter + share * _scatter(residual, weight)
        if solve:
            self._solve()

    def fit(self, design: Design, theta: np.ndarray) -> Fit:
        """Evidence of one episode about theta, linearised at theta."""
        phi = design.phi(theta)
        residual = design.change - phi @ self.weights  # (T, d)
        weight = student_weights(residual, self.scatter)
        whiten = np.linalg.cholesky(np.linalg.inv(self.scatter))
        n_steps, d = residual.shape
        jacobian = design.jacobian(self.weights) @ whiten  # (T, 2 d, d)
        right = np.concatenate([(residual @ whiten)[:, None], jacobian], axis=1)
        right = right.reshape(n_steps, -1)  # (T, (1 + 2 d) d)
        weighted = phi * weight[:, None]
        precision = self.gram / self.drift + weighted.T @ phi
        factor = cho_factor(precision + RIDGE * np.eye(len(precision)))
        mixed = weighted.T @ right  # (p, (1 + 2 d) d)
        explained = cho_solve(factor, mixed)
        n = 1 + 2 * d
        total = _pair(right * weight[:, None], right, n) - _pair(mixed, explained, n)
        return Fit(total[0, 1:], total[1:, 1:], float(total[0, 0] / residual.size))

    def _solve(self) -> None:
        precision = self.gram + RIDGE * np.eye(len(self.gram))
        self.weights = cho_solve(cho_factor(precision), self.cross)


def student_weights(residual: np.ndarray, scatter: np.ndarray) -> np.ndarray:
    """(T,) weights of rows of residuals (T, d) under Student noise."""
    d = len(scatter)
    distance = (residual * np.linalg.solve(scatter, residual.T).T).sum(axis=1)
    nu = DEGREES_OF_FREEDOM
    return np.asarray((nu + d) / (nu + distance))


def _scatter(residual: np.ndarray, weight: np.ndarray) -> np.ndarray:
    scatter = (residual * weight[:, None]).T @ residual / len(residual)
    return np.asarray(scatter + MIN_SCATTER * np.eye(residual.shape[1]))


def _pair(left: np.ndarray, right: np.ndarray, n: int) -> np.ndarray:
    """(n, n) inner products over rows and outputs of two (rows, n * d) matrices."""
    rows = len(left)
    a = left.reshape(rows, n, -1).transpose(1, 0, 2).reshape(n, -1)
    b = right.reshape(rows, n, -1).transpose(1, 0, 2).reshape(n, -1)
    return np.asarray(a @ b.T)
