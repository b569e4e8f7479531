"""Abrupt changes of the response: where they are, and in which joints.

The published segmentation also cuts a response that drifts with the policy, and one
that is so precise that steps of 1 % are significant. It misses a dead joint whose
regimes are balanced, since the gap itself then sets the scale of that channel. So for
display and advice the same series is scaled by its steps from episode to episode before
it is cut, and a boundary counts as a change only if the response of a joint jumps
there: K over the episodes just before and just after differs by at least `SMALL_EFFECT`
of the larger of both and `ABRUPT_Z` standard errors, or, where a response goes or comes
back, by at least `GONE_EFFECT` and `GONE_Z`. The selector does not use any of this.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fallow.diagnosis.actuator import Response, joint_medians
from fallow.diagnosis.segments import Z_LIMIT, Segment, welch_z

WINDOW = 8
"""Episodes compared on either side of a boundary, at most, within its two segments."""
SMALL_EFFECT = 0.05
"""Relative change of K below which a boundary is no change."""
ABRUPT_Z = 7.0
"""Standard errors that make a boundary abrupt; at one, a joint changes from `Z_LIMIT`
on. `benchmarks/response_coverage.py` shows what drift reaches."""
GONE_EFFECT, GONE_Z = 0.8, 5.0
"""The same for a joint that keeps less than a fifth of its response, or regains it."""
SAME = 0.5
"""A joint is at the same level if its changes add up to at most this share of its
largest one."""


@dataclass(frozen=True)
class ResponseChange:
    """One boundary of the segmentation, and the response of d joints around it."""

    episode: int
    """First episode after the boundary."""
    before: np.ndarray  # (n, d), K of the episodes just before; NaN: no response
    after: np.ndarray  # (m, d), K of the episodes just after

    @cached_property
    def effect(self) -> np.ndarray:
        """(d,) relative change of the median K around the boundary."""
        return relative_change(joint_medians(self.before), joint_medians(self.after))

    @cached_property
    def z(self) -> np.ndarray:
        """(d,) difference of the averages in standard errors; 0 where undefined."""
        found = np.zeros(self.before.shape[1])
        for joint in range(len(found)):
            sides = (self.before[:, joint], self.after[:, joint])
            one, other = (side[~np.isnan(side), None] for side in sides)
            if min(len(one), len(other)) > 1:
                found[joint] = welch_z(one, other)[0]
        return found

    @property
    def abrupt(self) -> bool:
        """Whether the response of some joint jumps."""
        size = np.abs(self.effect)
        jumps = (size >= SMALL_EFFECT) & (self.z >= ABRUPT_Z)
        goes = (size >= GONE_EFFECT) & (self.z >= GONE_Z)
        return bool((jumps | goes).any())

    @property
    def changed(self) -> np.ndarray:
        """(d,) which joints change; none where the boundary is not abrupt."""
        large = np.abs(self.effect) >= SMALL_EFFECT
        return large & (self.z >= Z_LIMIT) & self.abrupt


@dataclass(frozen=True)
class Stretch:
    """Episodes [start, stop) between two abrupt changes."""

    start: int
    stop: int
    response: float
    """Median of the mean response."""
    joint: np.ndarray  # (d,), median K of each joint
    stale: bool
    """Whether some joint was at another level than it is now."""


def relative_change(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Change of K relative to the larger of both: -0.5 for a halving, 0.5 back."""
    larger = np.maximum(np.abs(before), np.abs(after))
    return (after - before) / np.where(larger > 0, larger, 1.0)


def boundaries_of(
    response: Response, segments: tuple[Segment, ...]
) -> tuple[ResponseChange, ...]:
    """Every boundary between segments with the response around it."""
    return tuple(
        ResponseChange(
            episode=after.start,
            before=response.joint[
                max(before.start, before.stop - WINDOW) : before.stop
            ],
            after=response.joint[after.start : min(after.stop, after.start + WINDOW)],
        )
        for before, after in itertools.pairwise(segments)
    )


def stretches_of(
    response: Response, changes: tuple[ResponseChange, ...]
) -> tuple[Stretch, ...]:
    """The stretches between the abrupt ones of some changes.

    A stretch is stale if, in some joint, the effects of the abrupt changes since then
    add up to more than half of that joint's largest effect. Drift between changes does
    not count.
    """
    abrupt = [change for change in changes if change.abrupt]
    edges = [0, *(change.episode for change in abrupt), len(response.mean)]
    steps = np.zeros((len(abrupt) + 1, response.joint.shape[1]))
    for step, change in zip(steps, abrupt, strict=False):
        step[change.changed] = change.effect[change.changed]
    to_now = np.abs(np.cumsum(steps[::-1], axis=0)[::-1])  # of each stretch and joint
    stale = (to_now > SAME * np.abs(steps).max(axis=0)).any(axis=1)
    return tuple(
        _stretch(response, start, stop, bool(differs))
        for (start, stop), differs in zip(itertools.pairwise(edges), stale, strict=True)
    )


def _stretch(response: Response, start: int, stop: int, stale: bool) -> Stretch:
    mean = joint_medians(response.mean[start:stop, None])
    joint = joint_medians(response.joint[start:stop])
    return Stretch(start, stop, float(mean[0]), joint, stale)
