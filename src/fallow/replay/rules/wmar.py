"""Half recent, half diverse, after World Models with Augmented Replay."""

from dataclasses import dataclass

import numpy as np

from fallow.replay.book import CHUNK, Book
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
    """The newest so many steps."""
    long_transitions: int = 10_000
    """A uniform sample of so many steps of the whole history, as whole chunks."""
    label = "WMAR"
    keeps_by_key = True

    def parts(self, book: Book) -> tuple[Spans, ...]:
        return book.newest(self.short_transitions), book.kept(self.long_transitions)

    def victim(self, book: Book) -> int:
        """The smallest key, but for chunks that the newest steps need."""
        slots = book.slots(finished=True)
        newest = book.newest(self.short_transitions)
        first = np.array(book.heads)
        np.minimum.at(first, newest.world, newest.start)
        old = slots[book.stop_of(slots) <= first[book.world[slots]]]
        return int(old[np.argmin(book.key[old])])

    def check(self, book: Book) -> None:
        limit = book.capacity_transitions - book.n_worlds * CHUNK  # half-used chunks
        check_budget(self, "short_transitions", self.short_transitions, limit)
        limit -= self.short_transitions
        check_budget(self, "long_transitions", self.long_transitions, limit)
