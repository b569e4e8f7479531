"""Starts of sequences that lie within one finished episode.

Elsewhere sequences are joined at seams (see `spans`). Here nothing is joined: a start
is a step from which so many steps follow in one episode, all of them stored and not
masked. Starts are sampled by the weights of their spans, so with equal weights every
sequence that exists is sampled equally often, and a step near an episode's edge less
often than one in its middle, as it is in fewer sequences.
"""

import numpy as np

from fallow.replay.ledger import Ledger
from fallow.replay.spans import Spans, overlaps


def starts(spans: Spans, episodes: Spans, length: int) -> Spans:
    """The steps of `spans` from which `length` steps follow in one of the episodes.

    A sequence continues in a span that touches its span, except for closed spans.
    """
    source, target = overlaps(spans, episodes)
    start = np.maximum(spans.start[source], episodes.start[target])
    stop = np.minimum(spans.stop[source], episodes.stop[target])
    end = stop if spans.is_closed else _unbroken_until(start, stop, target)
    return Spans(
        spans.world[source],
        start,
        np.maximum(np.minimum(stop, end - length + 1), start),
        None if spans.weight is None else spans.weight[source],
    ).masked_out()


def _unbroken_until(
    start: np.ndarray, stop: np.ndarray, episode: np.ndarray
) -> np.ndarray:
    """Where steps that follow each other in an episode end, for each part of it."""
    breaks = (episode[1:] != episode[:-1]) | (start[1:] != stop[:-1])
    last = np.append(np.flatnonzero(breaks), len(stop) - 1)
    return stop[last[np.searchsorted(last, np.arange(len(stop)))]]


class Starts:
    """Starts in the parts of a rule, worked out anew only when those change.

    What may be sampled of finished episodes changes once an episode with most rules,
    while the ledger changes with every step.
    """

    def __init__(self) -> None:
        self._length = 0
        self._given: tuple[Spans, ...] | None = None
        self._finished: list[Spans] = []
        self._parts: list[Spans] = []

    def of(self, ledger: Ledger, parts: tuple[Spans, ...], length: int) -> list[Spans]:
        """For each part that has some: where sequences can start."""
        if parts is self._given and length == self._length:
            return self._parts  # asked again between two steps
        self._given = parts
        finished = [ledger.finished(spans).masked_out() for spans in parts]
        if length != self._length or not _same(finished, self._finished):
            episodes, _ = ledger.episode_ranges()
            found = [starts(spans, episodes, length) for spans in finished]
            self._parts = [spans for spans in found if len(spans.world)]
            self._finished, self._length = finished, length
        return self._parts


def _same(some: list[Spans], others: list[Spans]) -> bool:
    return len(some) == len(others) and all(
        one.is_closed == other.is_closed
        and np.array_equal(one.start, other.start)
        and np.array_equal(one.stop, other.stop)
        and np.array_equal(one.world, other.world)
        and (one.weight is None) == (other.weight is None)
        and (one.weight is None or np.array_equal(one.weight, other.weight))  # type: ignore[arg-type]
        for one, other in zip(some, others, strict=True)
    )
