"""Pictures of returns and of stale data over frames, one for each setting."""

from collections import defaultdict
from collections.abc import Sequence

from fallow.core.results import ResultRow
from fallow.dynamics.conditions import Condition
from fallow.dynamics.schedules import Drift
from fallow.report import curves
from fallow.report.names import condition_name
from fallow.report.saving import Picture, file_name
from fallow.study.results import StudyResults
from fallow.study.statistics import Setting


def return_pictures(study: StudyResults) -> list[Picture]:
    """Evaluation return over frames, one picture for each setting."""
    return [
        Picture(
            name=f"return-{file_name(title)}",
            title=title,
            caption=_return_caption(study.condition(setting.condition), found),
            figure=curves.returns(found, study.condition(setting.condition)),
        )
        for setting, title, rows in _by_setting(study)
        if (found := curves.curves_of(rows))
    ]


def stale_pictures(study: StudyResults) -> list[Picture]:
    """Stale share of what was drawn over frames, where something became stale."""
    found = []
    for setting, title, rows in _by_setting(study):
        drawn = curves.curves_of(rows, "stale_share")
        if not any(curve.mean.any() for curve in drawn):
            continue
        figure = curves.returns(
            drawn, study.condition(setting.condition), "stale share of draws", 1.0
        )
        found.append(Picture(f"stale-{file_name(title)}", title, "", figure))
    return found


def _by_setting(study: StudyResults) -> list[tuple[Setting, str, list[ResultRow]]]:
    """Settings in the order of the table, their titles and rows."""
    groups: dict[Setting, list[ResultRow]] = defaultdict(list)
    for row in study.rows:
        groups[study.setting(row)].append(row)
    settings = list(groups)
    return [(one, _named(one, settings), groups[one]) for one in settings]


def _named(setting: Setting, among: Sequence[Setting]) -> str:
    """A setting for people: its condition, and what else tells it from the others."""
    parts = [condition_name(setting.condition)]
    for name in ("task", "agent", "preset", "trunk_set"):
        own = getattr(setting, name)
        if own and len({getattr(other, name) for other in among}) > 1:
            parts.append(own)
    return ", ".join(parts)


def _return_caption(condition: Condition | None, found: Sequence[curves.Curve]) -> str:
    most = max(curve.n_seeds for curve in found)
    seeds = f"{most} seeds." if most > 1 else "One seed, so there are no bands."
    if condition is None:
        return seeds
    if condition.schedule.shift_frame is None:
        return f"{seeds} The body never changes."
    if isinstance(condition.schedule, Drift):
        return f"{seeds} From the line on the body drifts, so nothing is shaded."
    return seeds
