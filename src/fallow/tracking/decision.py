"""Which regime the suspicious episodes belong to, weighed together.

Suspicion adds episodes up as if their errors were independent. Here all of them share
one body model whose errors may persist, so a policy in new states explains itself: the
model is free to bend there by as much as its drift allows.
"""

from dataclasses import dataclass, replace

import numpy as np

from fallow.tracking.body import BodyModel
from fallow.tracking.evidence import Evidence, Spread
from fallow.tracking.features import Design, stacked
from fallow.tracking.hypotheses import Explanation, explain
from fallow.tracking.regimes import KnownRegime

KNOWN_FACTOR, NEW_FACTOR = 2.0, 5.0
"""Thresholds that the joint evidence must reach for a known and for a new regime: the
body model's errors persist over episodes, and a known regime is likelier than a new
one."""
KNOWN_SHARE = 0.65
"""Of the best explanation's score that a known regime must reach to be preferred."""


@dataclass(frozen=True)
class Verdict:
    """What explains the last episodes best."""

    n_recent: int
    """How many of them belong to the other regime."""
    found: Explanation
    known: KnownRegime | None
    """The known regime that explains them about as well, if there is one."""

    def accepted(self, threshold: float) -> bool:
        """Whether the evidence suffices."""
        factor = NEW_FACTOR if self.known is None else KNOWN_FACTOR
        return self.found.score >= factor * threshold


def judge(
    designs: list[Design],
    body: BodyModel,
    spread: Spread,
    present: KnownRegime,
    others: list[KnownRegime],
    min_episodes: int,
) -> Verdict:
    """The best explanation of the last episodes by a change from the present regime.

    The change may be more recent than the first suspicious episode, so the last few
    are weighed alone as well.
    """
    n = len(designs)
    fewest = min(min_episodes, n)
    windows = sorted({fewest, min(fewest + 1, n), n})
    weighed = [
        (k, *_explained(stacked(designs[-k:]), body, spread, present.theta))
        for k in windows
    ]
    n_recent, evidence, found = max(weighed, key=lambda w: w[2].score)
    return Verdict(n_recent, found, _known(evidence, found, present, others))


def _explained(
    design: Design, body: BodyModel, spread: Spread, base: np.ndarray
) -> tuple[Evidence, Explanation]:
    """Evidence linearised at the explanation that the evidence at the base gives.

    The score is that of the second linearisation, which tells changes from novelty
    best; the parameters are those of the first, which are the less biased ones.
    """

    def evidence_at(theta: np.ndarray) -> Evidence:
        return spread.weaken(body.fit(design, theta), theta)

    first = explain(evidence_at(base), base)
    evidence = evidence_at(first.theta)
    second = explain(evidence, base)
    if first.kind == second.kind:
        second = replace(second, theta=first.theta)
    return evidence, second


def _known(
    evidence: Evidence,
    found: Explanation,
    present: KnownRegime,
    others: list[KnownRegime],
) -> KnownRegime | None:
    if not others:
        return None
    start = float(evidence.log_likelihood(present.theta))
    scores = [float(evidence.log_likelihood(r.theta)) - start for r in others]
    best = int(np.argmax(scores))
    return others[best] if scores[best] >= KNOWN_SHARE * found.score else None
