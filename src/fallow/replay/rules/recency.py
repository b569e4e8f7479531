"""Keep the newest."""

from dataclasses import dataclass

from fallow.replay.ledger import Ledger
from fallow.replay.rules.rule import Rule, check_budget, register
from fallow.replay.spans import Spans


@register("recency")
@dataclass(frozen=True)
class Recency(Rule):
    """the newest steps, all equally often

    Stale share after k new steps: max(0, 1 - k / w).
    """

    window_transitions: int = 10_000
    """w, summed over the agent's worlds."""

    colour = "#c85500"

    def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
        return (ledger.newest(self.window_transitions),)

    def check(self, ledger: Ledger) -> None:
        limit = ledger.capacity_transitions
        check_budget(self, "window_transitions", self.window_transitions, limit)
