"""The changes that are considered, and which one explains the evidence best."""

from dataclasses import dataclass

import numpy as np

from fallow.tracking.evidence import Evidence

FACTORS = (0.3, 0.5, 0.7, 0.85, 1.18, 1.43, 2.0, 3.3)
"""Of all gains together."""
JOINT_FACTORS = (0.0, 0.5, 2.0)
"""Of one gain."""
DEAD = 0.05
"""A gain at or below this counts as dead; its return to 1 is looked for."""
PARAMETER_COST = 3.0
"""Nats that every further free parameter of an explanation must earn."""
SIMPLE_SHARE = 0.7
"""Of a better score that a simpler explanation must reach to be preferred."""
MAX_GAIN = 5.0
REVERSED = -0.5
"""A gain at or below this is that of a reversed actuator; above it, up to 0, it counts
as dead."""


@dataclass(frozen=True)
class Explanation:
    """Gains that explain a change, and by how much."""

    gain: np.ndarray  # (d,)
    score: float
    """Log likelihood above that of the present regime, less the cost."""
    kind: str
    """`common` gain, `joint` and its index, or all gains `free`."""


def grid(gain: np.ndarray) -> np.ndarray:
    """(n, d) gains to test against the present ones (d,)."""
    rows = [gain * factor for factor in FACTORS]
    for j in range(len(gain) if len(gain) > 1 else 0):
        for factor in JOINT_FACTORS:
            row = gain.copy()
            row[j] = 1.0 if factor > 1 and gain[j] <= DEAD else gain[j] * factor
            rows.append(row)
    return np.array(rows)


def simple(evidence: Evidence, base: np.ndarray) -> list[Explanation]:
    """The best common factor, and the best value of each single gain."""
    directions = {"common": base}
    if len(base) > 1:
        directions |= {f"joint {j}": row for j, row in enumerate(np.eye(len(base)))}
    return [
        _scored(evidence, base, base + evidence.best_along(base, way) * way, kind)
        for kind, way in directions.items()
    ]


def explain(evidence: Evidence, base: np.ndarray) -> Explanation:
    """The simplest good explanation of the evidence by a change from the base (d,).

    One gain parameter is preferred to all gains freely where it reaches `SIMPLE_SHARE`
    of their score.
    """
    best = max(simple(evidence, base), key=lambda e: e.score)
    gains = np.maximum(_free_gains(evidence, base), 0.0)
    free = _scored(evidence, base, gains, "free", len(base))
    return free if best.score < SIMPLE_SHARE * free.score else best


def _scored(
    evidence: Evidence, base: np.ndarray, gain: np.ndarray, kind: str, n_free: int = 1
) -> Explanation:
    gain = np.clip(gain, -MAX_GAIN, MAX_GAIN)
    gain = np.where(gain <= REVERSED, gain, np.maximum(gain, 0.0))
    gained = float(evidence.log_likelihood(gain) - evidence.log_likelihood(base))
    return Explanation(gain, gained - PARAMETER_COST * (n_free - 1), kind)


def _free_gains(evidence: Evidence, base: np.ndarray) -> np.ndarray:
    precision, d = evidence.precision, len(base)
    ridge = (1e-3 * np.trace(precision) / d + 1e-9) * np.eye(d)
    slope = evidence.vector - precision @ base
    return np.asarray(base + np.linalg.solve(precision + ridge, slope))
