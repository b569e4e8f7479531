"""Half recent, half diverse, after World Models with Augmented Replay."""

from dataclasses import dataclass

import numpy as np

from fallow.replay.ledger import CHUNK, Ledger
from fallow.replay.rules.rule import Rule, check_budget, register
from fallow.replay.spans import Spans


@register("wmar")
@dataclass(frozen=True)
class Wmar(Rule):
    """each minibatch wholly from the newest steps or from a reservoir, half and half

    Stale share: the mean of those of `recency` and `reservoir`. A long part that holds
    the whole history makes the rule half `recency`, half `passive`.
    """

    short_transitions: int = 10_000
    """Number of newest steps."""
    long_transitions: int = 500_000
    """Size of a uniform sample of the whole history, in whole chunks."""
    label = "WMAR"
    colour = "#b44f8b"
    keeps_by_key = True

    def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
        return ledger.newest(self.short_transitions), ledger.kept(self.long_transitions)

    def victim(self, ledger: Ledger) -> int:
        """The smallest key, but for chunks that the newest steps need."""
        slots = ledger.slots(finished=True)
        newest = ledger.newest(self.short_transitions)
        first = np.array(ledger.heads)
        np.minimum.at(first, newest.world, newest.start)
        old = slots[ledger.stop_of(slots) <= first[ledger.world[slots]]]
        return int(old[np.argmin(ledger.key[old])])

    def check(self, ledger: Ledger) -> None:
        limit = (
            ledger.capacity_transitions - ledger.n_worlds * CHUNK
        )  # half-used chunks
        check_budget(self, "short_transitions", self.short_transitions, limit)
        limit -= self.short_transitions
        check_budget(self, "long_transitions", self.long_transitions, limit)
