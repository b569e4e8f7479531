"""Keep everything, sample every step equally often."""

from dataclasses import dataclass

from fallow.replay.ledger import Ledger
from fallow.replay.rules.rule import Rule, register
from fallow.replay.spans import Spans


@register("passive")
@dataclass(frozen=True)
class Passive(Rule):
    """all that is stored, every step equally often

    Stale share after k new steps on T old ones: T / (T + k).
    """

    colour = "#0072b2"

    def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
        return (ledger.stored(),)
