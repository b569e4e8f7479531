"""The ledger: the record of what is stored, which rules read. It holds no data.

A world's steps form a stream, numbered by *serial*. Streams are cut into chunks of 64
steps; a chunk fills a slot of 64 rows and has one random key, one last model error,
one count of visits, and a stamp that no other chunk ever has. What is the same for a
whole episode is stored once. Time counts steps of the agent: one `add` of all worlds
is one step.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fallow.core import options, seeds
from fallow.core.errors import FallowError
from fallow.core.records import NO_REGIME
from fallow.replay.growing_table import GrowingTable
from fallow.replay.spans import Spans, intersect
from fallow.replay.step_times import StepTimes

CHUNK = 64
"""Steps in a chunk."""
FREE = -1
MAX_TRANSITIONS, MAX_WORLDS = 10**8, 10**5
"""Limits of a buffer; more is a slip of the hand."""

Victim = Callable[["Ledger"], int]
"""The slot to evict when all are in use; None: the oldest."""


class Ledger:
    """Ledger of one buffer."""

    def __init__(self, n_worlds: int, capacity_transitions: int, seed: int = 0) -> None:
        options.check_int("buffer", "n_worlds", n_worlds, 1, MAX_WORLDS)
        options.check_int(
            "buffer", "capacity_transitions", capacity_transitions, 1, MAX_TRANSITIONS
        )
        seed = options.integer("buffer", "seed", seed, at_least=0)
        self.n_worlds = n_worlds
        self.capacity_transitions = capacity_transitions
        """At least so many of the newest steps are always stored."""
        # one chunk more, since a whole one is given up when a new one is begun
        self.slots_per_world = -(-capacity_transitions // (CHUNK * n_worlds)) + 1
        # where worlds do not step together, the newest steps of each can begin and end
        # inside a chunk: one slot more for each world
        self.n_slots = n_worlds * (self.slots_per_world + 1)
        self.leading_rows = 1
        """Rows of an episode before its first transition; 0 where a row is a whole one.
        """
        self.now = 0
        """Steps of the agent so far."""
        self.version = 0
        """Changes whenever weights may have."""
        self.changes: list[int] = []
        """Times at which `note_change` was called."""
        self.present_regime = NO_REGIME
        self.label_probabilities: np.ndarray = np.zeros(0)
        """Of each labelled regime to be the one in force."""
        self.label_mismatch: np.ndarray = np.zeros((0, 0))
        """Between labelled regimes; below 0 where it is unknown."""
        self.heads = [0] * n_worlds
        """Next serial of each world."""
        self.times = StepTimes(n_worlds)
        self._base_rows = [0] * n_worlds  # of the chunk being filled
        self._quiet_until = 0  # serial before which only a single world's head moves
        self.is_ring = True
        """Whether every world's slots follow each other in order, oldest first."""
        self.slot_of = np.full((n_worlds, 64), FREE, np.int32)  # by world and chunk
        self.world = np.full(self.n_slots, FREE, np.int32)
        self.chunk = np.full(self.n_slots, FREE, np.int64)
        self.key = np.zeros(self.n_slots)
        self.error = np.full(self.n_slots, np.nan)
        self.visits = np.zeros(self.n_slots, np.int64)
        self.stamp = np.full(self.n_slots, FREE, np.int64)
        self.n_stamps = 0
        self._sorted_at = -1  # when what follows was worked out
        self._sorted = self._finished = np.zeros(0, np.int64)
        self._kept: dict[tuple[int, int], Spans] = {}
        self.episodes = GrowingTable(
            world=np.int32,
            start=np.int64,
            stop=np.int64,
            regime=np.int16,
            label=np.int16,
            key=np.float64,
        )
        self.running = [FREE] * n_worlds
        self.keys = seeds.generator(seed, "replay-keys")
        """Gives every chunk its random key."""
        self.seed = seed
        """Gives every episode its random key."""

    # ---------------------------------------------------------------- writing

    def advance(
        self, world: int, is_first: bool, time: int, victim: Victim | None
    ) -> int:
        """Make room for one step of a world; returns its row."""
        self._quiet_until = 0
        serial = self.heads[world]
        offset = serial % CHUNK
        if offset == 0:
            self._open_chunk(world, serial // CHUNK, victim)
        self.times.note(world, serial, time)
        if is_first or self.running[world] == FREE:
            self.end_episode(world)
            self.running[world] = self.episodes.append(
                world=world,
                start=serial,
                stop=FREE,
                regime=NO_REGIME,
                label=NO_REGIME,
                key=self.episode_key(self.episodes.n),
            )
        self.heads[world] = serial + 1
        return self._base_rows[world] + offset

    def advance_all(self, is_first: list[bool], victim: Victim | None) -> list[int]:
        """Make room for one step of every world; returns their rows."""
        now, rows = self.now, []
        for world, first in enumerate(is_first):
            serial = self.heads[world]
            begins = first or serial % CHUNK == 0 or self.running[world] == FREE
            if begins or now - serial != self.times.lags[world]:
                rows.append(self.advance(world, first, now, victim))
            else:  # only the head moves
                self.heads[world] = serial + 1
                rows.append(self._base_rows[world] + serial % CHUNK)
        self.now = now + 1
        self.version += 1
        return rows

    def advance_one(self, is_first: bool, victim: Victim | None) -> int:
        """Make room for one step of a single world; returns its row."""
        serial = self.heads[0]
        if is_first or serial >= self._quiet_until:
            (row,) = self.advance_all([is_first], victim)
            self._quiet_until = (serial // CHUNK + 1) * CHUNK
            return row
        self.heads[0] = serial + 1  # only the head moves
        self.now += 1
        self.version += 1
        return self._base_rows[0] + serial % CHUNK

    def end_episode(self, world: int) -> None:
        """The running episode of a world is over; it belongs to the present regime."""
        self._quiet_until = 0
        episode = self.running[world]
        if episode != FREE:
            self.episodes["stop"][episode] = self.heads[world]
            self.episodes["regime"][episode] = self.present_regime
            self.running[world] = FREE

    def episode_key(self, episode: int) -> float:
        """A random key, the same whenever the episode is asked for."""
        return float(seeds.generator(self.seed, "episode key", episode).random())

    def _open_chunk(self, world: int, chunk: int, victim: Victim | None) -> None:
        slot = world * self.slots_per_world + chunk % self.slots_per_world
        in_order = victim is None and self.is_ring and not self._is_uneven
        if self.chunk[slot] != FREE and not in_order:
            self.is_ring = False
            free = np.flatnonzero(self.chunk == FREE)
            slot = int(free[0]) if len(free) else (victim or Ledger.oldest)(self)
        if self.chunk[slot] != FREE:
            self.slot_of[self.world[slot], self.chunk[slot]] = FREE
        if chunk >= self.slot_of.shape[1]:
            more = np.full_like(self.slot_of, FREE)
            self.slot_of = np.concatenate([self.slot_of, more], axis=1)
        self.slot_of[world, chunk] = slot
        self.world[slot], self.chunk[slot] = world, chunk
        self.key[slot] = self.keys.random()
        self.error[slot], self.visits[slot] = np.nan, 0
        self.stamp[slot] = self.n_stamps
        self.n_stamps += 1
        self._base_rows[world] = slot * CHUNK

    @property
    def _is_uneven(self) -> bool:
        """Whether some worlds have stored more than others; one step is in between."""
        return max(self.heads) - min(self.heads) > 1

    def oldest(self, slots: np.ndarray | None = None) -> int:
        """Of some slots, or all finished ones, that whose last step is the oldest."""
        slots = self.slots(finished=True) if slots is None else slots
        ended = self.times.time_of(self.world[slots], self.stop_of(slots) - 1)
        return int(slots[np.argmin(ended)])

    # ---------------------------------------------------------------- reading

    def slots(self, finished: bool = False) -> np.ndarray:
        """Slots in use by world and serial; `finished` leaves out each world's last."""
        if self._sorted_at != self.n_stamps:
            used = np.flatnonzero(self.chunk != FREE)
            self._sorted = used[np.lexsort((self.chunk[used], self.world[used]))]
            last = (np.asarray(self.heads) - 1) // CHUNK
            filled = self.chunk[self._sorted] < last[self.world[self._sorted]]
            self._finished = self._sorted[filled]
            self._kept.clear()
            self._sorted_at = self.n_stamps
        return self._finished if finished else self._sorted

    def kept(self, budget_transitions: int, stretch_transitions: int = CHUNK) -> Spans:
        """A uniform sample of the history within a budget; all, as long as all fits.

        The finished stretches with the largest keys, as closed spans. A stretch is so
        many steps in a row; its key is that of its first chunk.
        """
        if sum(self.heads) <= budget_transitions:
            return self.stored()
        asked = budget_transitions, stretch_transitions
        slots = self.slots(finished=True)
        if asked not in self._kept:
            first, n_chunks = self.stretches(stretch_transitions)
            first = slots[first[n_chunks == stretch_transitions // CHUNK]]
            n_kept = budget_transitions // stretch_transitions
            if len(first) > n_kept:
                threshold = np.partition(self.key[first], -n_kept)[-n_kept]
                first = first[self.key[first] >= threshold]
            start = self.chunk[first] * CHUNK
            stop = start + stretch_transitions
            self._kept[asked] = Spans(self.world[first], start, stop, is_closed=True)
        return self._kept[asked]

    def is_broken(self) -> np.ndarray:
        """(n_episodes,) which episodes have lost steps to capacity."""
        if self.n_stamps <= self.n_worlds * self.slots_per_world:
            return np.zeros(self.episodes.n, bool)
        missing = np.cumsum(self.slot_of == FREE, axis=1)
        missing = np.pad(missing, ((0, 0), (1, 0)))  # before each chunk
        world, stop = self.episodes["world"], self.episodes["stop"]
        stop = np.where(stop == FREE, np.asarray(self.heads)[world], stop)
        first, last = self.episodes["start"] // CHUNK, (stop - 1) // CHUNK
        return missing[world, last + 1] > missing[world, first]

    def stretches(self, stretch_transitions: int) -> tuple[np.ndarray, np.ndarray]:
        """Of finished chunks: where each stretch begins, and how many it has."""
        slots = self.slots(finished=True)
        number = self.chunk[slots] * CHUNK // stretch_transitions
        number += self.world[slots] * self.slot_of.shape[1]
        _, first, n_chunks = np.unique(number, return_index=True, return_counts=True)
        return first, n_chunks

    def stop_of(self, slots: np.ndarray) -> np.ndarray:
        """One past the last serial stored in each slot."""
        heads = np.asarray(self.heads)[self.world[slots]]
        return np.minimum((self.chunk[slots] + 1) * CHUNK, heads)

    def stored(self) -> Spans:
        """All that is stored."""
        if not self.is_ring:
            return self.chunk_spans(self.slots())
        heads = np.array(self.heads)
        oldest = np.maximum(-(-heads // CHUNK) - self.slots_per_world, 0) * CHUNK
        return Spans(np.arange(self.n_worlds), oldest, heads)

    def chunk_spans(self, slots: np.ndarray, weight: np.ndarray | None = None) -> Spans:
        """Slots, sorted as `slots()` gives them, as spans."""
        start = self.chunk[slots] * CHUNK
        return Spans(self.world[slots], start, self.stop_of(slots), weight)

    def newest(self, n_transitions: int) -> Spans:
        """The newest steps: those of all worlds after one time, at most n of them."""
        stored = self.stored()
        low = max(0, self.now - n_transitions // self.n_worlds)
        high = self.now
        if low > 0 and self.since(low - 1, stored).n_steps <= n_transitions:
            low = 0  # worlds do not step together; search
        # the earliest time from which no more than n are stored
        while low < high and self.since(low, stored).n_steps > n_transitions:
            middle = (low + high) // 2
            if self.since(middle, stored).n_steps > n_transitions:
                low = middle + 1
            else:
                high = middle
        return self.since(low, stored)

    def since(self, time: int, stored: Spans | None = None) -> Spans:
        """What is stored and not older than a time."""
        stored = self.stored() if stored is None else stored
        first = np.array(
            [self.times.serial_at(w, time, head) for w, head in enumerate(self.heads)]
        )
        start = np.maximum(stored.start, first[stored.world])
        start = np.minimum(start, stored.stop)
        return Spans(stored.world, start, stored.stop).masked_out()

    def episode_ranges(self) -> tuple[Spans, np.ndarray]:
        """All episodes, running ones up to their last step, and which each one is."""
        world, start = self.episodes["world"], self.episodes["start"]
        stop = self.episodes["stop"].copy()
        running = stop == FREE
        stop[running] = np.asarray(self.heads)[world[running]]
        order = np.lexsort((start, world))
        return Spans(world[order], start[order], stop[order]), order

    def episode_spans(self, weight: np.ndarray) -> Spans:
        """What is stored of every episode, with a weight for each."""
        episodes, order = self.episode_ranges()
        return intersect(replace(episodes, weight=weight[order]), self.stored())

    def episode_regimes(self) -> np.ndarray:
        """Label of every episode; a running one has the present regime."""
        regimes = self.episodes["regime"].copy()
        regimes[self.episodes["stop"] == FREE] = self.present_regime
        return regimes

    def episode_rows(self, episode: int) -> np.ndarray | None:
        """Rows of an episode, up to the last step stored; None if some are gone."""
        world, start = (int(self.episodes[n][episode]) for n in ("world", "start"))
        stop = int(self.episodes["stop"][episode])
        serial = np.arange(start, self.heads[world] if stop == FREE else stop)
        if (self.slot_of[world, serial // CHUNK] == FREE).any():
            return None
        return self.rows(np.full(len(serial), world), serial)

    def episode_labels(self) -> np.ndarray:
        """Label of every episode; one without has the most probable regime's."""
        labels = self.episodes["label"].astype(np.int64)
        if len(self.label_probabilities):
            labels[labels == NO_REGIME] = int(np.argmax(self.label_probabilities))
        return np.maximum(labels, 0)

    def finished(self, spans: Spans) -> Spans:
        """The same spans without the steps of running episodes."""
        limit = np.array(
            [
                self.heads[world]
                if episode == FREE
                else self.episodes["start"][episode]
                for world, episode in enumerate(self.running)
            ]
        )
        stop = np.minimum(spans.stop, limit[spans.world])
        stop = np.maximum(stop, spans.start)
        return Spans(spans.world, spans.start, stop, spans.weight, spans.is_closed)

    @property
    def block_rows(self) -> int:
        """Rows that follow each other as steps do: a world's ring, or else a slot."""
        return CHUNK * self.slots_per_world if self.is_ring else CHUNK

    def rows(self, world: np.ndarray, serial: np.ndarray) -> np.ndarray:
        """Rows in which steps are stored."""
        block = self.block_rows
        if self.is_ring:
            return world * block + serial % block
        return self.slot_of[world, serial // CHUNK] * CHUNK + serial % CHUNK

    # ---------------------------------------------------------------- noting

    def set_errors(
        self, slots: np.ndarray, stamps: np.ndarray, errors: np.ndarray
    ) -> int:
        """Note model errors of chunks; returns how many had been overwritten since."""
        errors = np.asarray(errors, float)
        if not np.isfinite(errors).all() or (errors < 0).any():
            bad = errors[~(np.isfinite(errors) & (errors >= 0))][0]
            raise FallowError(f"a model error of {bad}; errors are numbers, 0 or more")
        alive = self.stamp[slots] == stamps
        self.error[slots[alive]] = errors[alive]
        self.version += 1
        return int((~alive).sum())

    def note_change(self) -> None:
        """The body has just changed."""
        self.changes.append(self.now)
        self.version += 1

    def set_regimes(self, episodes: np.ndarray, regimes: np.ndarray) -> None:
        """Replace the labels of finished episodes, e.g. by an estimate."""
        self.episodes["regime"][episodes] = regimes
        self.version += 1

    def set_labels(self, episodes: Sequence[int], labels: np.ndarray) -> None:
        """Label finished episodes by a tracker; the true regimes are kept too."""
        self.episodes["label"][np.asarray(episodes, np.int64)] = labels
        self.version += 1

    def set_beliefs(self, probabilities: Sequence[float], mismatch: np.ndarray) -> None:
        """Which labelled regime is in force, (K,), and their mismatches, (K, K)."""
        self.label_probabilities = np.array(probabilities, float)
        self.label_mismatch = np.array(mismatch, float)
        self.version += 1

    def rebuild(self) -> None:
        """Derive again what follows from slots and heads, after they were restored."""
        used = np.flatnonzero(self.chunk != FREE)
        n_chunks = max(64, 1 + int(self.chunk.max(initial=0)))
        self.slot_of = np.full((self.n_worlds, n_chunks), FREE, np.int32)
        self.slot_of[self.world[used], self.chunk[used]] = used
        for world, head in enumerate(self.heads):
            if head % CHUNK:
                self._base_rows[world] = int(self.slot_of[world, head // CHUNK]) * CHUNK
        self._sorted_at = -1
        self._quiet_until = 0
