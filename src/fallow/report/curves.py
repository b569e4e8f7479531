"""Evaluation return before and after the change, for each rule (the paper's Fig. 3)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fallow.core.results import ResultRow
from fallow.dynamics.conditions import Condition
from fallow.report.names import rule_name, rule_order
from fallow.study.summary import standard_error
from fallow.views.plotting import (
    INK,
    SHADE,
    legend_above,
    looks,
    one_axes,
    styled,
    thousands,
)

CURVE_HEIGHT_IN = 2.7
SHADES = {"gain": "reduced gain", "recurring": "reduced gain", "damage": "damaged"}
"""What the shaded intervals of a condition are called; others are `changed`."""


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
    """A curve for each rule, of one column of the rows of one cell.

    What is not there or no number is left out, as if the seed had no such row.
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


def returns(
    curves: Sequence[Curve],
    condition: Condition | None,
    label: str = "evaluation return",
    most: float | None = None,
) -> Figure:
    """Mean and s.e. band of each rule over branch frames, the change, the shading.

    A condition that is not known has neither. `label` names what the curves are,
    `most` its largest possible value.
    """
    with styled():
        figure, axes = one_axes(CURVE_HEIGHT_IN)
        last = max((int(c.branch_frame[-1]) for c in curves), default=0)
        look = looks([curve.rule for curve in curves])
        for curve in curves:
            style = look[curve.rule]
            band: Any = {"color": style.colour, "alpha": 0.18, "linewidth": 0}
            low, high = curve.mean - curve.error, curve.mean + curve.error
            axes.fill_between(curve.branch_frame, low, high, **band)
            name = rule_name(curve.rule)
            axes.plot(curve.branch_frame, curve.mean, label=name, **style.line())
        if condition is not None:
            draw_change(axes, condition, last)
        axes.set(xlabel="frames since the branch point", ylabel=label)
        axes.set(xlim=(0, last * 1.02 or 1), ylim=(0, most))
        axes.xaxis.set_major_formatter(FuncFormatter(thousands))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        legend_above(figure, axes, columns=3)
        return figure


def draw_change(axes: Axes, condition: Condition, last_frame: int) -> None:
    """A vertical line at the first change, and shades where the body is changed."""
    shades = shifted_intervals(condition, last_frame)
    for begin, end in shades:
        axes.axvspan(begin, end, color=SHADE, alpha=0.2, linewidth=0, zorder=0)
    first = condition.schedule.shift_frame
    if first is not None and first < last_frame:
        axes.axvline(first, color=INK, linewidth=1.2, label="first change")
    if shades:
        name = SHADES.get(condition.name, "changed")
        axes.fill_between([], [], color=SHADE, alpha=0.2, linewidth=0, label=name)
