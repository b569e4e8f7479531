"""What histories show: ages drawn, the response to actions, and the bodies themselves.

Everything here is left out, with a note, where a study has no histories of a kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fallow.core.errors import FallowError
from fallow.diagnosis import figures
from fallow.dynamics.schedules import Drift
from fallow.logs.history import History, read_history
from fallow.report import drawn, estimates, rendering, strips
from fallow.report.cells import ReportTable
from fallow.report.names import condition_name, rule_name
from fallow.report.saving import Picture, file_name
from fallow.report.selector_table import selector_tables
from fallow.study import estimator
from fallow.study.plan import PlannedBranch
from fallow.study.results import StudyResults
from fallow.study.statistics import BASELINE, mean_return
from fallow.views.numbers import listed
from fallow.views.plotting import options_free

N_PREFILL = 5
"""Episodes of random actions, which are read and not shown."""
MOST_SCENES, MOST_AGES, MOST_TRACES = 2, 4, 4
SHIFTED = 1
"""The regime of a changed body."""


@dataclass(frozen=True)
class Shown:
    """Pictures and films of one kind, and why there are not more."""

    pictures: list[Picture] = field(default_factory=list)
    films: list[tuple[str, str, bytes]] = field(default_factory=list)
    """(name, caption, animated WebP)."""
    notes: list[str] = field(default_factory=list)
    tables: list[ReportTable] = field(default_factory=list)


def ages_drawn(study: StudyResults) -> Shown:
    """Age histograms of what rules draw after the change, of one seed a condition."""
    shown = Shown()
    for condition, branches in _by_condition(study)[:MOST_AGES]:
        frames = sorted(
            {
                row.frame
                for row in study.rows
                if row.condition == condition and row.branch_frame > study.shift_frame
            }
        )
        found, untold = {}, []
        for branch in _of_one_seed(branches):
            if not _told(branch.rule):
                untold.append(branch.rule)
                continue
            try:
                trunk, own = _trunk(study, branch), _history(study, branch)
                found[branch.rule] = drawn.drawn_ages(trunk, own, branch.rule, frames)
            except FallowError as error:
                shown.notes.append(f"{condition}, {branch.rule}: {error}")
        if not found:
            continue
        rest = f" Not for {', '.join(untold)}: no history holds what it weighs by."
        caption = f"Seed {branches[0].seed}.{rest if untold else ''}"
        name, title = f"age-{file_name(condition)}", condition_name(condition)
        shown.pictures.append(Picture(name, title, caption, drawn.ages(found)))
    return shown


def responses(study: StudyResults) -> Shown:
    """What the selector says of each Passive history, and whether it is right."""
    cases = _cases(study)
    results = estimator.evaluate(cases, study.returns)
    whole = estimator.evaluate(cases, study.returns, cut_episodes={})
    judged = [one for one in results if isinstance(one, estimator.SelectorResult)]
    unjudged = [one for one in results if isinstance(one, estimator.UnreadHistory)]
    shown = Shown(notes=[one.reason for one in unjudged])
    if judged:
        shown.tables.extend(selector_tables(results, whole))
    for judgement in _one_each(judged)[:MOST_TRACES]:
        shown.pictures.append(_trace(judgement))
    shown.pictures.extend(_plane(judged))
    bars = estimator.agreement(results)
    if any(bar.n for bar in bars):
        shown.pictures.append(
            Picture(
                "selector-agreement",
                "Did the selector choose the better rule?",
                "Share of histories in which it chose the rule with the higher return "
                "of that seed; the dotted line is a coin's. Fractions count decisions. "
                "The paper has 19 of 24 in all and 3 of 5 at g = 0.5.",
                estimates.agreement(bars),
            )
        )
    return shown


def scenes(study: StudyResults) -> Shown:
    """Strips and films of Passive and Recency, of one seed, after the change."""
    shown = Shown()
    pairs = [(c, _pair(b)) for c, b in _by_condition(study) if _pair(b)]
    if not pairs:
        return shown
    if rendering.backend() is None:
        shown.notes.append(rendering.NO_RENDERER)
        return shown
    for condition, pair in pairs[:MOST_SCENES]:
        try:
            _show(study, condition, pair, shown)
        except Exception as error:  # a graphics driver may raise anything
            shown.notes.append(f"{condition}: no strip, since {error}")
    return shown


def _show(
    study: StudyResults, condition: str, pair: Sequence[PlannedBranch], shown: Shown
) -> None:
    histories = {branch.rule: _history(study, branch) for branch in pair}
    scene = strips.matched(histories, SHIFTED)
    remarks = {branch.rule: _remark(study, branch) for branch in pair}
    name, title = file_name(condition), condition_name(condition)
    rules = [rule_name(branch.rule) for branch in pair]
    pose = "Both begin it in the same pose. " if scene.same_start else ""
    caption = (
        f"The same training episode of {' and '.join(rules)}, seed {pair[0].seed}, "
        f"from frame {scene.start_frame:,} on. {pose}At the right: evaluation return "
        "since the change, mean ± s.e. over seeds."
    )
    picture = strips.strip(scene, remarks=remarks)
    shown.pictures.append(Picture(f"strip-{name}", title, caption, picture, wide=True))
    film = strips.film(scene)
    left_right = " left, ".join(rules) + " right"
    shown.films.append((f"film-{name}", f"{title}: {left_right}.", film))


def _remark(study: StudyResults, branch: PlannedBranch) -> str:
    setting = study.setting(branch)
    summary = mean_return(study.returns, setting, branch.rule)
    if summary.mean is None:
        return ""
    error = "" if summary.se is None else f" ± {summary.se:.0f}"
    return f"{summary.mean:.0f}{error}"


def _trace(judgement: estimator.SelectorResult) -> Picture:
    case = judgement.case
    condition = case.setting.condition
    figure = figures.trace(
        judgement.decision,
        judgement.truth,
        judgement.decision.response.mean,
        f"K, mean over joints, seed {case.seed}",
        N_PREFILL,
    )
    true = judgement.truth.change_points if judgement.truth else ()
    caption = (
        f"Changes: {_changes('found', judgement.decision.change_points)}; "
        f"{_changes('recorded', true)}. "
        f"The selector would {judgement.decision.word} the old data."
    )
    name = f"response-{file_name(condition)}"
    return Picture(name, condition_name(condition), caption, figure)


def _plane(judged: Sequence[estimator.SelectorResult]) -> list[Picture]:
    """Both gates, where a history has a place between them."""
    decisions = [one.decision for one in judged]
    placed = [d for d in decisions if None not in (d.auc.value, d.magnitude.value)]
    if not placed:
        return []
    caption = (
        f"Each of {len(placed)} marks is a history: how well age tells stale data from "
        "fresh, against how much of the response was lost, estimated from actions and "
        "velocities alone. In the shaded corner the selector discards old data. "
        f"{len(decisions) - len(placed)} histories have nothing stale, and no mark."
    )
    figure = figures.plane(decisions)
    return [Picture("decision-plane", "Both gates", caption, figure)]


def _changes(word: str, episodes: tuple[int, ...]) -> str:
    return f"{word} at episode {listed(episodes)}" if episodes else f"none {word}"


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


def _one_each(
    judged: Sequence[estimator.SelectorResult],
) -> list[estimator.SelectorResult]:
    """The first of every condition."""
    first: dict[str, estimator.SelectorResult] = {}
    for judgement in judged:
        first.setdefault(judgement.case.setting.condition, judgement)
    return list(first.values())


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
    own = _of_one_seed(branches)
    passive = [b for b in own if b.rule == BASELINE]
    recency = [b for b in own if options_free(b.rule) == estimator.RECENCY]
    return [passive[0], recency[0]] if passive and recency else []


def _told(rule: str) -> bool:
    try:
        return drawn.can_tell(rule)
    except FallowError:  # a rule of another version, or of somebody else
        return False


def _history(study: StudyResults, branch: PlannedBranch) -> History:
    path = study.histories.get(branch.id)
    if path is None:
        raise FallowError(f"there is no history of branch '{branch.id}'")
    return read_history(path)


def _trunk(study: StudyResults, branch: PlannedBranch) -> History | None:
    path = study.histories.get(branch.trunk)
    return None if path is None else read_history(path)
