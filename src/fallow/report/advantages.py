"""Pictures of the Recency advantage: along what was varied, and beside the theory.

Each function returns those for which there is enough; none is drawn of too little.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from fallow.dynamics.conditions import Condition
from fallow.dynamics.schedules import Recurring
from fallow.dynamics.shifts import Gain
from fallow.report import sweeps, theory
from fallow.report.saving import Picture, file_name
from fallow.study.estimator import RECENCY
from fallow.study.results import StudyResults
from fallow.study.statistics import NO_CHANGE, Setting, difference, setting_auc
from fallow.study.sweeps import gain_of, period_of, window_of
from fallow.views.plotting import thousands

FEWEST_POINTS, FEWEST_CASES = 3, 3
"""A sweep of fewer settings, or a theory of fewer cases, is none."""

Where = Callable[[str], float | None]
"""The place of a condition along a sweep; None: it has none."""


def sweep_pictures(study: StudyResults) -> list[Picture]:
    """The Recency advantage against recurrence, gain and window."""
    places = _places(study)
    found: list[Picture] = []
    for place, settings in places.items():
        ending = f" ({', '.join(place)})" if len(places) > 1 else ""
        found += _sweeps_of(study, settings, file_name(" ".join(place)), ending)
    return found


def _sweeps_of(
    study: StudyResults, settings: Sequence[Setting], file: str, ending: str
) -> list[Picture]:
    """That of one task, agent and preset: as many panels as were swept."""
    windows = _recency_rules(study, settings)
    plain = [RECENCY] if RECENCY in windows else windows[:1]
    periods = _series(study, settings, plain, period_of)
    gains = _series(study, settings, plain, gain_of)
    by_window = _series(study, settings, windows, period_of)
    panels: list[sweeps.Panel] = []
    captions = []
    if _n_places(periods) >= FEWEST_POINTS:
        panels.append((sweeps.by_period, periods))
        captions.append(
            "Against the recurrence period. The dotted line is the age–staleness AUC: "
            "1 where all stale data is older than all fresh data, 0.5 where age says "
            "nothing. A period also sets how long each body lasts."
        )
    if _n_places(gains) >= FEWEST_POINTS:
        panels.append((sweeps.by_gain, gains))
        captions.append("Against the gain that a permanent change leaves.")
    if len(windows) > 1 and sum(len(s.points) > 1 for s in by_window) > 1:
        panels.append((sweeps.by_window, by_window))
        captions.append("By window: a larger one keeps more of what may come back.")
    if not panels:
        return []
    if len(panels) > 1:
        captions = [
            f"({letter}) {c}" for letter, c in zip("abc", captions, strict=False)
        ]
    if any(series.trunk_set for _, sweep in panels for series in sweep):
        captions.append("Diamonds: trunks of a second set.")
    return [
        Picture(
            f"advantage-{file}",
            f"Recency advantage{ending}",
            " ".join(captions),
            sweeps.figure(panels),
            wide=len(panels) > 1,
        )
    ]


def theory_pictures(study: StudyResults) -> list[Picture]:
    """Eqs (5) and (6) beside the measured advantage.

    None for fewer than three cases, or where all have one sign: any sigma would fit.
    """
    cases = theory_cases(study)
    signs = {case.advantage > 0 for case in cases}
    if len(cases) < FEWEST_CASES or len(signs) < 2:
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


def theory_cases(study: StudyResults) -> list[theory.TheoryCase]:
    """All conditions that change gains, with every window of recency."""
    returns, found = study.returns, []
    for setting in returns.settings:
        condition, frames = study.condition(setting.condition), study.return_frames
        if condition is None or not frames:
            continue
        offset = theory.offset_of(condition, setting.task)
        for rule in _recency_rules(study, [setting]):
            own = difference(returns, setting, rule)
            if offset is None or own.mean is None:
                continue
            shares = tuple(
                theory.stale_shares(
                    condition, study.trunk_frames, at, window_of(rule) or 0
                )
                for at in frames
            )
            found.append(
                theory.TheoryCase(_short(condition), offset, shares, own.mean, own.se)
            )
    return found


def _series(
    study: StudyResults, settings: Sequence[Setting], rules: Sequence[str], where: Where
) -> list[sweeps.Series]:
    """By window and set of trunks; `none` gives way to a gain of 1 that was run."""
    found: dict[tuple[int, str], dict[float, sweeps.SweepPoint]] = defaultdict(dict)
    ordered = sorted(settings, key=lambda setting: setting.condition != NO_CHANGE)
    for rule in rules:
        for setting in ordered:
            x = where(setting.condition)
            advantage = difference(study.returns, setting, rule)
            if x is None or advantage.mean is None:
                continue
            auc = setting_auc(study.returns, setting)
            point = sweeps.SweepPoint(x, advantage.mean, advantage.se, auc)
            found[window_of(rule) or 0, setting.trunk_set][x] = point
    return [sweeps.Series(*key, tuple(own.values())) for key, own in found.items()]


PaperRow = tuple[str, str, str]


def _places(study: StudyResults) -> dict[PaperRow, list[Setting]]:
    """Settings by task, agent and preset."""
    found: dict[PaperRow, list[Setting]] = defaultdict(list)
    for setting in study.returns.settings:
        found[setting.task, setting.agent, setting.preset].append(setting)
    return found


def _recency_rules(study: StudyResults, settings: Sequence[Setting]) -> list[str]:
    """Those that this version knows, small windows first."""
    returns = study.returns
    rules = {rule for setting in settings for rule in returns.rules(setting)}
    return sorted(filter(window_of, rules), key=lambda rule: window_of(rule) or 0)


def _n_places(sweep: sweeps.Sweep) -> int:
    return len({point.x for series in sweep for point in series.points})


def _short(condition: Condition) -> str:
    """What tells a condition from its neighbours on a crowded figure."""
    if isinstance(condition.schedule, Recurring):
        return thousands(condition.schedule.period_frames)
    if condition.name == "gain" and isinstance(condition.shift, Gain):
        return f"g={condition.shift.g}"
    return condition.name
