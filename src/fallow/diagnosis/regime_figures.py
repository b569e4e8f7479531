"""The figures of tracked regimes: which one was in force when, and gains over time."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fallow.diagnosis.regimes import Regimes
from fallow.views.plotting import FRESH, HEIGHT_IN, INK, STALE, TRACE, one_axes, styled

ROW_IN = 0.22
"""Height of one regime."""


def regimes_figure(found: Regimes, true_changes: tuple[int, ...] = ()) -> Figure:
    """One row for each regime, filled where it was in force."""
    ids = sorted({regime for _, _, regime in found.spans})
    with styled():
        figure, axes = one_axes(0.9 + ROW_IN * len(ids))
        for start, stop, regime in found.spans:
            colour = FRESH if regime == found.in_force else STALE
            bar = [(start - 0.5, stop - start)]
            row = (ids.index(regime) - 0.4, 0.8)
            axes.broken_barh(bar, row, color=colour, alpha=0.6, linewidth=0)
        axes.set(title="regime in force", yticks=range(len(ids)), yticklabels=ids)
        axes.set_ylim(-0.6, len(ids) - 0.4)
        axes.grid(visible=False)
        _episodes(axes, found, true_changes)
        return figure


def gain_figure(found: Regimes, joint: int) -> Figure:
    """The gain of one actuator over episodes, with its 95 % interval.

    Nothing is drawn where no gains explain the regime.
    """
    with styled():
        figure, axes = one_axes(HEIGHT_IN)
        highest = 1.0
        for start, stop, label in found.spans:
            regime = found.regime(label)
            if not regime.explained:
                continue
            place = (start - 0.5, stop - 0.5)
            colour = FRESH if label == found.in_force else STALE
            ends = regime.low[joint], regime.high[joint]
            axes.fill_between(place, *ends, color=colour, alpha=0.2, linewidth=0)
            axes.hlines(regime.gain[joint], *place, color=TRACE, linewidth=2)
            highest = max(highest, float(ends[1]))
        axes.set(title=f"gain, {found.actuators[joint]}", ylim=(0, 1.1 * highest))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        _episodes(axes, found, ())
        return figure


def _episodes(axes: Axes, found: Regimes, true_changes: tuple[int, ...]) -> None:
    for change in found.changes:
        axes.axvline(change.since - 0.5, color=INK, linewidth=1)
    for at in true_changes:
        axes.axvline(at - 0.5, color=INK, linewidth=1.6, linestyle=(0, (1, 2)))
    axes.set(xlim=(-0.5, max(len(found.labels), 1) - 0.5), xlabel="episode")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def drawn_joints(found: Regimes, most: int) -> list[int]:
    """Which actuators to draw, in their order: of many, those that changed most.

    None where no gains explain any regime after the first.
    """
    if len(found.seen) > 1 and not any(one.explained for one in found.seen[1:]):
        return []
    gains = np.stack([regime.gain for regime in found.seen])
    order = np.argsort(-np.ptp(gains, axis=0), kind="stable")[:most]
    return sorted(order.tolist())
