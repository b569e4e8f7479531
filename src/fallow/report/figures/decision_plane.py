"""AUC against magnitude of every history, and where the selector discards old data."""

from collections.abc import Sequence

from fallow.diagnosis import figures
from fallow.report.figures.report_figure import ReportFigure
from fallow.study.estimator import SelectorResult


def plane_figures(evaluated: Sequence[SelectorResult]) -> list[ReportFigure]:
    """The decision plane, where a history has both estimates."""
    decisions = [one.decision for one in evaluated]
    placed = [d for d in decisions if None not in (d.auc.value, d.magnitude.value)]
    if not placed:
        return []
    caption = (
        f"Each of {len(placed)} marks is a history: how well age separates stale data "
        "from fresh, against how much of the response was lost, estimated from actions "
        "and velocities alone. In the shaded corner the selector discards old data. "
        f"{len(decisions) - len(placed)} histories have no stale data and no mark."
    )
    figure = figures.plane(decisions)
    return [ReportFigure("decision-plane", "Decision plane", caption, figure)]
