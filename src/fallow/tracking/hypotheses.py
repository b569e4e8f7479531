"""Which changes are looked for, and which one explains the evidence best."""

from dataclasses import dataclass

import numpy as np

from fallow.tracking.evidence import Evidence

FACTORS = (0.3, 0.5, 0.7, 0.85, 1.18, 1.43, 2.0, 3.3)
"""Of all gains together."""
JOINT_FACTORS = (0.0, 0.5, 2.0)
"""Of one gain."""
DRAGS = (-0.5, 0.5)
"""Added to all drags, in units of command per unit of velocity."""
DEAD = 0.05
"""A gain at or below this counts as dead; its return to 1 is looked for."""
PARAMETER_COST = 3.0
"""Nats that every further free parameter of an explanation must earn."""
SIMPLE_SHARE = 0.7
"""Of a better score that a simpler explanation must reach to be preferred."""
MAX_GAIN = 5.0


@dataclass(frozen=True)
class Explanation:
    """Parameters that explain a change, and by how much."""

    theta: np.ndarray  # (2 d,)
    score: float
    """Log likelihood above that of the present regime, less the cost."""
    kind: str
    """`common` gain, `joint` and its index, `drag`, or all gains `free`."""

    @property
    def is_gain(self) -> bool:
        """Whether gains alone changed."""
        return self.kind != "drag"


def grid(theta: np.ndarray) -> np.ndarray:
    """(n, 2 d) parameters to test against the present ones (2 d,)."""
    gain, drag = np.split(theta, 2)
    d = len(gain)
    rows = [np.concatenate([gain * factor, drag]) for factor in FACTORS]
    rows += [np.concatenate([gain, drag + step]) for step in DRAGS]
    for j in range(d if d > 1 else 0):
        for factor in JOINT_FACTORS:
            row = theta.copy()
            row[j] = 1.0 if factor > 1 and gain[j] <= DEAD else gain[j] * factor
            rows.append(row)
    return np.array(rows)


def explain(evidence: Evidence, base: np.ndarray) -> Explanation:
    """The simplest good explanation of the evidence by a change from the base (2 d,).

    One gain parameter is preferred to drag, and drag to all gains freely, wherever the
    simpler one reaches `SIMPLE_SHARE` of the other's score.
    """
    d = len(base) // 2
    start = evidence.log_likelihood(base)

    def scored(kind: str, theta: np.ndarray, n_free: int = 1) -> Explanation:
        gained = float(evidence.log_likelihood(theta) - start)
        return Explanation(theta, gained - PARAMETER_COST * (n_free - 1), kind)

    directions = {"common": base * np.repeat([1.0, 0.0], d)}
    if d > 1:
        directions |= {f"joint {j}": np.eye(2 * d)[j] for j in range(d)}
    ones = [scored(k, _step(evidence, base, way)) for k, way in directions.items()]
    best = max(ones, key=lambda e: e.score)
    drag = scored("drag", _step(evidence, base, np.repeat([0.0, 1.0], d)))
    free = scored("free", _free_gains(evidence, base), d)
    for other in (drag, free):
        if best.score < SIMPLE_SHARE * other.score:
            best = other
    return best


def _step(evidence: Evidence, base: np.ndarray, direction: np.ndarray) -> np.ndarray:
    d = len(base) // 2
    theta = base + evidence.best_along(base, direction) * direction
    return np.concatenate([np.clip(theta[:d], 0.0, MAX_GAIN), theta[d:]])


def _free_gains(evidence: Evidence, base: np.ndarray) -> np.ndarray:
    d = len(base) // 2
    precision = evidence.precision[:d, :d]
    rest = evidence.vector[:d] - evidence.precision[:d, d:] @ base[d:]
    ridge = 1e-3 * np.trace(precision) / d * np.eye(d) + 1e-9 * np.eye(d)
    gain = base[:d] + np.linalg.solve(precision + ridge, rest - precision @ base[:d])
    return np.concatenate([np.clip(gain, 0.0, MAX_GAIN), base[d:]])
