"""The segments of a response series, and which of them are stale.

A series (n, d) is standardised channel by channel and cut where that lowers the squared
error by more than a penalty of 3 d log n; every segment has 5 episodes or more. An
earlier segment is stale if its mean response lies more than 3 standard errors from that
of the last segment (a two-sample z-statistic, Welch, on raw K).
"""

import itertools
from dataclasses import dataclass

import numpy as np

from fallow.core.errors import FallowError, unknown
from fallow.core.text import counted

MIN_SEGMENT = 5
"""Episodes."""
MIN_EPISODES = 2 * MIN_SEGMENT
"""With a response; fewer cannot hold a change."""
PENALTY_FACTOR = 3.0
"""The penalty of one change is this times d log n."""
Z_LIMIT = 3.0
"""Standard errors."""

STALE_BY = ("mean", "any_joint")
"""What z compares: the mean response over joints, or each channel, of which the largest
|z| counts. With several channels the second calls nearly every segment stale."""
SCALES = ("mad", "mad_normal", "steps")
"""The unit of a standardised series: the median absolute deviation, as it is or times
1.4826, of which the paper does not say which; or the typical step from one episode to
the next, which unlike the other two does not grow with the change itself."""
TO_NORMAL = 1.4826
"""From a median absolute deviation to the standard deviation of a normal."""


@dataclass(frozen=True)
class Segment:
    """Episodes [start, stop) between two changes."""

    start: int
    stop: int
    z: float
    """Distance from the last segment's mean, in standard errors; see `STALE_BY`."""
    stale: bool
    response: float
    """Median of the mean response."""

    @property
    def n_episodes(self) -> int:
        """Number of episodes, including those without a response."""
        return self.stop - self.start


def standardise(series: np.ndarray, scale: str = "mad") -> np.ndarray:
    """(n, d) less its median, over the unit of `scale`, channel by channel.

    Where that unit is 0, as if more than half of a channel's values are equal, it is
    the mean absolute deviation; a constant channel becomes zeros.
    """
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    centred = series - np.median(series, axis=0)
    spread = centred if scale != "steps" else np.diff(series, axis=0) / np.sqrt(2)
    unit = np.median(np.abs(spread), axis=0) * (1.0 if scale == "mad" else TO_NORMAL)
    unit = np.where(unit > 0, unit, np.abs(centred).mean(axis=0))
    return centred / np.where(unit > 0, unit, 1.0)


def change_points(standard: np.ndarray) -> list[int]:
    """First episodes (0 < c < n) of all segments but the first, for a series (n, d).

    `ruptures.KernelCPD` with the linear kernel: PELT on the squared error, in C. At
    this penalty it is exact but for rare series, most of them with outliers, where PELT
    prunes too much and adds a change.
    """
    from ruptures import KernelCPD  # half a second to import

    n, d = standard.shape
    if n < 2 * MIN_SEGMENT:
        return []
    model = KernelCPD(kernel="linear", min_size=MIN_SEGMENT)
    penalty = PENALTY_FACTOR * d * np.log(n)
    return [int(end) for end in model.fit(standard).predict(pen=penalty)[:-1]]


def welch_z(segment: np.ndarray, last: np.ndarray) -> np.ndarray:
    """(d,) |difference of means| over its standard error; samples (n, d) and (m, d)."""
    difference = np.abs(segment.mean(axis=0) - last.mean(axis=0))
    variance = segment.var(axis=0, ddof=1) / len(segment)
    variance += last.var(axis=0, ddof=1) / len(last)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = difference / np.sqrt(variance)
    return np.where(difference == 0, 0.0, z)


def require_episodes(n_episodes: int) -> None:
    """Raise where there are too few episodes with actions to hold a change."""
    if n_episodes < MIN_EPISODES:
        raise FallowError(
            f"there {'is' if n_episodes == 1 else 'are'} "
            f"{counted(n_episodes, 'episode')} with actions, and {MIN_EPISODES} are "
            f"needed, {MIN_SEGMENT} on each side of a change; record more of them"
        )


def segments_of(
    series: np.ndarray, mean: np.ndarray, scale: str = "mad", stale_by: str = "mean"
) -> tuple[Segment, ...]:
    """The segments of k episodes from a series (k, d) and the mean response (k,).

    Episodes with NaN enter no number and belong to the segment before them.

    Raises:
        FallowError: fewer than ten episodes have a response.
    """
    if stale_by not in STALE_BY:
        raise unknown("stale_by", stale_by, STALE_BY)
    heard = np.flatnonzero(~np.isnan(series).any(axis=1))
    require_episodes(len(heard))
    cuts = change_points(standardise(series[heard], scale))
    inner = [0, *cuts, len(heard)]
    edges = [0, *(int(heard[cut]) for cut in cuts), len(series)]
    compared = (mean[:, None] if stale_by == "mean" else series)[heard]
    last = compared[inner[-2] :]
    found = []
    for index, (start, stop) in enumerate(itertools.pairwise(edges)):
        inside = slice(inner[index], inner[index + 1])
        z = float(welch_z(compared[inside], last).max())
        is_last = index == len(cuts)
        response = float(np.median(mean[heard[inside]]))
        found.append(Segment(start, stop, z, z > Z_LIMIT and not is_last, response))
    return tuple(found)
