"""Keep the old data, or discard it: two gates, and the evidence for each.

    discard if AUC >= 0.87 and m_hat >= 0.40, else keep
    m_hat = 1 - median(K_fresh) / median(K_stale)                                eq. (8)

AUC is the age-staleness AUC of eq. (2) under the estimated labels: does age tell stale
data from fresh? m_hat is the share of the response that was lost. To discard is the
rule Recency, to keep is Passive.
"""

from dataclasses import dataclass

import numpy as np

from fallow.core import seeds
from fallow.diagnosis.actuator import Response, response_of
from fallow.diagnosis.segments import Segment, require_episodes, segments_of
from fallow.logs.log import Log
from fallow.replay.staleness import interval_auc

AUC_GATE = 0.87
MAGNITUDE_GATE = 0.40
AUC_NEAR = 0.05
"""Within this of its gate the AUC makes a close call."""
N_RESAMPLES = 10_000
SMALLEST = 1e-9
"""A stale response smaller than this, relative to the fresh one, is none."""
INTERVAL = 0.95
"""Share of resamples inside the interval of m_hat."""


@dataclass(frozen=True)
class Gate:
    """One threshold, and on which side of it a number lies."""

    name: str
    value: float | None
    threshold: float

    @property
    def passed(self) -> bool:
        """Whether it speaks for discarding; a number that is not there does not."""
        return self.value is not None and self.value >= self.threshold

    @property
    def margin(self) -> float | None:
        """How far beyond the threshold; negative below it."""
        return None if self.value is None else self.value - self.threshold


@dataclass(frozen=True)
class Decision:
    """What to do with the old data, and everything that it rests on."""

    response: Response
    scale: str
    segments: tuple[Segment, ...]
    stale: np.ndarray  # (k,), of every episode
    left_out: tuple[int, ...]
    """Episodes without a response."""
    auc: Gate
    magnitude: Gate
    interval: tuple[float, float] | None
    """95 % bootstrap interval of m_hat; episodes are taken as independent."""
    share_beyond: float | None
    """Share of resamples in which m_hat passes its gate."""

    @property
    def discard(self) -> bool:
        """Whether both gates say so."""
        return self.auc.passed and self.magnitude.passed

    @property
    def word(self) -> str:
        """`discard` or `keep`."""
        return "discard" if self.discard else "keep"

    @property
    def rule(self) -> str:
        """The retention rule that this stands for."""
        return "recency" if self.discard else "passive"

    @property
    def change_points(self) -> tuple[int, ...]:
        """First episodes of all segments but the first."""
        return tuple(segment.start for segment in self.segments[1:])

    @property
    def auc_is_close(self) -> bool:
        """Whether the AUC is within 0.05 of its gate while m_hat is beyond its own."""
        margin = self.auc.margin
        return self.magnitude.passed and margin is not None and abs(margin) < AUC_NEAR

    @property
    def magnitude_is_close(self) -> bool:
        """Whether m_hat's interval holds its gate while the AUC is beyond its own."""
        if self.interval is None or not self.auc.passed:
            return False
        return self.interval[0] < self.magnitude.threshold <= self.interval[1]

    @property
    def near(self) -> bool:
        """Whether the decision could well have been the other one."""
        return self.auc_is_close or self.magnitude_is_close


def decide(log: Log, variant: str = "joint", scale: str = "mad") -> Decision:
    """Response, segments, labels, AUC, m_hat and the decision, from a log alone.

    Raises:
        FallowError: too few episodes, or no actions.
    """
    require_episodes(log.n_episodes)
    response = response_of(log, variant)
    segments = segments_of(response.series, response.mean, scale)
    stale = np.zeros(log.n_episodes, bool)
    for segment in segments:
        stale[segment.start : segment.stop] = segment.stale
    heard = response.heard
    fresh_k, stale_k = response.mean[heard & ~stale], response.mean[heard & stale]
    draws = resampled_magnitudes(fresh_k, stale_k)
    edge = (1 - INTERVAL) / 2
    has_draws = len(draws) > 0
    return Decision(
        response=response,
        scale=scale,
        segments=segments,
        stale=stale,
        left_out=tuple(int(e) for e in np.flatnonzero(~heard)),
        auc=Gate("AUC", interval_auc(log.start_step, log.end_step, stale), AUC_GATE),
        magnitude=Gate("m_hat", magnitude(fresh_k, stale_k), MAGNITUDE_GATE),
        interval=_ends(draws, edge) if has_draws else None,
        share_beyond=float((draws >= MAGNITUDE_GATE).mean()) if has_draws else None,
    )


def magnitude(fresh: np.ndarray, stale: np.ndarray) -> float | None:
    """Eq. (8); None where there is nothing stale or its median is next to 0."""
    if len(fresh) == 0 or len(stale) == 0:
        return None
    over, under = float(np.median(fresh)), float(np.median(stale))
    return 1 - over / under if abs(under) > SMALLEST * abs(over) else None


def resampled_magnitudes(
    fresh: np.ndarray, stale: np.ndarray, n_resamples: int = N_RESAMPLES, seed: int = 0
) -> np.ndarray:
    """(n_resamples,) eq. (8) with the episodes of either kind drawn anew; or none."""
    if magnitude(fresh, stale) is None:
        return np.zeros(0)
    random = seeds.generator(seed, "bootstrap of the magnitude")
    over = resampled_medians(fresh, n_resamples, random)
    under = resampled_medians(stale, n_resamples, random)
    usable = np.abs(under) > SMALLEST * np.abs(over)
    return 1 - over[usable] / under[usable]


def resampled_medians(
    values: np.ndarray, n_resamples: int, random: np.random.Generator
) -> np.ndarray:
    """Medians of n values drawn with replacement from n, without drawing them all.

    The middle order statistics of n uniform numbers are Beta distributed, and the value
    at rank ceil(n u) belongs to the uniform u: exact, and as quick for any n.
    """
    n, middle = len(values), (len(values) + 1) // 2
    low = random.beta(middle, n - middle + 1, n_resamples)
    high = low
    if n % 2 == 0:  # the next one, given this one
        high = low + (1 - low) * random.beta(1, n - middle, n_resamples)
    ordered = np.sort(values)
    ranks = [np.minimum((n * u).astype(int), n - 1) for u in (low, high)]
    return (ordered[ranks[0]] + ordered[ranks[1]]) / 2


def _ends(draws: np.ndarray, edge: float) -> tuple[float, float]:
    low, high = np.quantile(draws, [edge, 1 - edge])
    return float(low), float(high)
