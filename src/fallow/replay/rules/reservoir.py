"""Keep a uniform sample of the whole history."""

from dataclasses import dataclass

import numpy as np

from fallow.replay.book import Book
from fallow.replay.rules.rule import Rule, check_budget, register
from fallow.replay.spans import Spans


@register("reservoir")
@dataclass(frozen=True)
class Reservoir(Rule):
    """a uniform sample of all chunks ever stored; a sequence never leaves its chunk

    Every chunk of 64 steps gets a random key when it is begun; kept are the finished
    chunks with the largest keys ever seen, which is an exact uniform sample without
    replacement. Stale share after k new steps on T old ones: T / (T + k) on average,
    as with `passive`; only the number of distinct steps differs.
    """

    budget_transitions: int = 10_000
    """At most so many distinct steps can be drawn."""
    keeps_by_key = True

    def parts(self, book: Book) -> tuple[Spans, ...]:
        return (book.kept(self.budget_transitions),)

    def victim(self, book: Book) -> int:
        slots = book.slots(finished=True)
        return int(slots[np.argmin(book.key[slots])])

    def check(self, book: Book) -> None:
        limit = book.capacity_transitions
        check_budget(self, "budget_transitions", self.budget_transitions, limit)
