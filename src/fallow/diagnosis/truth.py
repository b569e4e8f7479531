"""What a log says about itself, and how near an estimate comes to it.

No estimate reads the truth: it is shown beside one, to judge it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fallow.diagnosis.actuator import Response
from fallow.diagnosis.segments import MIN_EPISODES, segments_of
from fallow.logs.log import Log
from fallow.replay.staleness import interval_auc

NEAR = 2
"""Episodes within which a change counts as found."""


@dataclass(frozen=True)
class Truth:
    """What a log says about itself, for comparison; no estimate reads it."""

    change_points: tuple[int, ...]
    auc: float | None
    magnitude: float | None
    """Share of the mean gain that was lost, as eq. (8) would have it."""


def truth_of(log: Log) -> Truth | None:
    """Changes, AUC and magnitude by the log's own regimes; None where it has none."""
    if log.regime is None:
        return None
    stale = log.regime != log.regime[-1]
    changes = np.flatnonzero(log.regime[1:] != log.regime[:-1]) + 1
    magnitude = None
    if log.gain is not None and stale.any():
        gain = log.gain.mean(axis=1)
        magnitude = float(1 - np.median(gain[~stale]) / np.median(gain[stale]))
    return Truth(
        change_points=tuple(int(change) for change in changes),
        auc=interval_auc(log.start_step, log.end_step, stale),
        magnitude=magnitude,
    )


def location_error(found: Sequence[int], true: int) -> int | None:
    """How many episodes after a true change the nearest found one lies.

    Negative if before it; None if no change was found.
    """
    return min((at - true for at in found), key=abs, default=None)


def n_false(found: Sequence[int], true: Sequence[int], near: int = NEAR) -> int:
    """How many found changes are within `near` episodes of no true one."""
    return sum(all(abs(at - one) > near for one in true) for at in found)


def decision_delay(
    response: Response, true: int, scale: str = "mad", near: int = NEAR
) -> int | None:
    """Episodes seen since a change when it is first put within `near` of its place.

    Each analysis is of the episodes so far; None if none of them puts it there.
    """
    heard = np.cumsum(response.heard)
    for n in range(true + 1, len(response.series) + 1):
        if heard[n - 1] < MIN_EPISODES:
            continue
        segments = segments_of(response.series[:n], response.mean[:n], scale)
        if any(abs(segment.start - true) <= near for segment in segments[1:]):
            return n - true
    return None
