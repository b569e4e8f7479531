"""What may be sampled, as spans of steps, and how sequences are sampled from spans.

A step is known by its world and its serial number in that world's stream. A span is a
range of serials with one start weight for each of its steps; what no span covers is
masked. Sequences walk forward through spans. Where the next step is masked, missing or
not yet stored, they continue at the next span, world by world and then from the first
one again, so that all steps lie on one circle: with equal weights every step is
sampled equally often, at the edges too.
"""

import functools
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fallow.core.errors import FallowError


class Pieces(NamedTuple):
    """Unbroken parts of sampled sequences, one row each; a sequence has one or more."""

    sequence: np.ndarray  # which sequence of the batch
    at: np.ndarray  # first position in it
    world: np.ndarray
    serial: np.ndarray  # first step
    length: np.ndarray


@dataclass(frozen=True)
class Spans:
    """Ranges [start, stop) of serials, sorted by world and start, none overlapping."""

    world: np.ndarray  # (K,)
    start: np.ndarray  # (K,)
    stop: np.ndarray  # (K,)
    weight: np.ndarray | None = None  # (K,) of each step as a start; None: all equal
    is_closed: bool = False
    """Sequences stay inside the span they start in, as with whole chunks."""

    @cached_property
    def length(self) -> np.ndarray:
        """Steps of each span."""
        return self.stop - self.start

    @cached_property
    def mass_ends(self) -> np.ndarray:
        """Running sum of start weight."""
        mass = self.length if self.weight is None else self.length * self.weight
        return np.cumsum(mass)

    @cached_property
    def run(self) -> np.ndarray:
        """(K,) which unbroken run of steps each span belongs to."""
        follows = (self.world[1:] == self.world[:-1]) & (
            self.start[1:] == self.stop[:-1]
        )
        return np.concatenate([[0], np.cumsum(~follows)])

    @cached_property
    def run_first(self) -> np.ndarray:
        """(R,) the first span of each run."""
        return np.searchsorted(self.run, np.arange(self.run[-1] + 1))

    @cached_property
    def run_stop(self) -> np.ndarray:
        """(K,) where the run of each span ends."""
        last = np.append(self.run_first[1:], len(self.run)) - 1
        return self.stop[last][self.run]

    @property
    def n_steps(self) -> int:
        """Steps that can be sampled."""
        return int(self.length.sum())

    def masked_out(self) -> "Spans":
        """Only the spans that have steps and a positive weight."""
        keep = self.length > 0
        if self.weight is not None:
            keep &= self.weight > 0
        if keep.all():
            return self
        weight = None if self.weight is None else self.weight[keep]
        return Spans(
            self.world[keep], self.start[keep], self.stop[keep], weight, self.is_closed
        )


def sample(
    spans: Spans, batch: int, length: int, random: np.random.Generator
) -> Pieces:
    """Sample `batch` sequences of `length` steps."""
    if len(spans.world) == 0:
        raise FallowError(
            "nothing can be sampled: the rule masks all that is stored; "
            "store more, or choose another rule"
        )
    if spans.is_closed:
        return _sample_closed(spans, batch, length, random)
    chosen, offset = sample_starts(spans, batch, random)
    serial = spans.start[chosen] + offset
    if (serial + length <= spans.run_stop[chosen]).all():
        return unbroken(spans.world[chosen], serial, length)
    return _walk(spans, chosen, serial, length)


def unbroken(world: np.ndarray, serial: np.ndarray, length: int) -> Pieces:
    """One piece for each sequence."""
    sequence, at, lengths = _uncut(len(world), length)
    return Pieces(sequence, at, world, serial, lengths)


@functools.lru_cache(maxsize=16)
def _uncut(batch: int, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sequence, position and length of pieces that are whole sequences."""
    return np.arange(batch), np.zeros(batch, np.int64), np.full(batch, length)


def sample_starts(
    spans: Spans, n: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Which span, and which step of it, each of n sequences starts at."""
    ends = spans.mass_ends
    mass = random.random(n) * ends[-1]
    if spans.weight is None:
        place = mass.astype(np.int64)
        chosen = ends.searchsorted(place, side="right")
        return chosen, place - (ends[chosen] - spans.length[chosen])
    chosen = np.minimum(ends.searchsorted(mass, side="right"), len(ends) - 1)
    left = (ends[chosen] - mass) / spans.weight[chosen]  # steps up to the span's end
    offset = spans.length[chosen] - np.ceil(left).astype(np.int64)
    return chosen, np.clip(offset, 0, spans.length[chosen] - 1)


def _walk(spans: Spans, chosen: np.ndarray, serial: np.ndarray, length: int) -> Pieces:
    """Follow each sequence over the seams until it is long enough."""
    n_runs = len(spans.run_first)
    pieces: list[tuple[int, int, int, int, int]] = []
    for sequence, (span, step) in enumerate(zip(chosen, serial, strict=True)):
        at, span, step = 0, int(span), int(step)
        while at < length:
            taken = min(length - at, int(spans.run_stop[span]) - step)
            pieces.append((sequence, at, int(spans.world[span]), step, taken))
            at += taken
            span = int(spans.run_first[(spans.run[span] + 1) % n_runs])
            step = int(spans.start[span])
    return Pieces(*np.array(pieces, np.int64).T)


def _sample_closed(
    spans: Spans, batch: int, length: int, random: np.random.Generator
) -> Pieces:
    """Sequences of whole spans; a shorter sequence goes round inside its span.

    A span that fits is taken from its first step, and more spans follow, each sampled
    anew, until the sequence is long enough.
    """
    n_parts = -(-length // int(spans.length.min()))
    chosen = sample_starts(spans, batch * n_parts, random)[0].reshape(batch, n_parts)
    size = spans.length[chosen[:, 0]]
    turn = np.where(length < size, (random.random(batch) * size).astype(np.int64), 0)
    if n_parts == 1:
        return _go_round(spans, chosen[:, 0], turn, length)
    pieces: list[tuple[int, int, int, int, int]] = []
    for sequence in range(batch):
        at = 0
        for span in chosen[sequence].tolist():
            taken = min(length - at, int(spans.length[span]))
            if taken > 0:
                first, world = int(spans.start[span]), int(spans.world[span])
                pieces.append((sequence, at, world, first, taken))
                at += taken
    return Pieces(*np.array(pieces, np.int64).T)


def _go_round(
    spans: Spans, chosen: np.ndarray, turn: np.ndarray, length: int
) -> Pieces:
    """From step `turn` of each span to its end, and on from its first step."""
    world, start = spans.world[chosen], spans.start[chosen]
    taken = np.minimum(length, spans.length[chosen] - turn)
    if (taken == length).all():
        return unbroken(world, start + turn, length)
    again = np.flatnonzero(taken < length)
    order = np.argsort(np.concatenate([np.arange(len(chosen)), again]), kind="stable")
    first = Pieces(np.arange(len(chosen)), 0 * taken, world, start + turn, taken)
    rest = Pieces(
        again, taken[again], world[again], start[again], length - taken[again]
    )
    both = [np.concatenate(columns)[order] for columns in zip(first, rest, strict=True)]
    return Pieces(*both)


def overlaps(spans: Spans, others: Spans) -> tuple[np.ndarray, np.ndarray]:
    """Which spans share steps with which others, as pairs of indices.

    Both sorted by world and start, none overlapping among themselves.
    """
    size = 1 + int(max(spans.stop.max(initial=0), others.stop.max(initial=0)))
    first = np.searchsorted(
        others.world * size + others.stop, spans.world * size + spans.start, "right"
    )
    last = np.searchsorted(
        others.world * size + others.start, spans.world * size + spans.stop, "left"
    )
    n_pairs = np.maximum(last - first, 0)
    source = np.repeat(np.arange(len(spans.world)), n_pairs)
    before = np.cumsum(n_pairs) - n_pairs
    target = first[source] + np.arange(len(source)) - before[source]
    return source, target


def intersect(spans: Spans, stored: Spans) -> Spans:
    """The parts of `spans` that lie in `stored`; both sorted, none overlapping."""
    source, target = overlaps(spans, stored)
    return Spans(
        spans.world[source],
        np.maximum(spans.start[source], stored.start[target]),
        np.minimum(spans.stop[source], stored.stop[target]),
        None if spans.weight is None else spans.weight[source],
        spans.is_closed,
    )
