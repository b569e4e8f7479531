"""Sections made from histories: ages of samples, the selector, and films of bodies.

Where a study has no histories of a kind, its section is empty.
"""

from collections.abc import Sequence

from fallow.core.errors import FallowError
from fallow.dynamics.schedules import Drift
from fallow.logs.history import History, read_history
from fallow.report import rendering
from fallow.report.figures import filmstrips
from fallow.report.figures.ages import age_figure
from fallow.report.figures.decision_plane import plane_figures
from fallow.report.figures.report_figure import ReportFigure, file_name
from fallow.report.figures.response_trace import trace_figures
from fallow.report.figures.selector_agreement import agreement_figures
from fallow.report.names import condition_name, rule_name
from fallow.report.page import Film, PageTable, Section
from fallow.report.sampled_ages import SampledAges, is_known, sampled_ages
from fallow.report.selector_table import selector_tables
from fallow.report.table_builders import seeds_text
from fallow.study import estimator
from fallow.study.planned import PlannedBranch
from fallow.study.results import StudyResults
from fallow.study.statistics import BASELINE, mean_return

MOST_FILMS, MOST_AGES = 2, 4
CHANGED = 1
"""The regime of a changed body."""


def age_section(study: StudyResults) -> Section:
    """Age histograms of what rules sample after the change, one seed a condition."""
    shown: list[ReportFigure] = []
    notes: list[str] = []
    for condition, branches in _by_condition(study)[:MOST_AGES]:
        found, unknown = _sampled_ages(study, branches, notes)
        if not found:
            continue
        names = ", ".join(rule_name(rule) for rule in unknown)
        rest = f" Not for {names}: histories do not hold what it weighs by."
        caption = f"Seed {branches[0].seed}.{rest if unknown else ''}"
        name, title = f"age-{file_name(condition)}", condition_name(condition)
        shown.append(ReportFigure(name, title, caption, age_figure(found)))
    return Section(
        "Age of samples",
        "Age of the steps that each rule samples, averaged over the evaluations since "
        "the change and reconstructed from the histories. Bins double in width from "
        "left to right.",
        shown,
        notes=notes,
    )


def _sampled_ages(
    study: StudyResults, branches: Sequence[PlannedBranch], notes: list[str]
) -> tuple[dict[str, SampledAges], list[str]]:
    """Ages by rule, of one seed, and the rules that a history does not determine."""
    condition = branches[0].condition
    frames = sorted(
        {
            row.frame
            for row in study.rows
            if row.condition == condition and row.branch_frame > study.shift_frame
        }
    )
    found, unknown = {}, []
    for branch in _of_one_seed(branches):
        if not _is_known(branch.rule):
            unknown.append(branch.rule)
            continue
        try:
            histories = _trunk(study, branch), _history(study, branch)
            found[branch.rule] = sampled_ages(*histories, branch.rule, frames)
        except FallowError as error:
            name = f"{condition_name(condition)}, {rule_name(branch.rule)}"
            notes.append(f"{name}: no ages, since {error}.")
    return found, unknown


def selector_section(study: StudyResults) -> Section:
    """The selector's decision on each Passive history, and whether it is right."""
    cases = _cases(study)
    results = estimator.evaluate(cases, study.returns)
    whole = estimator.evaluate(cases, study.returns, cut_episodes={})
    evaluated = [one for one in results if isinstance(one, estimator.SelectorResult)]
    unread = [one for one in results if isinstance(one, estimator.UnreadHistory)]
    tables = selector_tables(results, whole) if evaluated else []
    return Section(
        "Can the change be detected?",
        "The actuator response K, the velocity that a unit of action causes, for each "
        "episode of a trunk and its Passive branch. Full lines are changes detected "
        "from the data alone, dotted lines recorded ones; orange episodes are "
        "classified as stale, green as fresh. The first five episodes are read and not "
        "shown.",
        [
            *trace_figures(evaluated),
            *plane_figures(evaluated),
            *agreement_figures(estimator.agreement(results)),
        ],
        tables=[PageTable(table) for table in tables],
        notes=_unread_notes(unread),
    )


def _unread_notes(unread: Sequence[estimator.UnreadHistory]) -> list[str]:
    """A sentence for each condition and reason, with its seeds."""
    groups: dict[tuple[str, str], set[int]] = {}
    for one in unread:
        key = (condition_name(one.case.setting.condition), one.reason)
        groups.setdefault(key, set()).add(one.case.seed)
    return [
        f"{name}, {seeds_text(seeds)}: no selector, since {reason}."
        for (name, reason), seeds in groups.items()
    ]


def film_section(study: StudyResults) -> Section:
    """Filmstrips and films of Passive and Recency, of one seed, after the change."""
    shown: list[ReportFigure] = []
    films: list[Film] = []
    notes: list[str] = []
    pairs = [(c, _pair(b)) for c, b in _by_condition(study) if _pair(b)]
    if pairs and rendering.backend() is None:
        notes.append(rendering.NO_RENDERER)
        pairs = []
    for condition, pair in pairs[:MOST_FILMS]:
        try:
            strip, film = _film(study, condition, pair)
        except Exception as error:  # a graphics driver may raise anything
            notes.append(f"{condition_name(condition)}: no film, since {error}.")
        else:
            shown.append(strip)
            films.append(film)
    return Section(
        "Films",
        "One training episode of two rules, simulated again from the histories, under "
        "the changed body.",
        shown,
        films,
        notes=notes,
    )


def _film(
    study: StudyResults, condition: str, pair: Sequence[PlannedBranch]
) -> tuple[ReportFigure, Film]:
    histories = {branch.rule: _history(study, branch) for branch in pair}
    scene = filmstrips.matched(histories, CHANGED)
    remarks = {branch.rule: _remark(study, branch) for branch in pair}
    name, title = file_name(condition), condition_name(condition)
    rules = [rule_name(branch.rule) for branch in pair]
    pose = "Both start in the same pose. " if scene.same_start else ""
    caption = (
        f"The same training episode of {' and '.join(rules)}, seed {pair[0].seed}, "
        f"from frame {scene.start_frame:,} on. {pose}At the right: evaluation return "
        "since the change, mean ± s.e. over seeds."
    )
    strip = filmstrips.filmstrip(scene, remarks)
    sides = " left, ".join(rules) + " right"
    film = Film(f"film-{name}", f"{title}: {sides}.", filmstrips.film(scene))
    return ReportFigure(f"strip-{name}", title, caption, strip, wide=True), film


def _remark(study: StudyResults, branch: PlannedBranch) -> str:
    setting = study.setting(branch)
    summary = mean_return(study.returns, setting, branch.rule)
    if summary.mean is None:
        return ""
    error = "" if summary.se is None else f" ± {summary.se:.0f}"
    return f"{summary.mean:.0f}{error}"


def _cases(study: StudyResults) -> list[estimator.SelectorCase]:
    """Passive branches that have both histories."""
    found = []
    for branch in study.branches:
        history = study.histories.get(branch.id)
        trunk = study.histories.get(branch.trunk)
        if branch.rule == BASELINE and history is not None and trunk is not None:
            setting = study.setting(branch)
            place = (setting, branch.seed, branch.trunk)
            found.append(estimator.SelectorCase(*place, trunk, history))
    return found


def _by_condition(study: StudyResults) -> list[tuple[str, list[PlannedBranch]]]:
    """Branches with histories, by condition; those with two regimes only."""
    found: dict[str, list[PlannedBranch]] = {}
    for branch in study.branches:
        condition = study.condition(branch.condition)
        if condition is None or isinstance(condition.schedule, Drift):
            continue
        if condition.shift is not None and study.histories.get(branch.id) is not None:
            found.setdefault(branch.condition, []).append(branch)
    return list(found.items())


def _of_one_seed(branches: Sequence[PlannedBranch]) -> list[PlannedBranch]:
    """Those of the seed and trunk of the first."""
    first = branches[0]
    same = (first.task, first.agent, first.seed, first.trunk)
    return [b for b in branches if (b.task, b.agent, b.seed, b.trunk) == same]


def _pair(branches: Sequence[PlannedBranch]) -> list[PlannedBranch]:
    """Passive and the first Recency of one seed; empty without one of them."""
    alike = _of_one_seed(branches)
    passive = [b for b in alike if b.rule == BASELINE]
    recency = [b for b in alike if b.rule.partition(":")[0] == estimator.RECENCY]
    return [passive[0], recency[0]] if passive and recency else []


def _is_known(rule: str) -> bool:
    try:
        return is_known(rule)
    except FallowError:  # an unknown rule
        return False


def _history(study: StudyResults, branch: PlannedBranch) -> History:
    path = study.histories.get(branch.id)
    if path is None:
        raise FallowError(f"there is no history of branch '{branch.id}'")
    return read_history(path)


def _trunk(study: StudyResults, branch: PlannedBranch) -> History | None:
    path = study.histories.get(branch.trunk)
    return None if path is None else read_history(path)
