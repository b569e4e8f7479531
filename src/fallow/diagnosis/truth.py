"""The truth that a log records about itself, and the error of an estimate against it.

No estimate reads the truth; it is only shown beside estimates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fallow.diagnosis.actuator import Response
from fallow.diagnosis.loss import magnitude
from fallow.diagnosis.segments import MIN_EPISODES, segments_of
from fallow.logs.log import Log
from fallow.replay.staleness import interval_auc

NEAR = 2
"""Episodes within which a change counts as found."""


@dataclass(frozen=True)
class Truth:
    """The recorded changes, and the AUC and m_hat that follow from them."""

    change_points: tuple[int, ...]
    auc: float | None
    magnitude: float | None
    """Eq. (8) of the mean gain over actuators; None if the stale gain is zero."""


def truth_of(log: Log) -> Truth | None:
    """Changes, AUC and magnitude from the log's regimes; None where it has none."""
    if log.regime is None:
        return None
    stale = log.regime != log.regime[-1]
    changes = np.flatnonzero(log.regime[1:] != log.regime[:-1]) + 1
    gain = None if log.gain is None else log.gain.mean(axis=1)
    return Truth(
        change_points=tuple(int(change) for change in changes),
        auc=interval_auc(log.start_step, log.end_step, stale),
        magnitude=None if gain is None else magnitude(gain[~stale], gain[stale]),
    )


def location_error(found: Sequence[int], true: int) -> int | None:
    """Episodes from a true change to the nearest found one; negative if it is earlier.

    None if no change was found.
    """
    return min((at - true for at in found), key=abs, default=None)


def n_false(found: Sequence[int], true: Sequence[int], near: int = NEAR) -> int:
    """Number of found changes that are not within `near` episodes of a true one."""
    return sum(all(abs(at - one) > near for one in true) for at in found)


def decision_delay(response: Response, true: int, near: int = NEAR) -> int | None:
    """Episodes after a true change until an analysis of the past first finds it.

    Each analysis reads the episodes so far and finds the change if it puts a boundary
    within `near` episodes of it. None if no analysis does.
    """
    heard = np.cumsum(response.heard)
    for n in range(true + 1, len(response.series) + 1):
        if heard[n - 1] < MIN_EPISODES:
            continue
        segments = segments_of(response.series[:n], response.mean[:n])
        if any(abs(segment.start - true) <= near for segment in segments[1:]):
            return n - true
    return None
