"""What a study lacks, in sentences: branches without results, and other caveats."""

from collections import defaultdict

from fallow.report.names import condition_name, rule_name
from fallow.report.table_builders import seeds_text
from fallow.study.planned import PlannedBranch
from fallow.study.results import StudyResults
from fallow.study.statistics import NO_ROW, BranchReturn


def missing_branches(study: StudyResults) -> list[str]:
    """Branches without J and why, grouped by condition, rule and reason."""
    found = study.returns.branches
    groups: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for branch in found:
        if branch.reason:
            key = (branch.setting.condition, branch.rule, branch.reason)
            groups[key].add(branch.seed)
    for planned in study.branches:
        if not any(_is(branch, planned) for branch in found):
            groups[planned.condition, planned.rule, NO_ROW].add(planned.seed)
    return [
        f"{condition_name(condition)}, {rule_name(rule)}, {seeds_text(seeds)}: "
        f"{reason}."
        for (condition, rule, reason), seeds in groups.items()
    ]


def caveats(study: StudyResults) -> list[str]:
    """Limits of the numbers, and what the report leaves out."""
    found = list(study.notes)
    if len({row.seed for row in study.rows}) == 1:
        found.append("There is one seed, so no standard error and no interval.")
    if study.rows and not study.histories:
        found.append(
            "There are no histories, so ages, response traces and films are left out."
        )
    return found


def progress(study: StudyResults) -> str:
    """How many branches are finished."""
    n_finished = sum(branch.value is not None for branch in study.returns.branches)
    until = study.until_frame
    done = "are finished" if until is None else f"reached branch frame {until:,}"
    if study.branches:
        return f"{n_finished} of {len(study.branches)} branches {done}"
    return f"{n_finished} branches {done}"


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
