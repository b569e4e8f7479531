"""Actuator response: the change of velocity per unit of action, by episode and joint.

    K[e, j] = sum_t (v[j, t + 1] - v[j, t]) a[j, t] / (sum_t a[j, t]^2 + eps)    eq. (7)

K measures response, not physical gain: it also depends on contacts, on the states
visited and on the policy.
"""

from dataclasses import dataclass

import numpy as np

from fallow.core.errors import FallowError, unknown
from fallow.logs.log import Log

VARIANTS = ("joint", "mean", "large")
EPSILON = 1e-8
"""Squared action units. The paper gives no value; an episode with no more has no K."""
LARGE_ACTION = 0.5
"""`large` reads only actions beyond this; actions are in [-1, 1]."""


@dataclass(frozen=True)
class Response:
    """The response of k episodes, and the series that is segmented."""

    variant: str
    series: np.ndarray  # (k, channels); a row with NaN has no response
    channels: tuple[str, ...]
    mean: np.ndarray  # (k,), over joints; m_hat uses it
    joint: np.ndarray  # (k, d), of every actuator
    silent: tuple[str, ...] = ()
    """Actuators that are never commanded; they have no channel."""

    @property
    def heard(self) -> np.ndarray:
        """(k,) which episodes have a response in every channel."""
        return ~np.isnan(self.series).any(axis=1)


def joint_response(log: Log, beyond: float = 0.0) -> np.ndarray:
    """Eq. (7) for all episodes and joints at once: (k, d), NaN without action energy.

    Only actions with |a| > `beyond` count.
    """
    action = log.action.astype(np.float64)
    if beyond > 0:
        action[np.abs(action) <= beyond] = 0.0
    starts = np.cumsum(log.n_transitions) - log.n_transitions
    change = log.velocity_change()
    pull = np.add.reduceat(
        np.multiply(change, action, dtype=np.float64), starts, axis=0
    )
    energy = np.add.reduceat(np.square(action, out=action), starts, axis=0)
    response = pull / (energy + EPSILON)
    response[energy <= EPSILON] = np.nan
    return response


def response_of(log: Log, variant: str = "joint") -> Response:
    """The series of one variant: each joint, their mean, or that of large actions.

    A joint without energy in an episode is left out of that episode's mean.

    Raises:
        FallowError: no action was ever taken.
    """
    if variant not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    joint = joint_response(log, beyond=LARGE_ACTION if variant == "large" else 0.0)
    silent = np.isnan(joint).all(axis=0)
    if silent.all():
        limit = f" beyond {LARGE_ACTION:g} in size" if variant == "large" else ""
        raise FallowError(
            f"{log.source}: no episode has an action{limit}, so nothing can be said of "
            "the response to it; choose other action columns with --action"
        )
    heard = [n for n, quiet in zip(log.actuators, silent, strict=True) if not quiet]
    mean = _mean_over_joints(joint)
    return Response(
        variant=variant,
        series=joint[:, ~silent] if variant == "joint" else mean[:, None],
        channels=tuple(heard) if variant == "joint" else (f"{variant} over joints",),
        mean=mean,
        joint=joint,
        silent=tuple(n for n in log.actuators if n not in heard),
    )


def joint_medians(joint: np.ndarray) -> np.ndarray:
    """(d,) medians of responses (k, d) that are not NaN; NaN where all are."""
    defined = [column[~np.isnan(column)] for column in joint.T]
    return np.array([np.median(c) if len(c) else np.nan for c in defined])


def _mean_over_joints(joint: np.ndarray) -> np.ndarray:
    """(k,) NaN only where no joint has a response."""
    n_heard = (~np.isnan(joint)).sum(axis=1)
    total = np.nansum(joint, axis=1)
    return np.where(n_heard > 0, total / np.maximum(n_heard, 1), np.nan)
