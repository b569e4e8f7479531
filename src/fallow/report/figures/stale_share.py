"""Share of sampled steps from another regime than the present, for each rule."""

from fallow.report.figures.report_figure import ReportFigure, file_name
from fallow.report.figures.return_curves import (
    curve_figure,
    curves_of,
    rows_by_setting,
)
from fallow.study.results import StudyResults


def stale_figures(study: StudyResults) -> list[ReportFigure]:
    """Stale share over branch frames, for settings in which data became stale."""
    found = []
    for setting, title, rows in rows_by_setting(study):
        curves = curves_of(rows, "stale_share")
        if not any(curve.mean.any() for curve in curves):
            continue
        figure = curve_figure(
            curves, study.condition(setting.condition), "stale share of samples", 1.0
        )
        found.append(ReportFigure(f"stale-{file_name(title)}", title, "", figure))
    return found
