"""The Recency advantage against recurrence, gain and window (the paper's Fig. 4).

A point is a paired mean over seeds, D = J_recency - J_passive; above 0 Recency wins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fallow.study.sweeps import PERMANENT
from fallow.views.plotting import (
    AXIS,
    INK,
    RULE_LOOKS,
    Look,
    legend_above,
    one_axes,
    styled,
    thousands,
)

SWEEP_HEIGHT_IN = 2.7
SERIES = (
    Look(RULE_LOOKS["recency"].colour, "-", "o"),
    Look(RULE_LOOKS["passive"].colour, "--", "D", hollow=True),
    Look(RULE_LOOKS["graded"].colour, "-.", "^"),
    Look(RULE_LOOKS["reset"].colour, ":", "s", hollow=True),
)
AUC_LOOK = Look(AXIS, (0, (1, 1.2)), "x")


@dataclass(frozen=True)
class Point:
    """The advantage at one setting of what is varied."""

    x: float
    """A period in frames, `PERMANENT`, or a gain."""
    mean: float
    error: float | None
    """Standard error over seeds; None: one seed."""
    auc: float | None = None
    """Age–staleness AUC, averaged over evaluations and seeds."""


Series = Mapping[str, Sequence[Point]]
"""Points by what they have in common: a window, a set of trunks."""


def by_period(series: Series) -> Figure:
    """Against the recurrence period, with the age–staleness AUC on a second axis."""
    with styled():
        figure, axes = one_axes(SWEEP_HEIGHT_IN)
        places = _period_places(series)
        _draw(axes, series, places)
        second = axes.twinx()
        second.spines["right"].set_visible(True)
        second.grid(False)
        points = [point for points in series.values() for point in points]
        seen = {p.x: p.auc for p in points if p.auc is not None}
        known = [x for x in places if x in seen]
        second.plot(
            [places[x] for x in known],
            [seen[x] for x in known],
            **AUC_LOOK.line(),
        )
        second.set(ylim=(0.45, 1.02), ylabel="age–staleness AUC")
        _name_periods(axes, places)
        if known:
            axes.plot([], [], label="AUC (right axis)", **AUC_LOOK.line())
        legend_above(figure, axes)
        return figure


def by_gain(series: Series) -> Figure:
    """Against the gain left after a permanent change; larger changes to the right."""
    with styled():
        figure, axes = one_axes(SWEEP_HEIGHT_IN)
        gains = sorted({p.x for points in series.values() for p in points})
        _draw(axes, series, {gain: gain for gain in gains})
        axes.set_xlabel("gain g left after the change")
        axes.set_xticks(gains, [f"{gain:g}" for gain in gains])
        axes.invert_xaxis()
        if len(series) > 1:
            legend_above(figure, axes)
        return figure


def by_window(series: Series) -> Figure:
    """Against the recurrence period, one line for each window."""
    with styled():
        figure, axes = one_axes(SWEEP_HEIGHT_IN)
        places = _period_places(series)
        _draw(axes, series, places)
        _name_periods(axes, places)
        legend_above(figure, axes)
        return figure


def _draw(axes: Axes, series: Series, places: Mapping[float, float]) -> None:
    axes.axhline(0, color=INK, linewidth=1)
    for (name, points), look in zip(series.items(), SERIES * len(series), strict=False):
        ordered = sorted(points, key=lambda p: places[p.x])
        axes.errorbar(
            [places[p.x] for p in ordered],
            [p.mean for p in ordered],
            [p.error or 0.0 for p in ordered],
            label=name,
            capsize=2.5,
            elinewidth=1.2,
            **look.line(),
        )
    axes.set_ylabel("Recency advantage D")
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.margins(x=0.08, y=0.12)


def _period_places(series: Series) -> dict[float, float]:
    """Periods side by side, evenly, the permanent change last."""
    periods = sorted({p.x for points in series.values() for p in points})
    return {period: place for place, period in enumerate(periods)}


def _name_periods(axes: Axes, places: Mapping[float, float]) -> None:
    names = ["never" if x == PERMANENT else thousands(x) for x in places]
    axes.set_xticks(list(places.values()), names)
    axes.set_xlabel("frames until the original body returns")
