"""Keep a uniform sample of the whole history."""

from dataclasses import dataclass

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError
from fallow.replay.book import CHUNK, Book
from fallow.replay.rules.rule import Rule, check_budget, register
from fallow.replay.spans import Spans


@register("reservoir")
@dataclass(frozen=True)
class Reservoir(Rule):
    """a uniform sample of the whole history, in stretches that sequences never leave

    The history is cut into stretches. Each has a random key from when it is begun; kept
    are the finished ones with the largest keys ever seen, which is an exact uniform
    sample without replacement. Stale share after k new steps on T old ones: T / (T + k)
    on average, as with `passive`; only the number of distinct steps differs. As long as
    the whole history fits, all of it is kept.

    A sequence as long as its stretch is always the same one, and a model can learn it
    by heart; in a longer stretch it starts anywhere, but there are fewer of those.
    """

    budget_transitions: int = 10_000
    """At most so many distinct steps can be drawn."""
    stretch_transitions: int = CHUNK
    """So many steps in a row are kept or given up together; a multiple of 64."""
    keeps_by_key = True

    def parts(self, book: Book) -> tuple[Spans, ...]:
        return (book.kept(self.budget_transitions, self.stretch_transitions),)

    def victim(self, book: Book) -> int:
        """The last of a stretch: a broken one, or else that of the smallest key."""
        slots = book.slots(finished=True)
        first, n_chunks = book.stretches(self.stretch_transitions)
        begin = slots[first]
        last_step = np.asarray(book.heads)[book.world[begin]] - 1
        running = book.chunk[begin] * CHUNK + self.stretch_transitions > last_step
        whole = n_chunks == self.stretch_transitions // CHUNK
        worst = np.argmin(np.where(whole | running, book.key[begin], -1.0))
        return int(slots[first[worst] + n_chunks[worst] - 1])

    def check(self, book: Book) -> None:
        stretch, budget = self.stretch_transitions, self.budget_transitions
        owner = "rule 'reservoir'"
        options.whole(owner, "stretch_transitions", stretch, at_least=CHUNK)
        if stretch % CHUNK:
            raise FallowError(
                f"{owner}: stretch_transitions is {stretch}; steps are stored "
                f"in chunks of {CHUNK}, so give a multiple of that"
            )
        # beside what is kept, every world fills a stretch
        limit = book.capacity_transitions - book.n_worlds * (stretch - CHUNK)
        check_budget(self, "budget_transitions", budget, limit)
        least = book.n_worlds * stretch  # so that one is finished when not all fits
        if budget < least:
            raise FallowError(
                f"{owner}: budget_transitions is {budget:,}; a stretch of "
                f"{stretch:,} steps in each of {book.n_worlds} worlds takes {least:,}: "
                "give at least as many, or a smaller stretch_transitions"
            )
