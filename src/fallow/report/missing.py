"""What a study has not got, in sentences: a partial report says what is missing."""

from collections import defaultdict

from fallow.study.plan import PlannedBranch
from fallow.study.results import StudyResults
from fallow.study.statistics import NO_ROW, BranchReturn
from fallow.views.numbers import listed


def missing(study: StudyResults) -> list[str]:
    """Branches without J and why, those of one condition, rule and reason together."""
    found = study.returns.branches
    reasons = [(_key(branch), branch.seed, branch.reason) for branch in found]
    groups: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for (condition, rule), seed, reason in reasons:
        if reason:
            groups[condition, rule, reason].add(seed)
    for planned in study.branches:
        if not any(_is(branch, planned) for branch in found):
            groups[planned.condition, planned.rule, NO_ROW].add(planned.seed)
    return [
        f"{condition}, {rule}, seed{'s' if len(seeds) > 1 else ''} "
        f"{listed(tuple(sorted(seeds)))}: {reason}"
        for (condition, rule, reason), seeds in groups.items()
    ]


def caveats(study: StudyResults) -> list[str]:
    """What a reader should know before believing a number."""
    seeds = {row.seed for row in study.rows}
    found = list(study.notes)
    if len(seeds) == 1:
        found.append(
            "There is one seed: no standard error, no interval, and nothing can be "
            "said about chance."
        )
    if study.rows and not study.histories:
        found.append(
            "There are no histories, so ages, response traces and films are left out."
        )
    return found


def counted(study: StudyResults) -> str:
    """How far the study is, in words."""
    whole = sum(branch.value is not None for branch in study.returns.branches)
    far = study.until_frame
    done = "are finished" if far is None else f"came to branch frame {far:,}"
    if study.branches:
        return f"{whole} of {len(study.branches)} branches {done}"
    return f"{whole} branches {done}"


def _key(branch: BranchReturn) -> tuple[str, str]:
    return branch.setting.condition, branch.rule


def _is(branch: BranchReturn, planned: PlannedBranch) -> bool:
    """Whether a branch is the planned one."""
    setting = branch.setting
    return (
        planned.task,
        planned.agent,
        planned.condition,
        planned.rule,
        planned.seed,
        planned.trunk,
    ) == (
        setting.task,
        setting.agent,
        setting.condition,
        branch.rule,
        branch.seed,
        branch.trunk_id,
    )
