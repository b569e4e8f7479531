"""Sample what was stored under the dynamics now in force."""

from dataclasses import dataclass

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError
from fallow.core.records import NO_REGIME
from fallow.replay.ledger import Ledger
from fallow.replay.rules.rule import Rule, register
from fallow.replay.spans import Spans


@register("matched")
@dataclass(frozen=True)
class Matched(Rule):
    """episodes labelled with the present regime; the others with a small weight

    Labels are the truth, or an estimate set with `set_regimes`. Stale share: with S
    stale and F fresh steps, beta S / (beta S + F).
    """

    beta: float = 0.0
    """Start weight of steps from other regimes; 0 masks them."""

    colour = "#4f6d7a"

    def __post_init__(self) -> None:
        options.check_number("rule 'matched'", "beta", self.beta, at_least=0)

    def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
        if ledger.present_regime == NO_REGIME:
            raise FallowError(
                "rule 'matched' needs the present regime: pass regime=… to add, or set "
                "an estimate with set_present_regime"
            )
        fresh = ledger.episode_regimes() == ledger.present_regime
        return (ledger.episode_spans(np.where(fresh, 1.0, self.beta)),)
