"""The theory beside what was measured: eqs (5) and (6) of the paper.

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
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fallow.dynamics.conditions import Condition
from fallow.dynamics.schedules import Drift
from fallow.dynamics.shifts import Damage, Gain
from fallow.dynamics.tasks import ACTION_REPEAT, TASKS
from fallow.replay import tradeoff
from fallow.views.plotting import (
    AXIS,
    INK,
    RULE_LOOKS,
    legend_above,
    one_axes,
    styled,
)

THEORY_HEIGHT_IN = 2.9
WON, LOST = RULE_LOOKS["recency"].colour, RULE_LOOKS["passive"].colour


@dataclass(frozen=True)
class Shares:
    """What a full buffer of N transitions and its newest w hold at one frame."""

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


def mismatch(cases: Sequence[TheoryCase], noise_std: float) -> Figure:
    """Change M against staleness, with M*: above the line forgetting should pay."""
    with styled():
        figure, axes = one_axes(THEORY_HEIGHT_IN)
        high = max([s.contrast for s in cases] + [0.1]) * 1.12
        contrast = np.linspace(high / 200, high, 200)
        for cost, dash in zip(_costs(cases), ("-", "--", ":", "-."), strict=False):
            star = noise_std * np.sqrt(cost / contrast)
            name = f"M*, window {_window(cases, cost)}"
            axes.plot(contrast, star, color=INK, linewidth=1.3, linestyle=dash)
            axes.plot([], [], color=INK, linewidth=1.3, linestyle=dash, label=name)
        for case in cases:
            axes.plot(case.contrast, case.offset, **_mark(case))
            place = (case.contrast, case.offset)
            small: Any = {"fontsize": 7, "color": AXIS, "textcoords": "offset points"}
            axes.annotate(case.label, place, (1, 6), rotation=50, **small)
        _key(axes)
        axes.set(xlim=(min(0, *[s.contrast for s in cases]) - 0.02, high))
        axes.set(ylim=(-0.04, max(s.offset for s in cases) * 1.2 + 0.05))
        axes.set(xlabel="staleness that the window removes, \u03c1² \u2212 \u03c1_w²")
        axes.set(ylabel="change M")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        legend_above(figure, axes, columns=2)
        return figure


def against_advantage(cases: Sequence[TheoryCase], noise_std: float) -> Figure:
    """The theory's dE, in units of sigma^2, against the measured advantage."""
    with styled():
        figure, axes = one_axes(THEORY_HEIGHT_IN)
        axes.axhline(0, color=INK, linewidth=1)
        axes.axvline(0, color=INK, linewidth=1)
        for s in cases:
            x = s.delta_error(noise_std) / noise_std**2 * 1e4
            axes.errorbar(
                x, s.advantage, s.error or 0.0, ecolor=AXIS, capsize=2, **_mark(s)
            )
        _key(axes)
        axes.set(xlabel="ΔE / σ², in 10⁻⁴ (above 0: forgetting should pay)")
        axes.set(ylabel="Recency advantage D")
        axes.margins(0.12)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        legend_above(figure, axes, columns=2)
        return figure


def _mark(case: TheoryCase) -> dict[str, Any]:
    """Up or down for who won; hollow where twice the standard error holds 0."""
    won = case.advantage > 0
    unsure = case.error is None or abs(case.advantage) < 2 * case.error
    colour = WON if won else LOST
    return {
        "marker": "^" if won else "v",
        "linestyle": "none",
        "color": colour,
        "markersize": 8,
        "markerfacecolor": "none" if unsure else colour,
    }


def _key(axes: Any) -> None:
    for name, marker, colour in (("Recency won", "^", WON), ("Passive won", "v", LOST)):
        style = {"marker": marker, "color": colour, "linestyle": "none"}
        axes.plot([], [], label=name, **style)


def _costs(cases: Sequence[TheoryCase]) -> list[float]:
    """One for each window, the mean over its cases."""
    by_window: dict[int, list[float]] = {}
    for case in cases:
        by_window.setdefault(case.n_window, []).append(case.cost)
    return [float(np.mean(by_window[window])) for window in sorted(by_window)]


def _window(cases: Sequence[TheoryCase], cost: float) -> str:
    windows = sorted({case.n_window for case in cases})
    return f"{windows[_costs(cases).index(cost)]:,}"
