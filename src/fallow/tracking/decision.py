"""Decides which regime the suspicious episodes belong to, from all of them together.

Suspicion adds episodes up as if their errors were independent. Here all of them share
one body model whose errors may persist, so that the model can explain a policy in new
states: it may change there by as much as its drift allows.
"""

from dataclasses import dataclass, replace

import numpy as np

from fallow.tracking.body import BodyModel
from fallow.tracking.contest import Usual, predicted
from fallow.tracking.evidence import Evidence, Spread
from fallow.tracking.features import Design, stacked
from fallow.tracking.hypotheses import Explanation, explain, simple
from fallow.tracking.regimes import KnownRegime

KNOWN_FACTOR, NEW_FACTOR = 4.5, 6.0
"""Thresholds that the support of a known and of a new regime must reach: the body
model's errors persist over episodes, and a known regime is likelier than a new one."""
PREDICTION = 1.5
"""Thresholds of support for each standard deviation by which gains predict better."""
MIN_BETTER = 1.0
"""Standard deviations by which new values of all gains must predict better, and of one
of d gains a d-th of it: a policy in new states gives evidence for gains that then
predict no better."""
CERTAIN = 30.0
"""Thresholds of evidence that suffice without; unchanged bodies gave up to 22."""
AGAIN_FACTOR = 2.0
"""On the support of a second new regime: after a change the policy adapts, and what it
then visits looks like weaker gains."""
CORRECTED_EPISODES, CORRECTED_FACTOR = 24, 2.0
"""Episodes of a new regime in which another common factor, up to this one, corrects its
gains: the few episodes that set them were too few."""
KNOWN_SHARE = 0.65
"""Of the best explanation's score that a known regime must reach to be preferred."""
EXPLAINED = 0.85
"""Of the excess loss that may remain once gains explain a change."""
MAX_LEFT = 10.0
"""Standard deviations of it that may remain at most."""
STRONG = 8.0
"""Thresholds of evidence that new gains need if they leave more than `KNOWN_EXCESS`: a
policy that finds other states leaves as much."""
KNOWN_EXCESS, NEW_EXCESS = 2.5, 5.0
"""Standard deviations of excess loss at which a known or a new body is accepted."""
NEW_EPISODES = 3
"""Episodes that a new body needs."""
YOUNG_EPISODES = 30
"""Settled episodes after which the usual excess is known; with n fewer ones a new body
needs 30 / n times as much: a learner that has just begun changes its states most."""
MAX_EPISODES = 4
"""Most recent episodes that are predicted from each other."""


@dataclass(frozen=True)
class Models:
    """The models that the decision uses."""

    bodies: list[BodyModel]
    spread: Spread
    usual: Usual
    present: KnownRegime
    others: list[KnownRegime]
    min_episodes: int

    @property
    def body(self) -> BodyModel:
        """The body model in force."""
        return self.bodies[self.present.body]


@dataclass(frozen=True)
class Verdict:
    """The best explanation of the last episodes."""

    n_recent: int
    """How many of them belong to the other regime."""
    found: Explanation | None
    """The gains that explain them; None: another body."""
    known: KnownRegime | None
    """The known regime that explains them about as well, if there is one."""
    corrects: bool = False
    """Whether the gains correct those of the present regime."""


def verdict_of(
    designs: list[Design], models: Models, threshold: float
) -> Verdict | None:
    """The change from the present regime that explains the last episodes, if any does.

    The change may be more recent than the first suspicious episode, so the last few
    are weighed alone as well.
    """
    n = len(designs)
    fewest = min(models.min_episodes, n)
    weighed = [
        (k, *_explained(stacked(designs[-k:]), models))
        for k in sorted({fewest, min(fewest + 1, n), n})
    ]
    n_recent, evidence, found = max(weighed, key=lambda w: w[2].score)
    known = _known(evidence, found, models)
    recent = designs[-MAX_EPISODES:]
    usual, body = models.usual, models.body
    lost = Losses.of(recent, body, models.present.gain)
    body_regime, gained = _known_body(lost.same, recent, models)
    if body_regime is not None and gained >= KNOWN_SHARE * lost.gained.mean():
        return Verdict(len(recent), None, body_regime)
    gain = (known or found).gain
    after = Losses.of(recent, body, gain)
    better = float((lost.same - after.same).mean()) / usual.deviation
    corrects = known is None and corrects_present(found, models.present)
    least = KNOWN_FACTOR
    if known is None:
        is_second = models.present.id and not corrects
        least = NEW_FACTOR * (AGAIN_FACTOR if is_second else 1)
    changed = float(np.mean(gain != models.present.gain))
    is_better = better >= changed * MIN_BETTER or found.score >= CERTAIN * threshold
    is_enough = found.score / threshold + PREDICTION * better >= least and is_better
    is_other_body = n >= NEW_EPISODES and lost.is_other_body(usual)
    is_strong = known is not None or found.score >= STRONG * threshold
    most_left = MAX_LEFT if is_strong else KNOWN_EXCESS
    if (is_enough or is_other_body) and lost.explained_by(after, usual, most_left):
        return Verdict(n_recent, found, known, corrects)
    return Verdict(len(recent), None, None) if is_other_body else None


def corrects_present(found: Explanation, present: KnownRegime) -> bool:
    """Whether an explanation corrects a regime of gains that is new itself."""
    is_new = present.id > 0 and present.n_episodes < CORRECTED_EPISODES
    if not (is_new and present.is_gain and found.kind == "common"):
        return False
    factor = found.gain.sum() / max(present.gain.sum(), 1e-9)
    return bool(1 / CORRECTED_FACTOR <= factor <= CORRECTED_FACTOR)


@dataclass(frozen=True)
class Losses:
    """Losses of n episodes, predicted from each other."""

    same: np.ndarray  # (n,) on the same body
    other: np.ndarray  # (n,) on another body, hardly known

    @classmethod
    def of(cls, designs: list[Design], body: BodyModel, gain: np.ndarray) -> "Losses":
        """Of some episodes that are thought to be of a body with gains (d,)."""
        same = predicted(body, body.sums, designs, gain)
        return cls(same, predicted(body, body.vague, designs, gain))

    @property
    def gained(self) -> np.ndarray:
        """(n,) nats a step that another body gains."""
        return self.same - self.other

    def is_other_body(self, usual: Usual) -> bool:
        """Whether in every episode another body gains more than is usual."""
        young = max(1.0, YOUNG_EPISODES / max(usual.n_episodes, 1))
        return usual.excess(float(self.gained.min())) >= young * NEW_EXCESS

    def explained_by(
        self, after: "Losses", usual: Usual, most_left: float = MAX_LEFT
    ) -> bool:
        """Whether gains with losses `after` leave little for another body to gain."""
        left = usual.excess(float(after.gained.mean()))
        most = usual.excess(float(self.gained.mean()))
        return left <= max(min(EXPLAINED * most, most_left), KNOWN_EXCESS)


def _known_body(
    same: np.ndarray, designs: list[Design], models: Models
) -> tuple[KnownRegime | None, float]:
    """The regime of another body that predicts best, and the nats a step it gains."""
    best, most = None, KNOWN_EXCESS * models.usual.deviation
    for regime in models.others:
        if regime.body != models.present.body:
            sums = models.bodies[regime.body].sums
            loss = predicted(models.body, sums, designs, regime.gain)
            gained = float((same - loss).mean())
            if gained >= most:
                best, most = regime, gained
    return best, most


def review(designs: list[Design], body: BodyModel, models: Models) -> np.ndarray | None:
    """(d,) gains of a new regime after its trial, by how well they predict.

    The body is that of before the change. A common factor stands unless one joint
    predicts better: later episodes estimate it lower, as states move on. More
    episodes distinguish a dead joint from a weaker body, and gains from other changes,
    better than the first ones do. None: gains do not explain the regime.
    """
    regime = models.present
    base = regime.base
    evidence = models.spread.weaken(body.fit(stacked(designs), base), base)
    ones = sorted(simple(evidence, base), key=lambda e: -e.score)
    common = next(e.gain for e in ones if e.kind == "common")
    gains = [regime.gain]
    if np.count_nonzero(regime.gain != base) == 1 < len(base):
        gains.append(common)
    gains += [e.gain for e in ones if e.kind != "common"][:1]
    if len(base) > 1:
        gains.append(np.where(gains[-1] == base, base, 0.0))
    losses = [predicted(body, body.sums, designs, gain).mean() for gain in gains]
    gain = gains[int(np.argmin(losses))]
    after = Losses.of(designs, body, gain)
    explained = Losses.of(designs, body, base).explained_by(after, models.usual)
    return gain if explained else None


def _explained(design: Design, models: Models) -> tuple[Evidence, Explanation]:
    """Evidence linearised at the explanation that the evidence at the base gives.

    The score is that of the second linearisation, which distinguishes changes from new
    states best; the parameters are those of the first, which are the less biased ones.
    """
    base = models.present.gain

    def evidence_at(gain: np.ndarray) -> Evidence:
        return models.spread.weaken(models.body.fit(design, gain), gain)

    first = explain(evidence_at(base), base)
    evidence = evidence_at(first.gain)
    second = explain(evidence, base)
    if first.kind == second.kind:
        second = replace(second, gain=first.gain)
    return evidence, second


def _known(
    evidence: Evidence, found: Explanation, models: Models
) -> KnownRegime | None:
    others = [r for r in models.others if r.body == models.present.body]
    if not others:
        return None
    start = float(evidence.log_likelihood(models.present.gain))
    scores = [float(evidence.log_likelihood(r.gain)) - start for r in others]
    best = int(np.argmax(scores))
    return others[best] if scores[best] >= KNOWN_SHARE * found.score else None
