"""Sample more often what the present model predicts badly: the opposite of graded."""

from dataclasses import dataclass

import numpy as np

from fallow.core import options
from fallow.replay.ledger import Ledger
from fallow.replay.rules.rule import Rule, register
from fallow.replay.spans import Spans


@register("curious")
@dataclass(frozen=True)
class Curious(Rule):
    """all that is stored, more often the larger the error and the fewer the visits

    After Curious Replay: start weight c b^v + (e + eps)^alpha, with v how often the
    chunk was sampled from and e its last known model error; a chunk without one has the
    largest. Stale share: T s / (T s + k f), with s and f the mean weights of stale and
    fresh chunks.
    """

    c: float = 1e4
    b: float = 0.7
    alpha: float = 0.7
    eps: float = 0.01
    needs_errors = True
    needs_visits = True

    colour = "#a3273f"

    def __post_init__(self) -> None:
        for option in ("c", "b", "alpha"):
            value = getattr(self, option)
            options.check_number("rule 'curious'", option, value, at_least=0)
        options.check_number("rule 'curious'", "eps", self.eps, above=0)

    def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
        slots = ledger.slots()
        error = ledger.error[slots]
        known = np.isfinite(error)
        worst = error[known].max() if known.any() else 1.0
        novelty = self.c * self.b ** ledger.visits[slots].astype(float)
        surprise = (np.where(known, error, worst) + self.eps) ** self.alpha
        return (ledger.chunk_spans(slots, novelty + surprise),)
