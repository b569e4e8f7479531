"""How often the selector chose the better rule (the paper's Fig. 5b)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from fallow.report.figures.report_figure import ReportFigure
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


def agreement_figures(bars: Sequence[Agreement]) -> list[ReportFigure]:
    """The bars, where any decision was right or wrong."""
    if not any(bar.n for bar in bars):
        return []
    caption = (
        "Share of histories in which the selector chose the rule with the higher "
        "return of that seed. The dotted line is chance. Fractions count decisions. "
        "The paper has 19 of 24 in all and 3 of 5 at g = 0.5."
    )
    title = "Did the selector choose the better rule?"
    figure = agreement_bars(bars)
    return [ReportFigure("selector-agreement", title, caption, figure)]


def agreement_bars(bars: Sequence[Agreement]) -> Figure:
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
        axes.set_yticks(places, [_bar_name(bar) for bar in bars])
        axes.set(xlim=(0, 1.16), xlabel="share of right decisions")
        axes.set_xticks([0, 0.5, 1])
        axes.grid(False)
        return figure


def _bar_name(bar: Agreement) -> str:
    return "all changes" if bar.condition is None else condition_name(bar.condition)
