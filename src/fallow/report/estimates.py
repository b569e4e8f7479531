"""How well the selector decides: agreement with what turned out better (Fig. 5b)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from fallow.report.names import condition_name
from fallow.study.estimator import Agreement
from fallow.views.plotting import (
    FRESH,
    INK,
    SHADE,
    one_axes,
    styled,
)

BAR_IN, REST_IN = 0.34, 0.75
"""Heights of one bar with its gap, and of what is below them."""


def agreement(bars: Sequence[Agreement]) -> Figure:
    """Bars of the share of right decisions, the fraction at the end of each."""
    with styled():
        figure, axes = one_axes(REST_IN + BAR_IN * len(bars))
        places = np.arange(len(bars))[::-1]
        shares = [bar.n_right / bar.n if bar.n else 0.0 for bar in bars]
        axes.barh(places, 1, color=SHADE, alpha=0.2, height=0.62)
        axes.barh(places, shares, color=FRESH, height=0.62)
        for place, bar in zip(places, bars, strict=True):
            text = f"{bar.n_right}/{bar.n}"
            axes.text(1.03, place, text, va="center", color=INK, fontsize=9.5)
        axes.axvline(0.5, color=INK, linewidth=1, linestyle=(0, (2, 2)))
        names = [
            "all changes" if b.condition is None else condition_name(b.condition)
            for b in bars
        ]
        axes.set_yticks(places, names)
        axes.set(xlim=(0, 1.16), xlabel="share of right decisions")
        axes.set_xticks([0, 0.5, 1])
        axes.grid(False)
        return figure


def _bar_name(bar: Agreement) -> str:
    return "all changes" if bar.condition is None else condition_name(bar.condition)
