"""The theory beside the measurements: eqs (5) and (6) of the paper.

A window of w transitions pays, in theory, where the change M exceeds M*, that is where
dE = (rho^2 - rho_w^2) M^2 - sigma^2 (1/w - 1/N) is above 0. The stale shares rho (of
all N transitions) and rho_w (of the window) follow from the schedule, M is the share of
the mean gain that was lost. sigma, the noise of one transition, is not known: it is the
one number that is fitted, such that the sign of dE agrees with that of the measured
advantage as often as it can.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fallow.dynamics.conditions import Condition
from fallow.dynamics.schedules import Drift, Recurring
from fallow.dynamics.shifts import Damage, Gain
from fallow.dynamics.tasks import ACTION_REPEAT, TASKS
from fallow.replay import tradeoff
from fallow.report.names import recency_rules
from fallow.study.results import StudyResults
from fallow.study.statistics import difference
from fallow.study.sweeps import window_of
from fallow.views.plotting import thousands


@dataclass(frozen=True)
class Shares:
    """Stale shares of a full buffer of N transitions and its newest w, at one frame."""

    rho: float
    rho_w: float
    n_window: int
    n_full: int


@dataclass(frozen=True)
class TheoryCase:
    """One condition and window: what the theory reads, and what was measured."""

    label: str
    offset: float
    """M, the share of the mean gain that was lost."""
    shares: tuple[Shares, ...]
    """At each evaluation that the advantage is a mean of."""
    advantage: float
    """D, the measured Recency advantage."""
    error: float | None
    """Its standard error; None: one seed."""

    @property
    def n_window(self) -> int:
        """Of the window when it is full."""
        return max(s.n_window for s in self.shares)

    def delta_error(self, noise_std: float) -> float:
        """Eq. (5) averaged over the evaluations."""
        values = [
            tradeoff.delta_error(
                s.rho, s.rho_w, self.offset, noise_std, s.n_window, s.n_full
            )
            for s in self.shares
        ]
        return float(np.mean(np.array(values)))

    @property
    def contrast(self) -> float:
        """Mean rho^2 - rho_w^2."""
        return float(np.mean([s.rho**2 - s.rho_w**2 for s in self.shares]))

    @property
    def cost(self) -> float:
        """Mean 1/w - 1/N, an inverse number of transitions."""
        return float(np.mean([1 / s.n_window - 1 / s.n_full for s in self.shares]))

    @property
    def noise_limit(self) -> float:
        """The sigma at which dE is 0; below it forgetting pays, if it ever does."""
        if self.contrast <= 0 or self.cost <= 0:
            return 0.0
        return float(abs(self.offset) * np.sqrt(self.contrast / self.cost))


def stale_shares(
    condition: Condition, trunk_frames: int, branch_frame: int, window_transitions: int
) -> Shares:
    """Stale shares at a branch frame, from the schedule alone.

    Every frame since the trunk's beginning stored its share of a transition; those
    before the branch point are of the original body.
    """
    schedule = condition.schedule
    cuts, frame = [-trunk_frames], 0
    while frame < branch_frame:
        cuts.append(frame)
        frame = int(min(schedule.segment_end(frame), branch_frame))
    cuts.append(branch_frame)
    regimes = [schedule.regime(schedule.segment(max(c, 0))) or 0 for c in cuts]
    present = regimes[-1]
    begin = branch_frame - window_transitions * ACTION_REPEAT
    stale, stale_w = 0, 0
    for (low, high), regime in zip(itertools.pairwise(cuts), regimes, strict=False):
        if regime != present:
            stale += high - low
            stale_w += max(0, high - max(low, begin))
    n_full = (trunk_frames + branch_frame) // ACTION_REPEAT
    n_window = min(window_transitions, n_full)
    inside = n_window * ACTION_REPEAT
    rho = stale / (trunk_frames + branch_frame)
    return Shares(rho, stale_w / inside, n_window, n_full)


def offset_of(condition: Condition, task: str) -> float | None:
    """The share of the mean gain that a condition takes; None: it changes no gain."""
    shift = condition.shift
    if shift is None:
        return 0.0
    if not isinstance(shift, Gain | Damage) or isinstance(condition.schedule, Drift):
        return None
    if task not in TASKS:
        return None
    n_actuators = len(TASKS[task].body.actuator_velocity)
    return float(1 - shift.gains(n_actuators).mean())


def fitted_noise(cases: Sequence[TheoryCase]) -> tuple[float, int]:
    """The sigma under which the signs of dE and D agree most often, and how often.

    Between two limits no sign changes: of the candidates there, the geometric middle of
    the widest best gap is taken.
    """
    limits = sorted({s.noise_limit for s in cases if s.noise_limit > 0})
    if not limits:
        return 1.0, sum(s.advantage < 0 for s in cases)
    edges = [limits[0] / 2, *limits, limits[-1] * 2]
    gaps = list(itertools.pairwise(edges))

    def agreeing(noise_std: float) -> int:
        return sum((noise_std < s.noise_limit) == (s.advantage > 0) for s in cases)

    middles = [float(np.sqrt(low * high)) for low, high in gaps]
    widths = [high / low for low, high in gaps]
    best = max(range(len(gaps)), key=lambda i: (agreeing(middles[i]), widths[i], -i))
    return middles[best], agreeing(middles[best])


def theory_cases(study: StudyResults) -> list[TheoryCase]:
    """All conditions that change gains, with every window of recency."""
    returns, found = study.returns, []
    for setting in returns.settings:
        condition, frames = study.condition(setting.condition), study.return_frames
        if condition is None or not frames:
            continue
        offset = offset_of(condition, setting.task)
        for rule in recency_rules(study.returns, [setting]):
            gap = difference(returns, setting, rule)
            if offset is None or gap.mean is None:
                continue
            shares = tuple(
                stale_shares(condition, study.trunk_frames, at, window_of(rule) or 0)
                for at in frames
            )
            found.append(
                TheoryCase(_short(condition), offset, shares, gap.mean, gap.se)
            )
    return found


def _short(condition: Condition) -> str:
    """A short label for a condition, for a crowded figure."""
    if isinstance(condition.schedule, Recurring):
        return thousands(condition.schedule.period_frames)
    if condition.name == "gain" and isinstance(condition.shift, Gain):
        return f"g={condition.shift.g}"
    return condition.name
