"""What a study found, as data: every rule against the baseline in every setting.

The terminal, the page and Markdown render these; none of them derives a result itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fallow.report.cells import digits_for
from fallow.report.names import baseline_of, rule_order, setting_order
from fallow.study.results import StudyResults
from fallow.study.statistics import Returns, Setting, difference, mean_return
from fallow.study.summary import Interval, Missing, Summary


@dataclass(frozen=True)
class Finding:
    """One rule compared with another in one setting, paired by seed and trunk."""

    setting: Setting
    rule: str
    against: str
    difference: Summary
    """J of `rule` less J of `against`."""
    improvement: float | None
    """Probability that a seed of `rule` has a higher J than one of `against`."""

    @property
    def interval(self) -> Interval | None:
        """95 % t interval of the mean difference."""
        return self.difference.interval

    @property
    def signs(self) -> tuple[int, int]:
        """(seeds in which `rule` is higher, seeds compared)."""
        return self.difference.n_positive, self.difference.n

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.difference.clear

    @property
    def equal(self) -> bool:
        """Whether every seed has exactly the same J under both rules."""
        return bool(self.difference.values) and not any(self.difference.values)


@dataclass(frozen=True)
class Leader:
    """The rule with the highest mean return of a setting, and its lead."""

    rules: tuple[str, ...]
    """Several where every seed has the same J under them."""
    reached: Summary
    runner_up: str
    lead: Summary
    """Over `runner_up`, paired."""


@dataclass(frozen=True)
class SettingFindings:
    """The findings of one setting."""

    setting: Setting
    reached: dict[str, Summary]
    """J over seeds, by rule in the order of the tables."""
    against: str
    """The rule that the others are compared with."""
    findings: tuple[Finding, ...]
    """In the order of the tables."""
    leader: Leader | None
    """None: fewer than three rules, or a seed is missing."""


@dataclass(frozen=True)
class StudyFindings:
    """The findings of a study."""

    settings: tuple[SettingFindings, ...]
    digits: int
    """Decimals that its returns are shown with."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of all settings."""
        return tuple(one for part in self.settings for one in part.findings)

    @property
    def rules(self) -> tuple[str, ...]:
        """All rules, in the order of the tables."""
        rules = {rule for part in self.settings for rule in part.reached}
        return tuple(sorted(rules, key=rule_order))

    @property
    def missing(self) -> tuple[Missing, ...]:
        """Branches that are in no comparison."""
        return tuple(one for f in self.findings for one in f.difference.missing)


def findings(study: StudyResults) -> StudyFindings:
    """The findings of a study so far."""
    return findings_of(study.returns)


def findings_of(returns: Returns) -> StudyFindings:
    """Every rule against `passive`, or against the first rule where that is missing."""
    settings = sorted(returns.settings, key=setting_order)
    return StudyFindings(
        settings=tuple(_setting_findings(returns, setting) for setting in settings),
        digits=digits_for([branch.value for branch in returns.branches]),
    )


def interquartile_mean(values: Sequence[float]) -> float | None:
    """Mean without the floor(n / 4) lowest and as many highest; None of no values."""
    n_cut = len(values) // 4
    inner = sorted(values)[n_cut : len(values) - n_cut]
    return float(np.mean(inner)) if inner else None


def probability_of_improvement(
    values: Sequence[float], others: Sequence[float]
) -> float | None:
    """P(X > Y) over all pairs of a value X and another's Y; a tie counts half.

    None if either has fewer than two values: one pair is no probability.
    """
    if min(len(values), len(others)) < 2:
        return None
    gaps = np.subtract.outer(np.asarray(values), np.asarray(others))
    return float((np.sign(gaps) + 1).mean() / 2)


def _setting_findings(returns: Returns, setting: Setting) -> SettingFindings:
    rules = sorted(returns.rules(setting), key=rule_order)
    reached = {rule: mean_return(returns, setting, rule) for rule in rules}
    against = baseline_of(returns, setting)
    assert against is not None  # a setting has at least one branch
    found = tuple(
        Finding(
            setting,
            rule,
            against,
            difference(returns, setting, rule, against),
            probability_of_improvement(reached[rule].values, reached[against].values),
        )
        for rule in rules
        if rule != against
    )
    leader = _leader(returns, setting, reached)
    return SettingFindings(setting, reached, against, found, leader)


def _leader(
    returns: Returns, setting: Setting, reached: dict[str, Summary]
) -> Leader | None:
    means = {rule: one.mean for rule, one in reached.items() if one.mean is not None}
    if len(means) < 3 or not all(one.complete for one in reached.values()):
        return None
    first, second = sorted(means, key=lambda rule: -means[rule])[:2]
    lead = difference(returns, setting, first, second)
    if lead.mean is None or lead.interval is None:
        return None
    rules = [first]
    if not any(lead.values):
        rules = [
            r for r in means if not any(difference(returns, setting, r, first).values)
        ]
    return Leader(tuple(rules), reached[first], second, lead)
