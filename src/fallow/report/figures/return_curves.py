"""Evaluation return over branch frames, one line for each rule (the paper's Fig. 3)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fallow.core.results import ResultRow
from fallow.dynamics.conditions import Condition
from fallow.dynamics.schedules import Drift
from fallow.report.cells import digits_for, number
from fallow.report.figures.report_figure import ReportFigure, file_name
from fallow.report.names import condition_name, rule_name, rule_order, setting_order
from fallow.study.results import StudyResults
from fallow.study.statistics import Setting
from fallow.study.summary import standard_error
from fallow.views.plotting import (
    INK,
    SHADE,
    PageFigure,
    legend_above,
    one_axes,
    styled,
    thousands,
)
from fallow.views.rule_styles import rule_styles

CURVE_HEIGHT_IN = 2.7
HEADROOM = 1.06
"""Of the highest value, where the vertical axis ends."""
CHANGED = "changed body"
"""The label of the shaded intervals."""


@dataclass(frozen=True)
class Curve:
    """Returns of one rule at m evaluations, over seeds."""

    rule: str
    branch_frame: np.ndarray  # (m,)
    mean: np.ndarray  # (m,), over seeds
    error: np.ndarray  # (m,), standard error; NaN where there is one seed
    n_seeds: int
    """The most that an evaluation has."""


def curves_of(rows: Sequence[ResultRow], value: str = "mean_return") -> list[Curve]:
    """A curve for each rule, of one column of the rows of one setting.

    Missing values and NaN are left out.
    """
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        number = getattr(row, value)
        if number is not None and np.isfinite(number):
            found[row.rule][row.branch_frame].append(number)
    return [_curve(rule, found[rule]) for rule in sorted(found, key=rule_order)]


def _curve(rule: str, by_frame: dict[int, list[float]]) -> Curve:
    frames = sorted(by_frame)
    over_seeds = [np.array(by_frame[frame]) for frame in frames]
    errors = [standard_error(values) for values in over_seeds]
    return Curve(
        rule=rule,
        branch_frame=np.array(frames),
        mean=np.array([values.mean() for values in over_seeds]),
        error=np.array([np.nan if error is None else error for error in errors]),
        n_seeds=max(len(values) for values in by_frame.values()),
    )


def shifted_intervals(condition: Condition, until_frame: int) -> list[tuple[int, int]]:
    """Frames [begin, end) since the branch point in which the body is not the original.

    Empty for a condition without regimes, whose level drifts.
    """
    schedule, frame = condition.schedule, 0
    found = []
    while frame < until_frame:
        end = int(min(schedule.segment_end(frame), until_frame))
        if schedule.regime(schedule.segment(frame)):
            found.append((frame, end))
        frame = end
    return found


def curve_figure(
    curves: Sequence[Curve],
    condition: Condition | None,
    label: str = "evaluation return",
    most: float | None = None,
) -> PageFigure:
    """Mean and s.e. band of each rule over branch frames, the change, the shading.

    An unknown condition has neither. `label` names the value on the vertical axis,
    `most` is its largest possible value.
    """
    with styled():
        figure, axes = one_axes(CURVE_HEIGHT_IN)
        last = max((int(c.branch_frame[-1]) for c in curves), default=0)
        styles = rule_styles([curve.rule for curve in curves])
        for curve in curves:
            style = styles[curve.rule]
            band: Any = {"color": style.colour, "alpha": 0.18, "linewidth": 0}
            low, high = curve.mean - curve.error, curve.mean + curve.error
            axes.fill_between(curve.branch_frame, low, high, **band)
            name = rule_name(curve.rule)
            axes.plot(curve.branch_frame, curve.mean, label=name, **style.line())
            for at, mean, text in _hover_texts(curve):
                figure.add_hover(axes, at, mean, text)
        if condition is not None:
            draw_change(axes, condition, last)
        axes.set(xlabel="frames since the branch point", ylabel=label)
        axes.set(xlim=(0, last * 1.02 or 1), ylim=(0, most or _top(curves)))
        axes.xaxis.set_major_formatter(FuncFormatter(thousands))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        legend_above(figure, axes, columns=3)
        return figure


def _top(curves: Sequence[Curve]) -> float | None:
    """Where an axis ends, so that no mark is cut; None where nothing is above 0."""
    ends = [c.mean + np.nan_to_num(c.error) for c in curves if len(c.mean)]
    highest = max((float(end.max()) for end in ends), default=0.0)
    return HEADROOM * highest if highest > 0 else None


def _hover_texts(curve: Curve) -> list[tuple[int, float, str]]:
    """(branch frame, mean, text) of every point."""
    digits = digits_for(curve.mean.tolist())
    found = []
    for at, mean, error in zip(
        curve.branch_frame, curve.mean, curve.error, strict=True
    ):
        size = "" if np.isnan(error) else f" ± {number(error, digits)}"
        value = f"{number(mean, digits)}{size}"
        found.append((at, mean, f"{rule_name(curve.rule)}, frame {at:,}: {value}"))
    return found


def draw_change(axes: Axes, condition: Condition, last_frame: int) -> None:
    """A vertical line at the first change, and shades where the body is changed."""
    shades = shifted_intervals(condition, last_frame)
    for begin, end in shades:
        axes.axvspan(begin, end, color=SHADE, alpha=0.2, linewidth=0, zorder=0)
    first = condition.schedule.shift_frame
    if first is not None and first < last_frame:
        axes.axvline(first, color=INK, linewidth=1.2, label="first change")
    if shades:
        style: Any = {"color": SHADE, "alpha": 0.2, "linewidth": 0}
        axes.fill_between([], [], label=CHANGED, **style)


def return_figures(study: StudyResults) -> list[ReportFigure]:
    """Evaluation return over frames, one picture for each setting."""
    return [
        ReportFigure(
            name=f"return-{file_name(title)}",
            title=title,
            caption=_return_caption(study.condition(setting.condition), found),
            figure=curve_figure(found, study.condition(setting.condition)),
        )
        for setting, title, rows in rows_by_setting(study)
        if (found := curves_of(rows))
    ]


def rows_by_setting(study: StudyResults) -> list[tuple[Setting, str, list[ResultRow]]]:
    """(setting, title, rows) in the order of the table."""
    groups: dict[Setting, list[ResultRow]] = defaultdict(list)
    for row in study.rows:
        groups[study.setting(row)].append(row)
    settings = sorted(groups, key=setting_order)
    return [(one, _named(one, settings), groups[one]) for one in settings]


def _named(setting: Setting, among: Sequence[Setting]) -> str:
    """Its condition, and all else that differs among the settings of the study."""
    parts = [condition_name(setting.condition)]
    for name in ("task", "agent", "preset", "trunk_set"):
        value = getattr(setting, name)
        if value and len({getattr(other, name) for other in among}) > 1:
            parts.append(value)
    return ", ".join(parts)


def _return_caption(condition: Condition | None, found: Sequence[Curve]) -> str:
    most = max(curve.n_seeds for curve in found)
    seeds = f"{most} seeds." if most > 1 else "One seed, so there are no bands."
    if condition is None:
        return seeds
    if condition.schedule.shift_frame is None:
        return f"{seeds} The body does not change."
    if isinstance(condition.schedule, Drift):
        return f"{seeds} The body drifts from the vertical line on."
    return seeds
