"""What the demo is there to show, each claim said as far as its interval shows it."""

from collections.abc import Iterator
from dataclasses import dataclass

from fallow.dynamics import Condition
from fallow.replay import Rule
from fallow.report.cells import number
from fallow.report.findings import StudyFindings, findings
from fallow.report.names import rule_name
from fallow.study.results import StudyResults
from fallow.study.statistics import Setting, difference
from fallow.study.summary import Summary


@dataclass(frozen=True)
class Claim:
    """One rule has a higher return than another, where the body changes so."""

    text: str
    schedule: str
    """Of the condition."""
    higher: str
    lower: str


CLAIMS = (
    Claim(
        "After a change for good, forgetting beats keeping all",
        "permanent",
        "reset",
        "passive",
    ),
    Claim(
        "Where the old body returns, keeping all beats forgetting",
        "recurring",
        "passive",
        "reset",
    ),
    Claim(
        "The rule that looks at the body forgets where that pays",
        "permanent",
        "adaptive",
        "passive",
    ),
    Claim(
        "Where the old body returns, that rule does not forget",
        "recurring",
        "adaptive",
        "reset",
    ),
)


def claim_sentences(study: StudyResults) -> Iterator[str]:
    """Every claim that the study can test: shown, not shown, or the opposite."""
    found = findings(study)
    for claim in CLAIMS:
        for setting in study.returns.settings:
            rules = _rules(study, setting, claim)
            if rules is not None:
                gap = difference(study.returns, setting, *rules)
                yield _sentence(claim, rules, gap, found)


def _rules(
    study: StudyResults, setting: Setting, claim: Claim
) -> tuple[str, str] | None:
    """The claim's two rules as the study has them; None: it does not test the claim."""
    if Condition.parse(setting.condition).schedule_name != claim.schedule:
        return None
    named = {Rule.parse(text).name: text for text in study.returns.rules(setting)}
    if claim.higher not in named or claim.lower not in named:
        return None
    return named[claim.higher], named[claim.lower]


def _sentence(
    claim: Claim, rules: tuple[str, str], gap: Summary, found: StudyFindings
) -> str:
    higher, lower = map(rule_name, rules)
    if gap.mean is None or gap.interval is None:
        return f"Not shown: {claim.text}. There are too few seeds for an interval."
    size = number(gap.mean, found.digits, signed=True)
    low, high = (number(end, found.digits) for end in gap.interval)
    evidence = f"{higher} less {lower} {size}, 95 % interval {low} to {high}"
    if not gap.clear:
        signs = f"{gap.n_positive} of {gap.n} seeds are above 0"
        return f"Not shown: {claim.text} ({evidence}; it contains 0, {signs})."
    verdict = "Shown" if gap.mean > 0 else "The opposite came out"
    return f"{verdict}: {claim.text} ({evidence})."
