"""The figures of a diagnosis: response traces, and the plane of both gates."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fallow.diagnosis.changes import Stretch
from fallow.diagnosis.decision import AUC_GATE, MAGNITUDE_GATE, Decision
from fallow.diagnosis.segments import Segment
from fallow.diagnosis.truth import Truth
from fallow.views.plotting import (
    AXIS,
    FRESH,
    HEIGHT_IN,
    INK,
    STALE,
    TRACE,
    WIDTH_IN,
    styled,
)

MOST_POINTS = 2000
"""Episodes drawn one by one; longer series are thinned to the ends of short spans."""


def trace(
    decision: Decision,
    truth: Truth | None,
    values: np.ndarray,
    title: str,
    n_hidden: int = 0,
) -> Figure:
    """One response series (k,) over episodes, with the selector's segments.

    The first `n_hidden` episodes are read and not shown.
    """
    return spans_trace(decision.segments, truth, values, title, n_hidden)


def spans_trace(
    spans: Sequence[Segment | Stretch],
    truth: Truth | None,
    values: np.ndarray,
    title: str,
    n_hidden: int = 0,
) -> Figure:
    """The same with any spans of episodes; each but the first begins with a change."""
    with styled():
        figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN))
        axes = figure.add_subplot()
        for span in spans:
            place = (span.start - 0.5, span.stop - 0.5)
            colour = STALE if span.stale else FRESH
            axes.axvspan(*place, color=colour, alpha=0.13, linewidth=0)
            inside = values[span.start : span.stop]
            if not np.isnan(inside).all():
                axes.hlines(np.nanmedian(inside), *place, color=colour, linewidth=2)
        shown = np.where(np.arange(len(values)) < n_hidden, np.nan, values)
        axes.plot(*_thinned(shown), color=TRACE, linewidth=1)
        for span in spans[1:]:
            axes.axvline(span.start - 0.5, color=INK, linewidth=1)
        for change in truth.change_points if truth else ():
            axes.axvline(change - 0.5, color=INK, linewidth=1.6, linestyle=(0, (1, 2)))
        axes.set(title=title, xlim=(n_hidden - 0.5, len(values) - 0.5))
        axes.set_xlabel("episode")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        return figure


def plane(decisions: Sequence[Decision]) -> Figure:
    """AUC against magnitude with both gates, and where each log lies."""
    with styled():
        figure = Figure(figsize=(WIDTH_IN, WIDTH_IN * 0.72))
        axes = figure.add_subplot()
        low, high = _range(decisions)
        axes.fill_between(
            [AUC_GATE, 1.02], MAGNITUDE_GATE, high, color=STALE, alpha=0.13, linewidth=0
        )
        axes.axvline(AUC_GATE, color=INK, linewidth=1, linestyle="--")
        axes.axhline(MAGNITUDE_GATE, color=INK, linewidth=1, linestyle="--")
        label: dict[str, Any] = {"color": AXIS, "fontsize": 9, "ha": "center"}
        middle = (AUC_GATE + 1.02) / 2
        axes.text(middle, high - 0.03 * (high - low), "discard", va="top", **label)
        axes.text(0.4, low + 0.03 * (high - low), "keep", va="bottom", **label)
        for decision in decisions:
            _point(axes, decision, low, high)
        axes.set(xlim=(-0.02, 1.02), ylim=(low, high), xlabel="age–staleness AUC")
        axes.set(ylabel="magnitude m̂", title="the paper's selector")
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        return figure


def _point(axes: Axes, decision: Decision, low: float, high: float) -> None:
    auc, size = decision.auc.value, decision.magnitude.value
    if auc is None or size is None:
        return
    colour = STALE if decision.discard else FRESH
    if decision.interval is not None:
        ends = np.clip(decision.interval, low, high)
        axes.vlines(auc, *ends, color=colour, linewidth=1.5)
    marker = "o" if low <= size <= high else ("v" if size < low else "^")
    place = float(np.clip(size, low + 0.02, high - 0.02))
    axes.plot(auc, place, marker, color=colour, markersize=7, clip_on=False)


def _range(decisions: Sequence[Decision]) -> tuple[float, float]:
    """Limits of the magnitude: 0 to 1, and down to -1 where a response grew."""
    sizes = [decision.magnitude.value for decision in decisions]
    smallest = min((size for size in sizes if size is not None), default=0.0)
    return (-1.0 if smallest < -0.1 else -0.1), 1.05


def _thinned(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places and values to draw; of a long series, each span's smallest and largest."""
    episodes = np.arange(len(values))
    if len(values) <= MOST_POINTS:
        return episodes, values
    spans = np.array_split(episodes, MOST_POINTS // 2)
    filled = np.where(np.isnan(values), np.nanmedian(values), values)
    ends = [{int(s[filled[s].argmin()]), int(s[filled[s].argmax()])} for s in spans]
    kept = np.array(sorted(set().union(*ends)))
    return kept, values[kept]
