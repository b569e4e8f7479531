"""The paper's selector (Algorithm 1): keep or discard the old data, by two gates.

    discard if AUC >= 0.87 and m_hat >= 0.40, else keep

AUC is the age-staleness AUC of eq. (2) under the estimated labels: 1 if all stale data
is older than all fresh data. m_hat, eq. (8), is the share of the mean response that was
lost. Discard stands for the rule Recency, keep for Passive.
"""

from dataclasses import dataclass

import numpy as np

from fallow.diagnosis.actuator import Response, response_of
from fallow.diagnosis.loss import interval_of, magnitude, resampled_magnitudes
from fallow.diagnosis.segments import Segment, require_episodes, segments_of
from fallow.logs.log import Log
from fallow.replay.staleness import interval_auc

AUC_GATE = 0.87
MAGNITUDE_GATE = 0.40
AUC_NEAR = 0.05
"""Within this of its gate the AUC makes a close call."""


@dataclass(frozen=True)
class Gate:
    """One threshold, and the side of it on which a number is."""

    name: str
    value: float | None
    threshold: float

    @property
    def passed(self) -> bool:
        """Whether it favours discarding; an undefined number does not."""
        return self.value is not None and self.value >= self.threshold

    @property
    def margin(self) -> float | None:
        """How far beyond the threshold; negative below it."""
        return None if self.value is None else self.value - self.threshold


@dataclass(frozen=True)
class Decision:
    """The selector's verdict on the old data, and everything that it rests on."""

    response: Response
    scale: str
    stale_by: str
    segments: tuple[Segment, ...]
    stale: np.ndarray  # (k,), of every episode
    left_out: tuple[int, ...]
    """Episodes without a response."""
    auc: Gate
    magnitude: Gate
    interval: tuple[float, float] | None
    """Resampling interval of m_hat, not of the gain; see `fallow.diagnosis.loss`."""
    share_beyond: float | None
    """Share of resamples in which m_hat passes its gate."""

    @property
    def discard(self) -> bool:
        """Whether both gates are passed."""
        return self.auc.passed and self.magnitude.passed

    @property
    def word(self) -> str:
        """`discard` or `keep`."""
        return "discard" if self.discard else "keep"

    @property
    def rule(self) -> str:
        """The retention rule: `recency` or `passive`."""
        return "recency" if self.discard else "passive"

    @property
    def change_points(self) -> tuple[int, ...]:
        """First episodes of all segments but the first."""
        return tuple(segment.start for segment in self.segments[1:])

    @property
    def auc_is_close(self) -> bool:
        """Whether the AUC is within 0.05 of its gate while m_hat passes."""
        margin = self.auc.margin
        return self.magnitude.passed and margin is not None and abs(margin) < AUC_NEAR

    @property
    def magnitude_is_close(self) -> bool:
        """Whether m_hat's interval contains its gate while the AUC passes."""
        if self.interval is None or not self.auc.passed:
            return False
        return self.interval[0] < self.magnitude.threshold <= self.interval[1]

    @property
    def near(self) -> bool:
        """Whether a small change of either number reverses the decision."""
        return self.auc_is_close or self.magnitude_is_close


def decide(
    log: Log, variant: str = "joint", scale: str = "mad", stale_by: str = "mean"
) -> Decision:
    """Response, segments, labels, AUC, m_hat and the decision, from a log alone.

    Raises:
        FallowError: too few episodes, or no actions.
    """
    require_episodes(log.n_episodes)
    response = response_of(log, variant)
    segments = segments_of(response.series, response.mean, scale, stale_by)
    stale = np.zeros(log.n_episodes, bool)
    for segment in segments:
        stale[segment.start : segment.stop] = segment.stale
    heard = response.heard
    fresh_k, stale_k = response.mean[heard & ~stale], response.mean[heard & stale]
    lost = magnitude(fresh_k, stale_k)
    resampled = resampled_magnitudes(fresh_k, stale_k)
    return Decision(
        response=response,
        scale=scale,
        stale_by=stale_by,
        segments=segments,
        stale=stale,
        left_out=tuple(int(e) for e in np.flatnonzero(~heard)),
        auc=Gate("AUC", interval_auc(log.start_step, log.end_step, stale), AUC_GATE),
        magnitude=Gate("m_hat", lost, MAGNITUDE_GATE),
        interval=interval_of(resampled),
        share_beyond=float((resampled >= MAGNITUDE_GATE).mean())
        if resampled.size
        else None,
    )
