"""The response of each actuator before and after its last abrupt change."""

from dataclasses import dataclass

import numpy as np

from fallow.diagnosis.actuator import Response
from fallow.diagnosis.changes import ResponseChange, relative_change
from fallow.diagnosis.loss import interval_of, magnitude, resampled_magnitudes


@dataclass(frozen=True)
class JointResponse:
    """One actuator: K before and after a change, and the share of it that was lost."""

    index: int
    name: str
    episode: int | None
    """First episode after the actuator's last abrupt change; of the log's last one if
    only other actuators changed, None if none did."""
    before: float | None
    """Median K before that episode, back to the actuator's abrupt change before."""
    now: float | None
    """Median K since that episode."""
    lost: float | None
    """1 - now / before; negative if the response grew, above 1 if its sign changed.
    None if the response before is so small that resamples disagree on its sign."""
    interval: tuple[float, float] | None
    """Resampling interval of `lost`: of the response, not of the gain."""
    changed: bool
    """Whether this actuator's response changed abruptly at that episode."""

    @property
    def effect(self) -> float:
        """Change of K relative to the larger of both, in [-2, 2]; 0 without a change.

        Unlike `lost` it is as large for a response that comes back as for one that
        goes.
        """
        if self.before is None or self.now is None:
            return 0.0
        return float(relative_change(np.array(self.before), np.array(self.now)))

    @property
    def label(self) -> str:
        """`actuator 3 (left_hip)`."""
        return f"actuator {self.index} ({self.name})"


def joints_of(
    response: Response, changes: tuple[ResponseChange, ...], names: tuple[str, ...]
) -> tuple[JointResponse, ...]:
    """One row for each actuator."""
    abrupt = [change for change in changes if change.abrupt]
    rows = []
    for index, name in enumerate(names):
        of_joint = [change.episode for change in abrupt if change.changed[index]]
        places = of_joint or [change.episode for change in abrupt[-1:]]
        *_, start, at = [0, 0, *places]
        before, now = response.joint[start:at, index], response.joint[at:, index]
        before, now = before[~np.isnan(before)], now[~np.isnan(now)]
        interval = interval_of(resampled_magnitudes(now, before))
        rows.append(
            JointResponse(
                index=index,
                name=name,
                episode=at if abrupt else None,
                before=_median(before),
                now=_median(now),
                lost=None if interval is None else magnitude(now, before),
                interval=interval,
                changed=bool(of_joint),
            )
        )
    return tuple(rows)


def _median(values: np.ndarray) -> float | None:
    return float(np.median(values)) if len(values) else None
