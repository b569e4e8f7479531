"""A replay buffer that keeps and samples by a rule, and records what was sampled.

    from fallow.replay import Buffer, Field

    fields = {"observation": Field((24,)), "action": Field((6,)), "reward": Field(())}
    buffer = Buffer(fields, n_worlds=4, rule="recency:window_transitions=20000")
    buffer.add(is_first=first, observation=…, action=…, reward=…)  # a step, all worlds
    batch = buffer.sample(16, 64)  # {"observation": …, "is_first": …}

A row holds an observation, the action that led to it and the reward on arriving there;
the first row of an episode has a zero action and reward and `is_first`.
"""

import functools
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fallow.replay import replay_file, requests, sequences
from fallow.replay.composition import Composition, of_spans
from fallow.replay.fast_add import FastAdd
from fallow.replay.labeler import (
    Labeler,
    Tracked,
    new_labeler,
    places_of,
    read_stored,
)
from fallow.replay.ledger import CHUNK, Ledger
from fallow.replay.locking import locked
from fallow.replay.rules import Rule
from fallow.replay.sampler import Sampler
from fallow.replay.storage import IS_FIRST, Field, Layout, Storage

if TYPE_CHECKING:
    from fallow.tracking import Tracker


class Ticket(NamedTuple):
    """Which chunks a sweep read, so that their errors find them again."""

    slots: np.ndarray
    stamps: np.ndarray


class Buffer:
    """Bytes, ledger, rule and randomness of one agent's replay.

    Threads may share it: one adds while another samples or saves.

    Args:
        fields: shape and type of what a row holds, without `is_first`.
        n_worlds: worlds that are stepped together.
        capacity_transitions: at least so many of the newest steps stay stored.
        rule: what is kept and sampled, e.g. `recency:window_transitions=20000`.
        seed: of keys and samples.
        half: store floating-point fields as float16.
        folder: keep the bytes in files there, for histories larger than memory.
        tracked: which fields hold velocities and actions, for the rule `adaptive`.
        sample_running: whether steps of episodes still running can be sampled.

    Raises:
        FallowError: a field, a number or the rule's text is wrong, or the rule needs a
            tracker and `tracked` is missing.
    """

    def __init__(  # noqa: PLR0913 (one more than a config would be worth)
        self,
        fields: Mapping[str, Field],
        n_worlds: int = 1,
        capacity_transitions: int = 1_000_000,
        rule: str | Rule = "passive",
        seed: int = 0,
        half: bool = False,
        folder: str | Path | None = None,
        sample_running: bool = True,
        tracked: Tracked | None = None,
    ) -> None:
        layout = Layout.of(fields, half)
        self.ledger = Ledger(n_worlds, capacity_transitions, seed)
        self._places = places_of(tracked, fields)
        make = None
        if tracked is not None and self._places is not None:
            make = functools.partial(new_labeler, self.ledger, tracked, self._places)
        self.sampler = Sampler(self.ledger, rule, seed, sample_running, make)
        self.storage = Storage(layout, self.ledger.n_slots * CHUNK, folder)
        self._lock = threading.RLock()
        self._view()

    def _view(self) -> None:
        """Make all views of the stored bytes."""
        self._fast_add = FastAdd.of(self.ledger, self.storage)
        self._columns = dict(self.storage.columns)
        if self.ledger.n_worlds == 1:  # so that a step's leading axis of one fits a row
            for name, column in self._columns.items():
                self._columns[name] = column[:, None]

    def __getstate__(self) -> dict[str, Any]:
        """All but the lock and views, which would be separate arrays in a copy."""
        left_out = ("_fast_add", "_columns", "_lock")
        return {n: value for n, value in vars(self).items() if n not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self._view()

    def __len__(self) -> int:
        """Steps stored."""
        return self.ledger.stored().n_steps

    @property
    def rule(self) -> Rule:
        """The rule in force; set it to continue under another one."""
        return self.sampler.rule

    @rule.setter
    @locked
    def rule(self, rule: str | Rule) -> None:
        self.sampler.set_rule(rule)
        labeler = self.sampler.labeler
        if labeler is not None and self._places and not labeler.tracker.n_episodes:
            read_stored(labeler, self._places, self._stored_rows)
            labeler.tick()

    @property
    def tracker(self) -> "Tracker | None":
        """The tracker of the rule `adaptive`: regimes, gains; None with other rules."""
        labeler = self.sampler.labeler
        if labeler is None:
            return None
        labeler.wait()
        return labeler.tracker

    def _stored_rows(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        return {name: column[rows] for name, column in self.storage.columns.items()}

    # ---------------------------------------------------------------- storing

    def add(
        self, is_first: np.ndarray, regime: int | None = None, **step: np.ndarray
    ) -> None:
        """Store one step of every world.

        Args:
            is_first: (W,) whether the step begins an episode.
            regime: the regime now in force, if known.
            **step: the fields, arrays with a leading axis of worlds.

        Raises:
            FallowError: a field is missing or does not fit; nothing is stored then.
        """
        if regime is not None:
            regime = requests.regime_of(regime)
        step[IS_FIRST] = is_first
        with self._lock:
            labeler = self.sampler.labeler
            if labeler is not None:
                self._add_tracked(labeler, step)
            elif self._fast_add is None or not self._fast_add.store(
                step, self.sampler.victim
            ):
                self._add_checked(step)
            if regime is not None and regime != self.ledger.present_regime:
                self.sampler.set_present_regime(regime)

    def _add_tracked(self, labeler: Labeler, step: dict[str, np.ndarray]) -> None:
        assert self._places is not None
        self.storage.layout.check(step, self.ledger.n_worlds)
        labeler.observe(np.asarray(step[IS_FIRST]).tolist(), *self._places.of(step))
        self._add_checked(step)
        labeler.tick()

    def _add_checked(self, step: dict[str, np.ndarray]) -> None:
        ledger = self.ledger
        step[IS_FIRST] = first = np.asarray(step[IS_FIRST])
        self.storage.layout.check(step, ledger.n_worlds)
        rows = ledger.advance_all(first.tolist(), self.sampler.victim)
        at = (
            rows[0] if ledger.n_worlds == 1 else rows
        )  # an index is cheaper than a list
        for name, column in self._columns.items():
            column[at] = step[name]

    @locked
    def add_episode(
        self, world: int = 0, regime: int | None = None, **episode: np.ndarray
    ) -> None:
        """Store a finished episode of one world.

        Args:
            world: to which it belongs.
            regime: in force when it ended, if known.
            **episode: the fields, arrays with a leading axis of rows.

        Raises:
            FallowError: there is no such world, or a field is missing or does not fit;
                nothing is stored then.
        """
        ledger = self.ledger
        world = requests.world_of(ledger, "add_episode", world)
        regime = None if regime is None else requests.regime_of(regime)
        length = requests.episode_of(episode)
        episode[IS_FIRST] = np.arange(length) == 0
        self.storage.layout.check(episode, length)
        self._end(world)
        rows = [
            ledger.advance(world, step == 0, ledger.now + step, self.sampler.victim)
            for step in range(length)
        ]
        for name, column in self.storage.columns.items():
            column[rows] = episode[name]
        if regime is not None:
            self.sampler.set_present_regime(regime)
        labeler = self.sampler.labeler
        if labeler is not None and self._places is not None:
            labeler.continue_episode(world, *self._places.of(episode))
        self._end(world)
        ledger.now += length
        ledger.version += 1
        if labeler is not None:
            labeler.tick()

    @locked
    def end_episode(self, world: int) -> None:
        """The episode of a world is over, under the regime now in force.

        Otherwise it is when the next step with `is_first` comes, which is the same
        unless the regime is set in between. A body that is never reset needs this too:
        labels are those of episodes, and sequences still continue over such an end.

        Args:
            world: from 0.

        Raises:
            FallowError: there is no such world.
        """
        self._end(requests.world_of(self.ledger, "end_episode", world))
        self.ledger.version += 1

    def _end(self, world: int) -> None:
        if self.sampler.labeler is not None:
            self.sampler.labeler.end(world)
        self.ledger.end_episode(world)

    # ---------------------------------------------------------------- sampling

    @locked
    def sample(
        self, batch: int, length: int, within_episodes: bool = False
    ) -> dict[str, np.ndarray]:
        """Sample sequences of steps.

        Args:
            batch: number of sequences.
            length: steps of each.
            within_episodes: whether each lies in one finished episode.

        Returns:
            The fields, (batch, length, …), in their types. `is_first` is set at the
            start of each sequence and wherever steps do not follow each other.

        Raises:
            FallowError: the rule has too little to sample from.
        """
        pieces = self.sampler.sample(batch, length, within_episodes)
        return sequences.read(self.storage, self.sampler, pieces, batch, length)

    @locked
    def can_sample(self, length: int, within_episodes: bool = False) -> bool:
        """Whether `sample` can give sequences now, e.g. before the first update.

        Args:
            length: steps of each.
            within_episodes: as `sample` takes it.

        Returns:
            False while nothing, or less than `length` steps, can be sampled.
        """
        return self.sampler.can_sample(length, within_episodes)

    def sweep(
        self, n_chunks: int = 256
    ) -> Iterator[tuple[Ticket, dict[str, np.ndarray]]]:
        """All finished chunks, some at a time, to compute the model's error on each.

        Args:
            n_chunks: how many at a time, at most.

        Returns:
            Pairs of a ticket, which `set_errors` takes with the errors, and sequences,
            fields (n, 64, …).
        """
        slots = self.ledger.slots(finished=True)
        for begin in range(0, len(slots), n_chunks):
            some = slots[begin : begin + n_chunks]
            with self._lock:
                rows = self.storage.read(some * CHUNK, CHUNK)
                ticket = Ticket(some, self.ledger.stamp[some])
            chunks = sequences.fields_of(self.storage.layout, rows)
            chunks[IS_FIRST][:, 0] = True
            yield ticket, chunks

    # ---------------------------------------------------------------- reporting

    @locked
    def set_errors(self, ticket: Ticket, errors: np.ndarray) -> int:
        """Set the model's error on each chunk of a ticket.

        Args:
            ticket: of `sweep`.
            errors: (n,) of its chunks.

        Returns:
            How many chunks were overwritten in the meantime and left alone.
        """
        return self.ledger.set_errors(ticket.slots, ticket.stamps, errors)

    @locked
    def note_change(self) -> None:
        """The body has just changed; `reset` acts on it."""
        self.ledger.note_change()

    @locked
    def set_present_regime(self, regime: int) -> None:
        """Set the regime now in force.

        Args:
            regime: the truth, or an estimate; 0 is the original one.
        """
        self.sampler.set_present_regime(regime)

    @locked
    def set_regimes(self, episodes: Any, regimes: Any) -> None:
        """Label finished episodes with the truth or an estimate.

        Args:
            episodes: their indices, in the order of their first steps.
            regimes: one for each, or one for all.

        Raises:
            FallowError: there is no such episode or it is still running, a regime is
                not a whole number, or there is another number of regimes than of
                episodes.
        """
        chosen, labels = requests.labels_of(self.ledger, episodes, regimes)
        self.sampler.record.count(self.ledger)
        self.ledger.set_regimes(chosen, labels)

    # ---------------------------------------------------------------- proving

    @locked
    def composition(self) -> Composition:
        """What the rule can sample now."""
        return of_spans(self.ledger, self.sampler.parts())

    @locked
    def sampled(self) -> Composition:
        """What was sampled since the buffer was made, or `sampler.record.clear()`."""
        return self.sampler.record.composition(self.ledger)

    # ---------------------------------------------------------------- saving

    @locked
    def save(self, path: str | Path) -> None:
        """Write bytes, ledger, rule and random state; the old file stays until then.

        Args:
            path: of the file.

        Raises:
            OSError: the file cannot be written.
        """
        self.sampler.settle()
        used = self.ledger.slots()
        chunks = self.storage.chunks(CHUNK)
        chunks = {dtype: stored[used] for dtype, stored in chunks.items()}
        replay_file.save(path, self.storage.layout, chunks, self.sampler)

    @locked
    def load(self, path: str | Path) -> None:
        """Take back what `save` wrote into a buffer made with the same arguments.

        The rule is the saved one; set `rule` afterwards to continue under another.

        Args:
            path: of the file.

        Raises:
            FallowError: the file is damaged, or of a buffer with other arguments.
        """
        saved = replay_file.load(path, self.storage.layout, self.sampler)
        used = self.ledger.slots()
        for dtype, stored in self.storage.chunks(CHUNK).items():
            stored[used] = saved[dtype]
