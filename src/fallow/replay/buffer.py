"""A replay buffer that keeps what its rule says, and can prove it.

    from fallow.replay import Buffer, Field

    fields = {"observation": Field((24,)), "action": Field((6,)), "reward": Field(())}
    buffer = Buffer(fields, n_worlds=4, rule="recency:window_transitions=20000")
    buffer.add(is_first=first, observation=…, action=…, reward=…)  # a step, all worlds
    batch = buffer.sample(16, 64)  # {"observation": …, "is_first": …}

A row holds an observation, the action that led to it and the reward on arriving there;
the first row of an episode has a zero action and reward and `is_first`.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fallow import options
from fallow.errors import FallowError
from fallow.replay import saving
from fallow.replay.book import CHUNK, Book
from fallow.replay.composition import Composition, of_spans
from fallow.replay.drawer import Drawer
from fallow.replay.rules import Rule
from fallow.replay.spans import Pieces
from fallow.replay.storage import Field, Layout, Storage

IS_FIRST = "is_first"
LARGEST_HALF = float(np.finfo(np.float16).max)


class Ticket(NamedTuple):
    """Which chunks a sweep read, so that their errors find them again."""

    slots: np.ndarray
    stamps: np.ndarray


class Buffer:
    """Bytes, book, rule and randomness of one agent's replay.

    Args:
        fields: shape and type of what a row holds, without `is_first`.
        n_worlds: worlds that are stepped together.
        capacity_transitions: at least so many of the newest steps stay stored.
        rule: what is kept and how it is drawn, e.g. `recency:window_transitions=20000`.
        seed: of keys and draws.
        half: store floating-point fields as float16.
        folder: keep the bytes in files there, for histories larger than memory.
        draw_running: whether steps of episodes still running can be drawn.
    """

    def __init__(
        self,
        fields: Mapping[str, Field],
        n_worlds: int = 1,
        capacity_transitions: int = 1_000_000,
        rule: str | Rule = "passive",
        seed: int = 0,
        half: bool = False,
        folder: str | Path | None = None,
        draw_running: bool = True,
    ) -> None:
        if IS_FIRST in fields:
            raise FallowError(
                "is_first is stored by itself; leave it out of the fields"
            )
        self.book = Book(n_worlds, capacity_transitions, seed)
        self.drawer = Drawer(self.book, rule, seed, draw_running)
        layout = Layout.of({**fields, IS_FIRST: Field((), "bool")}, half)
        self.storage = Storage(layout, self.book.n_slots * CHUNK, folder)
        self._plan = [
            (name, field.shape, np.dtype(field.dtype)) for name, field in fields.items()
        ]
        self._halved = {name for name in fields if layout.places[name].cast is not None}
        columns = self.storage.columns
        if n_worlds == 1:  # so that a step's leading axis of one fits a row
            columns = {name: column[:, None] for name, column in columns.items()}
        self._columns = [(name, columns[name]) for name in fields]
        self._is_first = columns[IS_FIRST]

    def __len__(self) -> int:
        """Steps stored."""
        return self.book.stored().n_steps

    @property
    def rule(self) -> Rule:
        """The rule in force; set it to continue under another one."""
        return self.drawer.rule

    @rule.setter
    def rule(self, rule: str | Rule) -> None:
        self.drawer.set_rule(rule)

    # ---------------------------------------------------------------- storing

    def add(
        self, is_first: np.ndarray, regime: int | None = None, **step: np.ndarray
    ) -> None:
        """Store one step of every world: arrays with a leading axis of worlds.

        `regime` is the regime now in force, if known. A step that does not fit raises
        and leaves the buffer as it was.
        """
        book = self.book
        first = np.asarray(is_first).tolist()
        self._check(step, book.n_worlds, len(first))
        rows = book.advance_all(first, self.drawer.victim)
        at = rows[0] if book.n_worlds == 1 else rows  # an index is cheaper than a list
        for name, column in self._columns:
            column[at] = step[name]
        self._is_first[at] = first
        if regime is not None and regime != self.book.present_regime:
            self.set_present_regime(regime)

    def add_episode(
        self, world: int = 0, regime: int | None = None, **episode: np.ndarray
    ) -> None:
        """Store a finished episode of one world: arrays with a leading axis of rows."""
        book = self.book
        options.whole("add_episode", "world", world, at_least=0)
        if world >= book.n_worlds:
            raise FallowError(f"there is no world {world}; there are {book.n_worlds}")
        lengths = {len(values) for values in episode.values()}
        length = lengths.pop() if len(lengths) == 1 else 0
        if length == 0:
            raise FallowError("an episode needs fields of one length, 1 or more")
        self._check(episode, length, length)
        rows = [
            book.advance(world, step == 0, book.now + step, self.drawer.victim)
            for step in range(length)
        ]
        for name in episode:
            self.storage.columns[name][rows] = episode[name]
        self.storage.columns[IS_FIRST][rows] = np.arange(length) == 0
        if regime is not None:
            self.set_present_regime(regime)
        book.end_episode(world)
        book.now += length
        book.version += 1

    def _check(
        self, step: Mapping[str, np.ndarray], leading: int, n_first: int
    ) -> None:
        """Raise unless every field has its shape and type, and holds finite numbers."""
        fits = len(step) == len(self._plan) and n_first == leading
        for name, shape, dtype in self._plan:
            values = step.get(name)
            if (
                not fits
                or type(values) is not np.ndarray
                or values.dtype != dtype
                or values.shape != (leading, *shape)
            ):
                raise self._misfit(step, leading, n_first)
            if dtype.kind == "f":
                check_numbers(name, values, is_halved=name in self._halved)

    def _misfit(
        self, step: Mapping[str, Any], leading: int, n_first: int
    ) -> FallowError:
        """What does not fit, in a sentence."""
        names = [name for name, *_ in self._plan]
        if set(step) != set(names):
            return FallowError(
                f"a step has the fields {', '.join(sorted(step)) or 'none'}; this "
                f"buffer stores {', '.join(names)} and is_first"
            )
        for name, shape, dtype in self._plan:
            values = np.asarray(step[name])
            if values.shape != (leading, *shape) or values.dtype != dtype:
                return FallowError(
                    f"{name} is {values.dtype} of shape {values.shape}; this buffer "
                    f"stores {dtype} of shape {(leading, *shape)}"
                )
        return FallowError(f"is_first has {n_first} values and must have {leading}")

    def end_episode(self, world: int) -> None:
        """The episode of a world is over, under the regime now in force.

        Otherwise it is when the next step with `is_first` comes, which is the same
        unless the regime is set in between.
        """
        self.book.end_episode(world)
        self.book.version += 1

    # ---------------------------------------------------------------- drawing

    def sample(self, batch: int, length: int) -> dict[str, np.ndarray]:
        """Draw `batch` sequences of `length` steps: fields of shape (batch, length, …).

        `is_first` is set at the start of each and wherever steps do not follow each
        other. Float16 storage comes back in the fields' own types.
        """
        pieces = self.drawer.draw(batch, length)
        groups = self._read(pieces, batch, length)
        out = self.storage.layout.split(groups)
        out[IS_FIRST][pieces.sequence, pieces.at] = True
        return out

    def _read(self, pieces: Pieces, batch: int, length: int) -> dict[str, np.ndarray]:
        """Packed sequences: blocks where rows lie in order, the rest row by row."""
        block = self.book.block_rows
        if len(pieces.at) == batch:
            starts = self.book.rows(pieces.world, pieces.serial)
            broken = starts % block > block - length
        else:
            first = pieces.at == 0
            starts = self.book.rows(pieces.world[first], pieces.serial[first])
            broken = starts % block > block - length
            broken |= pieces.length[first] < length
        if not broken.any():
            return self.storage.read(starts, length)
        groups = self.storage.read(np.where(broken, 0, starts), length)
        rows = self.drawer.rows(pieces, batch, length)[broken]
        for dtype, group in self.storage.groups.items():
            groups[dtype][broken] = group[rows]
        return groups

    def sweep(
        self, n_chunks: int = 256
    ) -> Iterator[tuple[Ticket, dict[str, np.ndarray]]]:
        """All finished chunks, some at a time, for the model to say its error on each.

        Sequences have shape (n, 64, …). Hand the errors back with `set_errors`.
        """
        slots = self.book.slots(finished=True)
        for begin in range(0, len(slots), n_chunks):
            some = slots[begin : begin + n_chunks]
            groups = self.storage.read(some * CHUNK, CHUNK)
            sequences = self.storage.layout.split(groups)
            sequences[IS_FIRST][:, 0] = True
            yield Ticket(some, self.book.stamp[some]), sequences

    # ---------------------------------------------------------------- telling

    def set_errors(self, ticket: Ticket, errors: np.ndarray) -> int:
        """The model's error on each chunk of a ticket.

        Chunks that were overwritten in the meantime are left alone; returns how many.
        """
        return self.book.set_errors(ticket.slots, ticket.stamps, errors)

    def note_change(self) -> None:
        """The body has just changed; `reset` acts on it."""
        self.book.note_change()

    def set_present_regime(self, regime: int) -> None:
        """The regime now in force: the truth, or an estimate."""
        self.drawer.set_present_regime(regime)

    def set_regimes(self, episodes: Any, regimes: Any) -> None:
        """Label episodes, by index, with the truth or an estimate."""
        self.drawer.record.count(self.book)
        self.book.set_regimes(episodes, regimes)

    # ---------------------------------------------------------------- proving

    def composition(self) -> Composition:
        """What the rule would draw from now."""
        return of_spans(self.book, self.drawer.parts())

    def drawn(self) -> Composition:
        """What was drawn since the buffer was made, or `drawer.record.clear()`."""
        return self.drawer.record.composition(self.book)

    # ---------------------------------------------------------------- saving

    def save(self, path: str | Path) -> None:
        """Write bytes, book, rule and random state; the old file stays until then."""
        self.drawer.settle()
        used = self.book.slots()
        chunks = {dtype: chunks[used] for dtype, chunks in self._chunks().items()}
        saving.save(path, self.storage.layout, chunks, self.drawer)

    def load(self, path: str | Path) -> None:
        """Take back what `save` wrote into a buffer made with the same arguments.

        The rule is the saved one; set `rule` afterwards to go on under another.
        """
        saved = saving.load(path, self.storage.layout, self.drawer)
        used = self.book.slots()
        for dtype, chunks in self._chunks().items():
            chunks[used] = saved[dtype]

    def _chunks(self) -> dict[str, np.ndarray]:
        """The bytes by slot: (n_slots, 64, width)."""
        return {
            dtype: group.reshape(-1, CHUNK, group.shape[1])
            for dtype, group in self.storage.groups.items()
        }


def check_numbers(name: str, values: np.ndarray, is_halved: bool) -> None:
    """Raise for NaN, infinity, and what float16 cannot hold where that is stored.

    The sum of squares tells cheaply that all is well.
    """
    flat = values.ravel()
    if not (math.isfinite(flat.dot(flat)) or np.isfinite(flat).all()):
        raise FallowError(
            f"{name} holds NaN or infinity and was not stored; replace it first"
        )
    if is_halved and (largest := float(np.abs(flat).max())) > LARGEST_HALF:
        raise FallowError(
            f"{name} holds {largest:g}, float16 ends at {LARGEST_HALF:g}; scale it, or "
            "make the buffer with half=False"
        )
