"""What a study found, in sentences: which rule won where, by how much, how sure."""

from collections.abc import Mapping, Sequence

from fallow.core.results import ResultRow
from fallow.dynamics.schedules import SHIFT_FRAME
from fallow.report.cells import digits_for, number
from fallow.report.comparing import missing_notes
from fallow.report.names import baseline_of, rule_order, setting_order, where
from fallow.study.statistics import (
    NO_CHANGE,
    Returns,
    Setting,
    difference,
    mean_return,
    returns_of,
)
from fallow.study.summary import Summary

LASTING = ("gain", "damage")
"""Conditions that come once; all others go on."""
ONE_SEED = "One seed: nothing can be said about chance."
NOTHING = "There is nothing to say yet: no branch has been evaluated."


def verdict(
    rows: Sequence[ResultRow],
    shift_frame: int = SHIFT_FRAME,
    seeds: Sequence[int] | None = None,
    n_evaluations: int | None = None,
    trunk_sets: Mapping[str, str] | None = None,
) -> list[str]:
    """Sentences: how many comparisons are clear, each of them, and what is missing.

    A comparison is clear if the 95 % t interval of its paired difference leaves 0 out.
    The arguments are those of `returns_of`.
    """
    returns = returns_of(rows, shift_frame, seeds, n_evaluations, trunk_sets)
    if not returns.branches:
        return [NOTHING]
    settings = sorted(returns.settings, key=setting_order)
    several = len({where(setting) for setting in settings}) > 1
    digits = digits_for([branch.value for branch in returns.branches])
    found: list[Summary] = []
    sentences: list[str] = []
    for setting in settings:
        prefix = f"{where(setting)}: " if several else ""
        compared = _comparisons(returns, setting)
        texts = [sentence(setting, *one, digits) for one in compared]
        if len(compared) > 1:
            texts += leader(returns, setting, digits)
        sentences += [prefix + _capital(text, bool(prefix)) for text in texts]
        found += [summary for _, _, summary in compared]
    missing = [one for summary in found for one in summary.missing]
    if not found:
        only = ", ".join(returns.rules())
        return [f"There is nothing to compare: the only rule is {only}."]
    return [*_overall(found), *sentences, *missing_notes(missing)]


def sentence(
    setting: Setting, rule: str, against: str, found: Summary, digits: int = 0
) -> str:
    """One comparison; a result that chance could give is not called a win."""
    when = _when(setting.condition)
    if found.mean is None:
        return f"{when} {rule} and {against} cannot be compared: no seed has both."
    if not any(found.values):
        each = "the one seed" if found.n == 1 else f"all {found.n} seeds"
        return f"{when} {rule} and {against} did exactly the same in {each}."
    ahead, behind = (rule, against) if found.mean >= 0 else (against, rule)
    flip = 1 if found.mean >= 0 else -1
    size = _size(found, digits, flip)
    if found.interval is None:
        return f"{when} {ahead} was {size} above {behind} in the one seed there is."
    low, high = sorted(flip * end for end in found.interval)
    n_ahead = found.n_positive if flip > 0 else found.n_negative
    sure = (
        f"higher in {n_ahead} of {found.n} seeds; 95 % interval {number(low, digits)} "
        f"to {number(high, digits)}"
    )
    if found.clear:
        return f"{when} {ahead} beat {behind} by {size} ({sure}): clear."
    return (
        f"{when} no clear winner: {ahead} was {size} above {behind} ({sure}), which "
        "chance could give."
    )


def leader(returns: Returns, setting: Setting, digits: int = 0) -> list[str]:
    """Which of several rules reached most, and whether its lead is clear.

    Nothing is said where a seed of some rule is missing.
    """
    rules = _rules(returns, setting)
    reached = {rule: mean_return(returns, setting, rule) for rule in rules}
    means = {rule: own.mean for rule, own in reached.items() if own.mean is not None}
    if len(means) < 3 or not all(own.complete for own in reached.values()):
        return []
    first, second = sorted(means, key=lambda rule: -means[rule])[:2]
    lead = difference(returns, setting, first, second)
    if lead.mean is None or lead.interval is None:
        return []
    own = _size(reached[first], digits)
    if not any(lead.values):
        alike = [
            r for r in means if not any(difference(returns, setting, r, first).values)
        ]
        who = " and ".join(alike)
        return [f"{_when(setting.condition)} {who} reached the most, {own} each."]
    if lead.clear and lead.mean > 0:
        sure = f"clearly ahead of {second}, by {_size(lead, digits)}"
    else:
        sure = f"but its lead over {second} ({_size(lead, digits)}) could be chance"
    return [f"{_when(setting.condition)} {first} reached the most, {own}, {sure}."]


def _comparisons(returns: Returns, setting: Setting) -> list[tuple[str, str, Summary]]:
    """Every rule against `passive`, or against the first one where that is missing."""
    against = baseline_of(returns, setting)
    return [
        (rule, against, difference(returns, setting, rule, against))
        for rule in _rules(returns, setting)
        if against is not None and rule != against
    ]


def _rules(returns: Returns, setting: Setting) -> list[str]:
    return sorted(returns.rules(setting), key=rule_order)


def _overall(found: Sequence[Summary]) -> list[str]:
    if all(own.n <= 1 for own in found):
        return [ONE_SEED] if any(own.n for own in found) else []
    if len(found) == 1:
        return []
    n_clear = sum(own.clear for own in found)
    return [
        f"Of {len(found)} comparisons {n_clear or 'none'} "
        f"{'is' if n_clear <= 1 else 'are'} clear; where nothing differs, one in "
        "twenty would be called clear by chance."
    ]


def _size(found: Summary, digits: int, flip: int = 1) -> str:
    assert found.mean is not None
    error = "" if found.se is None else f" ± {number(found.se, digits)}"
    return number(flip * found.mean, digits) + error


def _when(condition: str) -> str:
    if condition == NO_CHANGE:
        return "with no change,"
    name, _, rest = condition.partition(":")
    lasts = name in LASTING and "schedule=" not in rest
    return f"{'after' if lasts else 'under'} `{condition}`,"


def _capital(text: str, inside: bool) -> str:
    return text if inside else text[:1].upper() + text[1:]
