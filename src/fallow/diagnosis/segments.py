"""When the response changed: standardise, cut into segments, compare with the last.

A series (n, d) is standardised channel by channel and cut where that lowers the squared
error by more than a penalty of 3 d log n; every segment has 5 episodes or more. Earlier
segments whose mean lies more than 3 standard errors from the last one's are stale.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from fallow.core.errors import FallowError, unknown

MIN_SEGMENT = 5
"""Episodes."""
MIN_EPISODES = 2 * MIN_SEGMENT
"""With a response; fewer cannot hold a change."""
PENALTY_FACTOR = 3.0
"""The penalty of one change is this times d log n."""
Z_LIMIT = 3.0
"""Standard errors."""

SCALES = {"mad": 1.0, "mad_normal": 1.4826}
"""The unit of a standardised series: the median absolute deviation, as it is or made an
estimate of a normal's standard deviation. The paper does not say which."""


@dataclass(frozen=True)
class Segment:
    """Episodes [start, stop) between two changes."""

    start: int
    stop: int
    z: float
    """Largest distance of a channel's mean from the last segment's, standard errors."""
    stale: bool
    response: float
    """Median of the mean response."""

    @property
    def n_episodes(self) -> int:
        """Those without a response as well."""
        return self.stop - self.start


def standardise(series: np.ndarray, scale: str = "mad") -> np.ndarray:
    """(n, d) less its median, over its median absolute deviation, channel by channel.

    Where more than half of a channel's values are equal that deviation is 0, and the
    mean absolute one stands in; a constant channel becomes zeros.
    """
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    centred = series - np.median(series, axis=0)
    unit = np.median(np.abs(centred), axis=0) * SCALES[scale]
    unit = np.where(unit > 0, unit, np.abs(centred).mean(axis=0))
    return centred / np.where(unit > 0, unit, 1.0)


def change_points(standard: np.ndarray, min_segment: int = MIN_SEGMENT) -> list[int]:
    """First episodes (0 < c < n) of all segments but the first, for a series (n, d).

    `ruptures.KernelCPD` with the linear kernel: PELT on the squared error, in C. At
    this penalty it is exact but for rare series, most of them with outliers, where PELT
    prunes too much and adds a change.
    """
    from ruptures import KernelCPD  # half a second to import

    n, d = standard.shape
    if n < 2 * min_segment:
        return []
    model = KernelCPD(kernel="linear", min_size=min_segment)
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
            f"{n_episodes} episodes with actions, and {MIN_EPISODES} are needed, since "
            f"a segment has {MIN_SEGMENT} or more; record more of them"
        )


def segments_of(
    series: np.ndarray, mean: np.ndarray, scale: str = "mad"
) -> tuple[Segment, ...]:
    """The segments of k episodes from a series (k, d) and the mean response (k,).

    Episodes with NaN are left out of every number, and belong to the segment before
    them.

    Raises:
        FallowError: fewer than ten episodes have a response.
    """
    heard = np.flatnonzero(~np.isnan(series).any(axis=1))
    require_episodes(len(heard))
    clean = series[heard]
    cuts = change_points(standardise(clean, scale))
    inner = [0, *cuts, len(heard)]
    edges = [0, *(int(heard[cut]) for cut in cuts), len(series)]
    last = clean[inner[-2] :]
    found = []
    for index, (start, stop) in enumerate(itertools.pairwise(edges)):
        z = float(welch_z(clean[inner[index] : inner[index + 1]], last).max())
        is_last = index == len(cuts)
        response = float(np.median(mean[heard[inner[index] : inner[index + 1]]]))
        found.append(Segment(start, stop, z, z > Z_LIMIT and not is_last, response))
    return tuple(found)
