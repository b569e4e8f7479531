"""How well the selector decides: agreement with what turned out better (Fig. 5b)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from fallow.report.drawing import FRESH, INK, SHADE, one_axes, styled

BAR_IN = 0.34
"""Height of one bar, with its gap."""


@dataclass(frozen=True)
class Agreement:
    """Decisions of one group of histories."""

    group: str
    n_right: int
    n: int


def agreement(groups: Sequence[Agreement]) -> Figure:
    """Bars of the share of right decisions, the fraction at the end of each."""
    total = Agreement("all", sum(g.n_right for g in groups), sum(g.n for g in groups))
    shown = [*groups, total] if len(groups) > 1 else list(groups)
    with styled():
        figure, axes = one_axes(0.75 + BAR_IN * len(shown))
        places = np.arange(len(shown))[::-1]
        shares = [g.n_right / g.n if g.n else 0.0 for g in shown]
        axes.barh(places, 1, color=SHADE, alpha=0.2, height=0.62)
        axes.barh(places, shares, color=FRESH, height=0.62)
        for place, one in zip(places, shown, strict=True):
            text = f"{one.n_right}/{one.n}"
            axes.text(1.03, place, text, va="center", color=INK, fontsize=9.5)
        axes.axvline(0.5, color=INK, linewidth=1, linestyle=(0, (2, 2)))
        axes.set_yticks(places, [one.group for one in shown])
        axes.set(xlim=(0, 1.16), xlabel="share of right decisions")
        axes.set_xticks([0, 0.5, 1])
        axes.grid(False)
        return figure
