"""The theory beside the measured advantage: eqs (5) and (6) of the paper."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from fallow.report.figures.report_figure import ReportFigure
from fallow.report.theory import TheoryCase, fitted_noise, theory_cases
from fallow.study.results import StudyResults
from fallow.views.plotting import (
    AXIS,
    INK,
    PageFigure,
    legend_above,
    one_axes,
    styled,
)
from fallow.views.rule_styles import rule_colour

THEORY_HEIGHT_IN = 2.9
FEWEST_CASES = 3
"""The theory is not fitted to fewer."""
WON, LOST = rule_colour("recency"), rule_colour("passive")


def theory_figures(study: StudyResults) -> list[ReportFigure]:
    """Eqs (5) and (6) beside the measured advantage.

    None for fewer than three cases, or where all have one sign: any sigma would fit.
    """
    cases = theory_cases(study)
    signs = {case.advantage > 0 for case in cases}
    if len(cases) < FEWEST_CASES or len(signs) < 2:
        return []
    noise_std, n_agree = fitted_noise(cases)
    fitted = (
        f"The noise of one transition is the only fitted number ({noise_std:.3g}, in "
        "units of M); with it, theory and measurement have the same sign in "
        f"{n_agree} of {len(cases)} cases. Hollow marks: 0 is within two standard "
        "errors, or there is one seed."
    )
    return [
        ReportFigure(
            "theory-mismatch",
            "Where forgetting should pay",
            "Each mark is a condition: how much of the gain was lost, against how much "
            "staler the whole buffer is than its window. Above the line M* the paper's "
            f"theory, eq. (6), says to forget. {fitted}",
            mismatch(cases, noise_std),
        ),
        ReportFigure(
            "theory-advantage",
            "Theory against measurement",
            "ΔE, eq. (5), is the error of the full buffer less that of the window. "
            "Where the theory agrees with the measurement, marks are in the lower left "
            "or upper right.",
            against_advantage(cases, noise_std),
        ),
    ]


def mismatch(cases: Sequence[TheoryCase], noise_std: float) -> PageFigure:
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
            figure.add_hover(axes, *place, _hover_text(case))
        _key(axes)
        axes.set(xlim=(min(0, *[s.contrast for s in cases]) - 0.02, high))
        axes.set(ylim=(-0.04, max(s.offset for s in cases) * 1.2 + 0.05))
        axes.set(xlabel="staleness that the window removes, \u03c1² \u2212 \u03c1_w²")
        axes.set(ylabel="change M")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        legend_above(figure, axes, columns=2)
        return figure


def against_advantage(cases: Sequence[TheoryCase], noise_std: float) -> PageFigure:
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
            figure.add_hover(axes, x, s.advantage, _hover_text(s))
        _key(axes)
        axes.set(xlabel="ΔE / σ², in 10⁻⁴ (above 0: forgetting should pay)")
        axes.set(ylabel="Recency advantage D")
        axes.margins(0.12)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        legend_above(figure, axes, columns=2)
        return figure


def _hover_text(case: TheoryCase) -> str:
    error = "" if case.error is None else f" ± {case.error:.0f}"
    window = f"window {case.n_window:,}"
    return f"{case.label}, {window}: D = {case.advantage:+.0f}{error}"


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
