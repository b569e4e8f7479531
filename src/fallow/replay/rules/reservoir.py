"""Keep a uniform sample of the whole history."""

from dataclasses import dataclass, replace

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError, unknown
from fallow.replay.ledger import CHUNK, FREE, Ledger
from fallow.replay.rules.rule import Rule, check_budget, register
from fallow.replay.spans import Spans, overlaps

UNITS = ("episode", "chunk")


@register("reservoir")
@dataclass(frozen=True)
class Reservoir(Rule):
    """a uniform sample of the whole history, by whole episodes or by chunks

    Each episode and each chunk has a random key; those with the largest keys ever seen
    are an exact uniform sample without replacement. Stale share after k new steps on T
    old ones: T / (T + k) on average, as with `passive`; only the number of distinct
    steps differs. As long as the whole history fits, all of it is kept.

    By episodes: finished episodes are kept or given up whole, and running ones are
    sampled from their first row, beside the budget. Sequences continue over seams, as
    with `passive`. An episode longer than the budget is an error.

    By chunks: stretches of `stretch_transitions` steps, of which finished ones can be
    sampled; sequences never leave their stretch. A sequence as long as its stretch is
    always the same one, and a model can learn it by heart.
    """

    budget_transitions: int = 10_000
    """Maximum number of finished steps that are kept."""
    unit: str = "episode"
    """The unit that is kept or evicted: `episode` or `chunk`."""
    stretch_transitions: int = CHUNK
    """Length of a unit `chunk` in steps; a multiple of 64."""
    keeps_by_key = True

    colour = "#946800"

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise unknown("unit of rule 'reservoir'", str(self.unit), UNITS)
        if self.unit == "episode" and self.stretch_transitions != CHUNK:
            stretch = options.shown(self.stretch_transitions)
            raise FallowError(
                f"rule 'reservoir': stretch_transitions is {stretch} and whole "
                "episodes are kept; leave it out, or keep chunks: "
                f"reservoir:unit=chunk,stretch_transitions={stretch}"
            )

    @property
    def needs_episodes(self) -> bool:
        """Whether the buffer must know where episodes end."""
        return self.unit == "episode"

    def parts(self, ledger: Ledger) -> tuple[Spans, ...]:
        if self.unit == "episode":
            self._check_lengths(ledger)
            return (ledger.episode_spans(self._kept_episodes(ledger).astype(float)),)
        return (ledger.kept(self.budget_transitions, self.stretch_transitions),)

    def victim(self, ledger: Ledger) -> int:
        """The slot that the sample needs least."""
        if self.unit == "episode":
            return self._victim_by_episode(ledger)
        return self._victim_by_chunk(ledger)

    def _kept_episodes(self, ledger: Ledger) -> np.ndarray:
        """(n_episodes,) a uniform sample of whole episodes, and all running ones.

        Finished episodes are taken by their keys, largest first, until the next one
        does not fit; an episode that was dropped never comes back.
        """
        start, stop = ledger.episodes["start"], ledger.episodes["stop"]
        running = stop == FREE
        finished = np.flatnonzero(~running)
        order = finished[np.argsort(-ledger.episodes["key"][finished], kind="stable")]
        used = np.cumsum(stop[order] - start[order] - ledger.leading_rows)
        kept = running.copy()
        kept[order[used <= self.budget_transitions]] = True
        return kept & ~ledger.is_broken()

    def _check_lengths(self, ledger: Ledger) -> None:
        """Raise if a stored or running episode is longer than the budget."""
        start, stop = ledger.episodes["start"], ledger.episodes["stop"]
        running = stop == FREE
        heads = np.asarray(ledger.heads)[ledger.episodes["world"]]
        length = np.where(running, heads, stop) - start - ledger.leading_rows
        if length.max(initial=0) <= self.budget_transitions:
            return
        longest = int(length[running | ~ledger.is_broken()].max(initial=0))
        if longest > self.budget_transitions:
            chunks = replace(self, unit="chunk")
            raise FallowError(
                f"rule 'reservoir': budget_transitions is {self.budget_transitions:,} "
                f"and an episode has {longest:,} steps, of which all or none are kept; "
                f"give at least as many, or keep chunks: {chunks}"
            )

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
