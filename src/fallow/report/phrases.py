"""Findings in words: one headline for each setting, and sentences with intervals."""

from collections.abc import Sequence

from fallow.report.cells import number
from fallow.report.findings import Finding, Leader, SettingFindings, StudyFindings
from fallow.report.names import condition_name, rule_name, rule_order, where
from fallow.report.table_builders import missing_notes
from fallow.study.summary import Summary

NOTHING = "No branch has been evaluated yet."
ONE_SEED = "There is one seed, so there is no interval and no result is clear."


def headlines(found: StudyFindings) -> list[str]:
    """`Gain reduction: Reset-once +170, Recency +54, both clear`, one a setting."""
    several = _several(found)
    return [
        f"{setting_name(part, several)}: {headline(part, found.digits)}"
        for part in found.settings
        if part.findings
    ]


def headline(part: SettingFindings, digits: int = 0) -> str:
    """The differences of one setting, largest first, grouped by how sure they are."""
    groups: dict[str, list[Finding]] = {}
    for one in sorted(part.findings, key=lambda f: -(f.difference.mean or 0)):
        is_one = one.difference.n == 1 and not one.equal
        groups.setdefault("one seed" if is_one else certainty(one), []).append(one)
    shown = []
    for result in ("clear", "within noise", "one seed", ""):
        texts = [_short(one, digits) for one in groups.get(result, [])]
        if texts and result:
            alone = len(texts) == 1 or result == "one seed"
            many = "" if alone else "both " if len(texts) == 2 else "all "
            texts.append(f"{many}{result}")
        if texts:
            shown.append(", ".join(texts))
    return "; ".join(shown)


def headline_note(found: StudyFindings) -> str:
    """An explanation of the numbers in the headlines; empty without a comparison."""
    against = sorted({one.against for one in found.findings}, key=rule_order)
    if not against:
        return ""
    names = " or ".join(rule_name(rule) for rule in against)
    return f"Difference in return from {names}. Clear: the 95 % interval excludes 0."


def sentences(found: StudyFindings) -> list[str]:
    """How many comparisons are clear, each of them, and what is missing."""
    if not found.settings:
        return [NOTHING]
    if not found.findings:
        only = ", ".join(rule_name(rule) for rule in found.rules)
        return [f"There is nothing to compare: the only rule is {only}."]
    several = _several(found)
    lines = overall(found.findings)
    for part in found.settings:
        texts = [sentence(one, found.digits) for one in part.findings]
        if part.leader is not None and len(part.findings) > 1:
            texts.append(leader_sentence(part.leader, found.digits))
        lines += [f"{setting_name(part, several)}: {text}" for text in texts]
    return [*lines, *missing_notes(found.missing)]


def sentence(found: Finding, digits: int = 0) -> str:
    """One comparison; a difference whose interval contains 0 is not called a win."""
    rule, against, gap = (
        rule_name(found.rule),
        rule_name(found.against),
        found.difference,
    )
    if gap.mean is None:
        return f"{rule} and {against} cannot be compared: no seed has both."
    if found.equal:
        each = "the only seed" if gap.n == 1 else f"all {gap.n} seeds"
        return f"{rule} and {against} have the same return in {each}."
    sign = 1 if gap.mean >= 0 else -1
    ahead, behind = (rule, against)[::sign]
    size = _size(gap, digits, sign)
    if gap.interval is None:
        return f"{ahead} is {size} above {behind} in the only seed."
    low, high = sorted(sign * end for end in gap.interval)
    n_ahead = gap.n_positive if sign > 0 else gap.n_negative
    evidence = (
        f"95 % interval {number(low, digits)} to {number(high, digits)}, higher in "
        f"{n_ahead} of {gap.n} seeds"
    )
    if found.clear:
        return f"{ahead} beats {behind} by {size} ({evidence}); clear."
    return f"{ahead} is {size} above {behind} ({evidence}); within noise."


def leader_sentence(leader: Leader, digits: int = 0) -> str:
    """Which of several rules has the highest return, and whether its lead is clear."""
    size = _size(leader.reached, digits)
    if len(leader.rules) > 1:
        names = " and ".join(rule_name(rule) for rule in leader.rules)
        return f"{names} have the highest return, {size} each."
    result = "clear" if leader.lead.clear else "within noise"
    return (
        f"{rule_name(leader.rules[0])} has the highest return, {size}; its lead over "
        f"{rule_name(leader.runner_up)}, {_size(leader.lead, digits)}, is {result}."
    )


def setting_name(part: SettingFindings, several: bool = False) -> str:
    """The condition's name; with `several` places also task, agent and preset."""
    name = condition_name(part.setting.condition)
    return f"{name} ({where(part.setting)})" if several else name


def _several(found: StudyFindings) -> bool:
    return len({where(part.setting) for part in found.settings}) > 1


def certainty(found: Finding) -> str:
    """`clear`, `within noise`, or nothing where there is no interval or no gap."""
    if found.equal or found.interval is None:
        return ""
    return "clear" if found.clear else "within noise"


def _short(found: Finding, digits: int) -> str:
    rule, gap = rule_name(found.rule), found.difference
    if gap.mean is None:
        return f"{rule} not comparable"
    if found.equal:
        return f"{rule} equal to {rule_name(found.against)}"
    return f"{rule} {number(gap.mean, digits, signed=True)}"


def overall(found: Sequence[Finding]) -> list[str]:
    """How many comparisons are clear, in at most one sentence."""
    compared = [one.difference for one in found]
    if all(gap.n <= 1 for gap in compared):
        return [ONE_SEED] if any(gap.n for gap in compared) else []
    if len(found) == 1:
        return []
    n_clear = sum(one.clear for one in found)
    return [
        f"{n_clear} of {len(found)} comparisons {'is' if n_clear == 1 else 'are'} "
        "clear. Without any true difference, 1 in 20 would be clear by chance."
    ]


def _size(summary: Summary, digits: int, sign: int = 1) -> str:
    assert summary.mean is not None
    error = "" if summary.se is None else f" ± {number(summary.se, digits)}"
    return number(sign * summary.mean, digits) + error
