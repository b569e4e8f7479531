"""The pictures that a table of results holds, with captions that say how to read them.

Each function returns those for which there is enough; none is drawn of too little.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from fallow.dynamics.conditions import Condition
from fallow.dynamics.schedules import Drift, Permanent, Recurring
from fallow.dynamics.shifts import Gain
from fallow.replay.rules import Rule
from fallow.replay.rules.recency import Recency
from fallow.report import curves, sweeps, theory
from fallow.report.drawing import options_free, shown_option, thousands
from fallow.report.folder import Study
from fallow.report.names import CONDITIONS
from fallow.report.saving import Picture
from fallow.results import Evaluation
from fallow.study.statistics import (
    BASELINE,
    NO_CHANGE,
    Returns,
    Setting,
    difference,
    setting_auc,
)

RECENCY = "recency"


def setting_of(row: Evaluation, trunk_sets: Mapping[str, str]) -> Setting:
    """Where a row's branch is compared with others."""
    trunk_set = trunk_sets.get(row.trunk, "")
    return Setting(row.task, row.agent, row.preset, row.condition, trunk_set)


def named(setting: Setting, among: Sequence[Setting]) -> str:
    """A setting for people: its condition, and what else tells it from the others."""
    parts = [titled(setting.condition)]
    for name in ("task", "agent", "preset", "trunk_set"):
        own = getattr(setting, name)
        if own and len({getattr(other, name) for other in among}) > 1:
            parts.append(own)
    return ", ".join(parts)


def titled(condition: str) -> str:
    """A condition as the paper calls it; with options, as it is written."""
    return CONDITIONS.get(condition) or shown_option(condition)


def return_pictures(study: Study) -> list[Picture]:
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


def stale_pictures(study: Study) -> list[Picture]:
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


def sweep_pictures(study: Study) -> list[Picture]:
    """The Recency advantage against recurrence, gain and window."""
    returns, found = study.returns(), []
    for place, settings in _places(returns).items():
        prefix, ending = file_name(" ".join(place)), f" ({', '.join(place)})"
        ending = ending if len(_places(returns)) > 1 else ""
        plain = _by_trunk_set(returns, settings, RECENCY)
        gains = {n: _along_gain(study, returns, own) for n, own in plain.items()}
        periods = {
            n: _along_period(study, returns, own, RECENCY) for n, own in plain.items()
        }
        windows = {
            f"window {thousands(_window(rule))}": _along_period(
                study, returns, settings, rule
            )
            for rule in _recency_rules(returns, settings)
        }
        if _distinct(periods) > 2:
            found.append(
                Picture(
                    f"advantage-period-{prefix}",
                    f"Recency advantage against recurrence{ending}",
                    "The dotted line is the age–staleness AUC: 1 where "
                    "all stale data is older than all fresh data, 0.5 where age says "
                    "nothing. A period also sets how long each body lasts.",
                    sweeps.by_period(periods),
                )
            )
        if _distinct(gains) > 2:
            found.append(
                Picture(
                    f"advantage-gain-{prefix}",
                    f"Recency advantage against the size of the change{ending}",
                    "To the right less of the actuators' gain is left.",
                    sweeps.by_gain(gains),
                )
            )
        if len([own for own in windows.values() if len(own) > 1]) > 1:
            found.append(
                Picture(
                    f"advantage-window-{prefix}",
                    f"Recency advantage for windows of different size{ending}",
                    "A larger window keeps more of what may come back.",
                    sweeps.by_window(windows),
                )
            )
    return found


def theory_pictures(study: Study) -> list[Picture]:
    """Eqs (5) and (6) beside the measured advantage.

    None for fewer than three cases, or where all have one sign: any sigma would fit.
    """
    cases = theory_cases(study)
    if len(cases) < 3 or len({case.advantage > 0 for case in cases}) < 2:
        return []
    noise_std, n_agree = theory.fitted_noise(cases)
    fitted = (
        f"The noise of one transition is the only number fitted ({noise_std:.3g}, in "
        "units of M); with it the sign is as measured in "
        f"{n_agree} of {len(cases)} cases. Hollow marks: twice the standard error "
        "holds 0, or there is one seed."
    )
    return [
        Picture(
            "theory-mismatch",
            "Where forgetting should pay",
            "Each mark is a condition: how much of the gain was lost, against how much "
            "staler the whole buffer is than its window. Above the line M* the paper's "
            f"theory, eq. (6), says to forget. {fitted}",
            theory.mismatch(cases, noise_std),
        ),
        Picture(
            "theory-advantage",
            "Theory against measurement",
            "ΔE, eq. (5), is by how much the full buffer's error exceeds the window's. "
            "If the theory is right marks lie in the lower left and upper right.",
            theory.against_advantage(cases, noise_std),
        ),
    ]


def theory_cases(study: Study) -> list[theory.Case]:
    """All conditions that change gains, with every window of recency."""
    returns = study.returns()
    found = []
    for setting in returns.settings:
        condition = study.condition(setting.condition)
        if condition is None:
            continue
        offset = theory.offset_of(condition, setting.task)
        frames = sorted(
            {
                row.branch_frame
                for row in study.rows
                if row.condition == setting.condition
                and row.branch_frame >= study.shift_frame
            }
        )
        for rule in _recency_rules(returns, [setting]):
            summary = difference(returns, setting, rule)
            if offset is None or summary.mean is None or not frames:
                continue
            window = _window(rule)
            shares = tuple(
                theory.stale_shares(condition, study.trunk_frames, frame, window)
                for frame in frames
            )
            label = _short(condition)
            found.append(theory.Case(label, offset, shares, summary.mean, summary.se))
    return found


def _by_setting(study: Study) -> list[tuple[Setting, str, list[Evaluation]]]:
    """Settings in the order of the plan or the table, their titles and rows."""
    groups: dict[Setting, list[Evaluation]] = defaultdict(list)
    for row in study.rows:
        groups[setting_of(row, study.trunk_sets)].append(row)
    settings = list(groups)
    return [(one, named(one, settings), groups[one]) for one in settings]


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


Place = tuple[str, str, str]


def _places(returns: Returns) -> dict[Place, list[Setting]]:
    found: dict[Place, list[Setting]] = defaultdict(list)
    for setting in returns.settings:
        found[setting.task, setting.agent, setting.preset].append(setting)
    return found


def _by_trunk_set(
    returns: Returns, settings: Sequence[Setting], rule: str
) -> dict[str, list[Setting]]:
    found: dict[str, list[Setting]] = defaultdict(list)
    for setting in settings:
        if rule in returns.rules(setting):
            name = f"trunks {setting.trunk_set}" if setting.trunk_set else "10k window"
            found[name].append(setting)
    return found


def _along_period(
    study: Study, returns: Returns, settings: Sequence[Setting], rule: str
) -> list[sweeps.Point]:
    """Recurring changes to half the gain, and the one that stays."""
    found = []
    for setting in settings:
        parsed = study.condition(setting.condition)
        if parsed is None or parsed.shift != Gain():
            continue
        schedule = parsed.schedule
        if isinstance(schedule, Recurring):
            x = float(schedule.period_frames)
        elif isinstance(schedule, Permanent):
            x = sweeps.PERMANENT
        else:
            continue
        found += _point(returns, setting, rule, x)
    return found


def _along_gain(
    study: Study, returns: Returns, settings: Sequence[Setting]
) -> list[sweeps.Point]:
    """Permanent changes of the whole gain; no change at all is a gain of 1."""
    found: dict[float, list[sweeps.Point]] = {}
    for setting in settings:
        parsed = study.condition(setting.condition)
        if parsed is None:
            continue
        if setting.condition == NO_CHANGE:
            found.setdefault(1.0, _point(returns, setting, RECENCY, 1.0))
        elif isinstance(parsed.schedule, Permanent) and isinstance(parsed.shift, Gain):
            if isinstance(parsed.shift.g, tuple):
                continue
            x = float(parsed.shift.g)
            found[x] = _point(returns, setting, RECENCY, x)
    return [point for points in found.values() for point in points]


def _point(
    returns: Returns, setting: Setting, rule: str, x: float
) -> list[sweeps.Point]:
    """One point, or none where no seed has both rules."""
    summary = difference(returns, setting, rule, BASELINE)
    if summary.mean is None:
        return []
    auc = setting_auc(returns, setting)
    return [sweeps.Point(x, summary.mean, summary.se, auc)]


def _recency_rules(returns: Returns, settings: Sequence[Setting]) -> list[str]:
    rules = {rule for setting in settings for rule in returns.rules(setting)}
    return sorted((r for r in rules if options_free(r) == RECENCY), key=_window)


def _window(rule: str) -> int:
    parsed = Rule.parse(rule)
    assert isinstance(parsed, Recency)
    return parsed.window_transitions


def _distinct(series: Mapping[str, Sequence[sweeps.Point]]) -> int:
    return len({point.x for points in series.values() for point in points})


def _short(condition: Condition) -> str:
    """What tells a condition from its neighbours on a crowded figure."""
    if isinstance(condition.schedule, Recurring):
        return thousands(condition.schedule.period_frames)
    if condition.name == "gain" and isinstance(condition.shift, Gain):
        return f"g={condition.shift.g}"
    return condition.name


def file_name(title: str) -> str:
    """Letters, digits and dashes only."""
    kept = "".join(c if c.isascii() and c.isalnum() else "-" for c in title)
    return "-".join(filter(None, kept.split("-"))) or "study"
