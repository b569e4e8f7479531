"""What a rule could sample now, and what was sampled so far."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fallow.core.records import NO_REGIME
from fallow.replay.ledger import CHUNK, FREE, Ledger
from fallow.replay.spans import Pieces, Spans, overlaps

AGE_EDGES = np.concatenate([[0], 2 ** np.arange(25)])
"""Ages in steps of the agent; the last bin is open."""


@dataclass(frozen=True)
class Composition:
    """Shares of start weight, or of sampled steps."""

    share_by_regime: dict[int, float]
    stale_share: float | None
    """Share of regimes other than the present one; None where labels are missing.

    Labels are the regimes given to the buffer, or else the tracker's.
    """
    age_histogram: np.ndarray
    """Share of each bin of `AGE_EDGES`."""
    effective_steps: float
    """(sum w)² / sum w², over steps: how many equally weighted ones it is worth."""
    n_steps: float
    """Steps that can be sampled, or that were sampled."""


def known_regimes(ledger: Ledger) -> tuple[np.ndarray, int]:
    """Regime of every episode and the present one.

    Those that the buffer was given; if it was given none, the tracker's: what it has
    decided, not the new regime that it may suspect.
    """
    labels = ledger.episodes["label"].astype(np.int64)
    is_labelled = labels != NO_REGIME
    if ledger.present_regime != NO_REGIME or not is_labelled.any():
        return ledger.episode_regimes(), ledger.present_regime
    present = int(labels[is_labelled][-1])
    return np.where(is_labelled, labels, present), present


def of_spans(ledger: Ledger, parts: tuple[Spans, ...]) -> Composition:
    """What can be sampled now; several parts count alike."""
    tally = Tally()
    for spans in parts:
        weight = np.ones(len(spans.world)) if spans.weight is None else spans.weight
        total = float((weight * spans.length).sum())
        if total > 0:
            _add_part(tally, ledger, spans, weight / total)
    return tally.composition()


def _add_part(tally: "Tally", ledger: Ledger, spans: Spans, weight: np.ndarray) -> None:
    episodes, index = ledger.episode_ranges()
    source, target = overlaps(spans, episodes)
    start = np.maximum(spans.start[source], episodes.start[target])
    length = np.minimum(spans.stop[source], episodes.stop[target]) - start
    world = spans.world[source]
    youngest = ledger.now - 1 - ledger.times.time_of(world, start + length - 1)
    regimes, present = known_regimes(ledger)
    regime = regimes[index[target]]
    tally.add(youngest, length, weight[source], regime, present)
    tally.n_steps += spans.n_steps
    tally.squares += float((weight**2 * spans.length).sum())
    tally.total += 1.0


@dataclass
class Tally:
    """Sums that make a composition."""

    by_regime: dict[int, float] = field(default_factory=dict)
    stale: float = 0.0
    labelled: float = 0.0
    ages: np.ndarray = field(default_factory=lambda: np.zeros(len(AGE_EDGES)))
    total: float = 0.0
    squares: float = 0.0
    n_steps: float = 0.0

    def add(
        self,
        youngest: np.ndarray,
        length: np.ndarray,
        weight: np.ndarray,
        regime: np.ndarray,
        present: int,
    ) -> None:
        """Count stretches of steps of consecutive ages, from `youngest` on."""
        mass = length * weight
        shares = np.bincount(regime - NO_REGIME, mass)
        for label in np.flatnonzero(shares).tolist():
            known_share = self.by_regime.get(label + NO_REGIME, 0.0)
            self.by_regime[label + NO_REGIME] = known_share + float(shares[label])
        known = (regime != NO_REGIME) & (present != NO_REGIME)
        self.labelled += float(mass[known].sum())
        self.stale += float(mass[known & (regime != present)].sum())
        first = np.searchsorted(AGE_EDGES, youngest, side="right") - 1
        last = np.searchsorted(AGE_EDGES, youngest + length - 1, side="right") - 1
        whole = first == last
        self.ages += np.bincount(first[whole], mass[whole], len(AGE_EDGES))
        cut = ~whole  # over an edge: count the steps below each, take the differences
        most = length[cut, None]
        below = np.clip(AGE_EDGES[None] - youngest[cut, None], 0, most)
        steps = np.diff(np.concatenate([below, most], axis=1), axis=1)
        self.ages += (steps * weight[cut, None]).sum(axis=0)

    def to_json(self) -> dict[str, Any]:
        """The sums as plain numbers."""
        by_regime = [[label, mass] for label, mass in self.by_regime.items()]
        return {**vars(self), "by_regime": by_regime, "ages": self.ages.tolist()}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "Tally":
        """Take back what `to_json` gave."""
        by_regime = {int(label): mass for label, mass in saved["by_regime"]}
        ages = np.array(saved["ages"])
        return cls(**{**saved, "by_regime": by_regime, "ages": ages})

    def composition(self) -> Composition:
        """The sums as shares."""
        total = sum(self.by_regime.values()) or 1.0
        is_labelled = self.labelled > 0 and np.isclose(self.labelled, total)
        return Composition(
            share_by_regime={k: v / total for k, v in sorted(self.by_regime.items())},
            stale_share=self.stale / total if is_labelled else None,
            age_histogram=self.ages / total,
            effective_steps=self.total**2 / self.squares if self.squares else 0.0,
            n_steps=self.n_steps,
        )


class Record:
    """What was sampled since the last `clear`."""

    LIMIT = 512
    """Batches after which waiting samples are counted."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, Pieces]] = []
        self.clear()

    def clear(self) -> None:
        """Forget all samples."""
        self._waiting.clear()
        self.tally = Tally()

    def add(self, ledger: Ledger, pieces: Pieces) -> None:
        """Note one batch."""
        self._waiting.append((ledger.now, pieces))
        if len(self._waiting) >= self.LIMIT:
            self.count(ledger)

    def count(self, ledger: Ledger) -> None:
        """Count what waits; also called before labels or the present regime change."""
        if not self._waiting:
            return
        sizes = [len(p.world) for _, p in self._waiting]
        now = np.repeat([n for n, _ in self._waiting], sizes)
        world = np.concatenate([p.world for _, p in self._waiting])
        serial = np.concatenate([p.serial for _, p in self._waiting])
        left = np.concatenate([p.length for _, p in self._waiting])
        self._waiting.clear()
        self._count_visits(ledger, world, serial, left)
        episodes, index = ledger.episode_ranges()
        regimes, present = known_regimes(ledger)
        regimes = regimes[index]
        size = 1 + int(episodes.stop.max(initial=0))
        ends = episodes.world * size + episodes.stop
        while len(left):
            found = np.searchsorted(ends, world * size + serial, side="right")
            taken = np.minimum(left, episodes.stop[found] - serial)
            youngest = now - 1 - ledger.times.time_of(world, serial + taken - 1)
            ones = np.ones(len(taken))
            self.tally.add(youngest, taken, ones, regimes[found], present)
            self.tally.n_steps += float(taken.sum())
            more = left > taken
            serial, left = (serial + taken)[more], (left - taken)[more]
            now, world = now[more], world[more]

    def _count_visits(
        self, ledger: Ledger, world: np.ndarray, serial: np.ndarray, length: np.ndarray
    ) -> None:
        """One visit for every chunk that a piece touches."""
        first, last = serial // CHUNK, (serial + length - 1) // CHUNK
        for ahead in range(int((last - first).max(initial=0)) + 1):
            touched = first + ahead <= last
            slots = ledger.slot_of[world[touched], (first + ahead)[touched]]
            ledger.visits += np.bincount(slots[slots != FREE], minlength=ledger.n_slots)

    def composition(self, ledger: Ledger) -> Composition:
        """Shares of all sampled steps; the effective number is over their chunks."""
        self.count(ledger)
        visits = ledger.visits[ledger.chunk != FREE].astype(float)
        self.tally.total = float(visits.sum())
        self.tally.squares = float((visits**2).sum()) / CHUNK
        return self.tally.composition()
