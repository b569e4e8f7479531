"""Keep a uniform sample of the whole history."""

from dataclasses import dataclass

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError, unknown
from fallow.replay.ledger import CHUNK, Ledger
from fallow.replay.rules.rule import Rule, check_budget, register
from fallow.replay.spans import Spans, overlaps

UNITS = ("chunk", "episode")


@register("reservoir")
@dataclass(frozen=True)
class Reservoir(Rule):
    """a uniform sample of the whole history, by chunks or by whole episodes

    Each chunk and each episode has a random key; those with the largest keys ever seen
    are an exact uniform sample without replacement. Stale share after k new steps on T
    old ones: T / (T + k) on average, as with `passive`; only the number of distinct
    steps differs. As long as the whole history fits, all of it is kept.

    By chunks: stretches of `stretch_transitions` steps, of which finished ones can be
    sampled; sequences never leave their stretch. A sequence as long as its stretch is
    always the same one, and a model can learn it by heart.

    By episodes: finished episodes are kept or given up whole, and running ones are
    sampled from their first row, beside the budget. Sequences continue over seams, as
    with `passive`.
    """

    budget_transitions: int = 10_000
    """At most so many distinct steps are kept of what is finished."""
    unit: str = "chunk"
    """What is kept or given up together: `chunk` or `episode`."""
    stretch_transitions: int = CHUNK
    """Of unit `chunk`: so many steps in a row; a multiple of 64."""
    keeps_by_key = True

    colour = "#946800"

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise unknown("unit of rule 'reservoir'", str(self.unit), UNITS)
        if self.unit == "episode" and self.stretch_transitions != CHUNK:
            raise FallowError(
                f"rule 'reservoir': stretch_transitions is {self.stretch_transitions} "
                "and unit=episode keeps whole episodes; leave one of them out"
            )

    def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
        if self.unit == "episode":
            return (ledger.episode_spans(self._kept_episodes(ledger).astype(float)),)
        return (ledger.kept(self.budget_transitions, self.stretch_transitions),)

    def victim(self, ledger: Ledger) -> int:
        """The slot that the sample needs least."""
        if self.unit == "episode":
            return self._victim_by_episode(ledger)
        return self._victim_by_chunk(ledger)

    def _kept_episodes(self, ledger: Ledger) -> np.ndarray:
        return ledger.kept_episodes(self.budget_transitions)

    def _victim_by_episode(self, ledger: Ledger) -> int:
        """The oldest that no kept or running episode is in; else the oldest."""
        slots = ledger.slots(finished=True)
        needed = ledger.episode_spans(self._kept_episodes(ledger).astype(float))
        chunks, _ = overlaps(ledger.chunk_spans(slots), needed.masked_out())
        free = np.delete(slots, np.unique(chunks))
        return ledger.oldest(free if len(free) else slots)

    def _victim_by_chunk(self, ledger: Ledger) -> int:
        """The last of a stretch: a broken one, or else that of the smallest key."""
        slots = ledger.slots(finished=True)
        first, n_chunks = ledger.stretches(self.stretch_transitions)
        begin = slots[first]
        last_step = np.asarray(ledger.heads)[ledger.world[begin]] - 1
        running = ledger.chunk[begin] * CHUNK + self.stretch_transitions > last_step
        whole = n_chunks == self.stretch_transitions // CHUNK
        worst = np.argmin(np.where(whole | running, ledger.key[begin], -1.0))
        return int(slots[first[worst] + n_chunks[worst] - 1])

    def check(self, ledger: Ledger) -> None:
        stretch, budget = self.stretch_transitions, self.budget_transitions
        owner = "rule 'reservoir'"
        if self.unit == "episode":
            limit = ledger.capacity_transitions
            check_budget(self, "budget_transitions", budget, limit)
            return
        options.check_int(owner, "stretch_transitions", stretch, at_least=CHUNK)
        if stretch % CHUNK:
            raise FallowError(
                f"{owner}: stretch_transitions is {stretch}; steps are stored "
                f"in chunks of {CHUNK}, so give a multiple of that"
            )
        # beside what is kept, every world fills a stretch
        limit = ledger.capacity_transitions - ledger.n_worlds * (stretch - CHUNK)
        check_budget(self, "budget_transitions", budget, limit)
        least = ledger.n_worlds * stretch  # so that one is finished when not all fits
        if budget < least:
            raise FallowError(
                f"{owner}: budget_transitions is {budget:,}; a stretch of "
                f"{stretch:,} steps in each of {ledger.n_worlds} worlds takes "
                f"{least:,}: give at least as many, or a smaller stretch_transitions"
            )
