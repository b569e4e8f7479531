"""Replay for many branches at once: bytes on an accelerator, ledgers on the host.

Every branch has a ledger, a rule and random numbers, the same ones as a `Buffer`. The
host samples rows, the device gathers them, so only indices move. `gather` is written
for one branch; `agents.programs` maps it over branches.
"""

import functools
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fallow.core.errors import FallowError
from fallow.replay import replay_file
from fallow.replay.buffer import Ticket
from fallow.replay.labeler import (
    Labeler,
    Tracked,
    new_labeler,
    places_of,
    read_stored,
)
from fallow.replay.ledger import CHUNK, Ledger
from fallow.replay.rules import Rule
from fallow.replay.sampler import Sampler
from fallow.replay.storage import IS_FIRST, Field, Layout

Groups = dict[str, jax.Array]
"""Packed rows by stored type: (n_rows, width), with a leading axis of branches."""


class Indices(NamedTuple):
    """The rows to gather for k updates of R branches."""

    rows: np.ndarray  # (k, R, batch, length) int32
    is_first: np.ndarray  # (k, R, batch, length): sequence starts and seams


def gather(
    layout: Layout, groups: Groups, rows: jax.Array, is_first: jax.Array
) -> dict[str, jax.Array]:
    """One branch's batch: fields (batch, length, …) at `rows` (batch, length)."""
    batch = layout.split({dtype: group[rows] for dtype, group in groups.items()})
    batch[IS_FIRST] = batch[IS_FIRST] | is_first
    return batch


@functools.partial(jax.jit, donate_argnums=0)
def _scatter(groups: Groups, rows: jax.Array, packed: Groups) -> Groups:
    """Write packed steps (R, W, width) to `rows` (R, W)."""

    def write(group: jax.Array, at: jax.Array, values: jax.Array) -> jax.Array:
        return group.at[at].set(values)

    return {
        dtype: jax.vmap(write)(groups[dtype], rows, packed[dtype]) for dtype in groups
    }


class DeviceBuffer:
    """R buffers that are stored to and sampled from together.

    Args:
        fields: shape and type of what a row holds, without `is_first`.
        rules: one for each branch.
        seeds: one for each branch; samples equal those of a `Buffer` with that seed.
        n_worlds: worlds of each branch.
        capacity_transitions: at least so many of each branch's newest steps stay.
        half: store floating-point fields as float16.
        sample_running: whether steps of episodes still running can be sampled.
        tracked: which fields hold velocities and actions, for the rule `adaptive`;
            trackers work on threads of their own.
    """

    def __init__(
        self,
        fields: Mapping[str, Field],
        rules: Sequence[str],
        seeds: Sequence[int],
        n_worlds: int = 1,
        capacity_transitions: int = 1_000_000,
        half: bool = False,
        sample_running: bool = True,
        tracked: Tracked | None = None,
    ) -> None:
        if len(rules) != len(seeds) or not rules:
            raise FallowError(
                f"{len(rules)} rules and {len(seeds)} seeds; give one of each a branch"
            )
        self.layout = Layout.of(fields, half)
        self.ledgers = [Ledger(n_worlds, capacity_transitions, seed) for seed in seeds]
        self._tracked = tracked
        self._places = places_of(tracked, fields)
        self._executor: ThreadPoolExecutor | None = None
        self.samplers = [
            Sampler(ledger, rule, seed, sample_running, self._labeler_maker(ledger))
            for ledger, rule, seed in zip(self.ledgers, rules, seeds, strict=True)
        ]
        n_rows = self.ledgers[0].n_slots * CHUNK
        self.groups: Groups = {
            dtype: jnp.zeros((len(rules), n_rows, width), dtype)
            for dtype, width in self.layout.widths.items()
        }
        self._gather = jax.jit(jax.vmap(functools.partial(gather, self.layout)))

    def _labeler_maker(self, ledger: Ledger) -> Callable[[], Labeler] | None:
        tracked, places = self._tracked, self._places
        if tracked is None or places is None:
            return None

        def make() -> Labeler:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1))
            labeler = new_labeler(ledger, tracked, places)
            labeler.executor = self._executor
            return labeler

        return make

    def set_rule(self, branch: int, rule: str | Rule) -> None:
        """Continue a branch under another rule; `read_stored` then labels its past."""
        self.samplers[branch].set_rule(rule)

    def read_stored(self) -> None:
        """Let the trackers that have seen nothing read what is stored.

        Branches with the same past are read once.
        """
        if self._places is None:
            return
        read: dict[bytes, Labeler] = {}
        twins: list[tuple[Labeler, Labeler]] = []
        for branch, sampler in enumerate(self.samplers):
            labeler, ledger = sampler.labeler, self.ledgers[branch]
            if labeler is None or labeler.tracker.n_episodes or not ledger.now:
                continue
            host = {dtype: np.asarray(g[branch]) for dtype, g in self.groups.items()}
            digest = hashlib.sha256(repr(ledger.heads).encode())
            for values in host.values():
                digest.update(values.tobytes())
            first = read.setdefault(digest.digest(), labeler)
            if first is labeler:
                rows_of = functools.partial(self._host_rows, host)
                read_stored(labeler, self._places, rows_of)
            else:
                twins.append((labeler, first))
        for labeler, first in twins:
            labeler.restore(*first.save())
        for labeler in [*read.values(), *(twin for twin, _ in twins)]:
            labeler.tick()

    def _host_rows(
        self, host: Mapping[str, np.ndarray], rows: np.ndarray
    ) -> dict[str, np.ndarray]:
        return self.layout.split({dtype: host[dtype][rows] for dtype in host})

    @property
    def waited_s(self) -> float:
        """Seconds that were spent waiting for trackers."""
        labelers = [sampler.labeler for sampler in self.samplers]
        return sum(labeler.waited_s for labeler in labelers if labeler is not None)

    @property
    def n_branches(self) -> int:
        """R."""
        return len(self.ledgers)

    def add(
        self,
        is_first: np.ndarray,
        regimes: Sequence[int] | None = None,
        **step: np.ndarray,
    ) -> None:
        """Store one step of all worlds of all branches: arrays with leading (R, W)."""
        step[IS_FIRST] = first = np.asarray(is_first)
        self.layout.check(step, self.n_branches, self.ledgers[0].n_worlds)
        self._observe(step)
        rows = [
            ledger.advance_all(begins, sampler.victim)
            for ledger, sampler, begins in zip(
                self.ledgers, self.samplers, first.tolist(), strict=True
            )
        ]
        for branch, regime in enumerate(regimes if regimes is not None else ()):
            if regime != self.ledgers[branch].present_regime:
                self.samplers[branch].set_present_regime(regime)
        for sampler in self.samplers:
            if sampler.labeler is not None:
                sampler.labeler.tick()
        given = jax.device_put((np.array(rows, np.int32), self._packed(step)))
        self.groups = _scatter(self.groups, *given)

    def _observe(self, step: Mapping[str, np.ndarray]) -> None:
        """Hand rows to the trackers of the branches that have one."""
        for branch, sampler in enumerate(self.samplers):
            if sampler.labeler is not None and self._places is not None:
                rows = {name: values[branch] for name, values in step.items()}
                first = rows[IS_FIRST].tolist()
                sampler.labeler.observe(first, *self._places.of(rows))

    def _packed(self, step: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Fields side by side, one array (R, W, width) for each stored type."""
        leading = step[IS_FIRST].shape
        packed = {
            dtype: np.zeros((*leading, width), dtype)
            for dtype, width in self.layout.widths.items()
        }
        for name, place in self.layout.places.items():
            columns = packed[place.group][..., place.columns]
            columns[...] = step[name].reshape(columns.shape)
        return packed

    def sample(
        self,
        n_updates: int,
        batch: int,
        length: int,
        within_episodes: bool = False,
        active: np.ndarray | None = None,
    ) -> Indices:
        """Indices for k updates of all branches, sampled at once on the host.

        With `within_episodes` each sequence lies in one finished episode. With
        `active` (R,) nothing is sampled for the other branches: their rows are all 0.
        """
        shape = (n_updates, self.n_branches, batch, length)
        rows, is_first = np.zeros(shape, np.int32), np.zeros(shape, bool)
        for branch, sampler in enumerate(self.samplers):
            if active is not None and not active[branch]:
                continue
            for update in range(n_updates):
                pieces = sampler.sample(batch, length, within_episodes)
                rows[update, branch] = sampler.rows(pieces, batch, length)
                is_first[update, branch, pieces.sequence, pieces.at] = True
        return Indices(rows, is_first)

    def can_sample(self, length: int, within_episodes: bool = False) -> np.ndarray:
        """(R,) which branches sequences of `length` steps can be sampled from now."""
        return np.array(
            [sampler.can_sample(length, within_episodes) for sampler in self.samplers]
        )

    def batch(self, indices: Indices, update: int = 0) -> dict[str, jax.Array]:
        """The batches (R, batch, length, …) of one update, gathered on the device."""
        rows = jax.device_put(indices.rows[update])
        return self._gather(self.groups, rows, jax.device_put(indices.is_first[update]))

    def sweep(self, n_chunks: int = 256) -> Iterator[tuple[list[Ticket], Indices]]:
        """All finished chunks of all branches, some at a time, to be scored.

        Yields a ticket for each branch and what to gather, (1, R, n, 64), always of the
        same shape; a branch with fewer chunks repeats some at the end, beyond its
        ticket. Hand the errors back with `set_errors`.
        """
        slots = [ledger.slots(finished=True) for ledger in self.ledgers]
        for begin in range(0, max(map(len, slots)), n_chunks):
            some = [each[begin : begin + n_chunks] for each in slots]
            padded = np.array([np.resize(each, n_chunks) for each in some])  # (R, n)
            rows = padded[..., None] * CHUNK + np.arange(CHUNK)
            is_first = np.zeros(rows.shape, bool)
            is_first[..., 0] = True
            tickets = [
                Ticket(each, ledger.stamp[each])
                for each, ledger in zip(some, self.ledgers, strict=True)
            ]
            yield tickets, Indices(rows[None].astype(np.int32), is_first[None])

    def set_errors(self, tickets: Sequence[Ticket], errors: np.ndarray) -> int:
        """Errors (R, n) of a sweep; returns how many chunks were overwritten since."""
        branches = zip(self.ledgers, tickets, errors, strict=True)
        return sum(
            ledger.set_errors(ticket.slots, ticket.stamps, found[: len(ticket.slots)])
            for ledger, ticket, found in branches
        )

    def note_change(self, branch: int) -> None:
        """The body of a branch has just changed."""
        self.ledgers[branch].note_change()

    def save(self, branch: int, path: str | Path) -> None:
        """Write one branch's replay in the format of `Buffer.save`."""
        sampler = self.samplers[branch]
        sampler.settle()
        used = sampler.ledger.slots()
        chunks = {
            dtype: np.asarray(group[branch].reshape(-1, CHUNK, group.shape[-1])[used])
            for dtype, group in self.groups.items()
        }
        replay_file.save(path, self.layout, chunks, sampler)

    def load(self, branch: int, path: str | Path) -> None:
        """Take one branch's replay back, e.g. a trunk's into each of its branches."""
        sampler = self.samplers[branch]
        saved = replay_file.load(path, self.layout, sampler)
        rows = sampler.ledger.slots()[:, None] * CHUNK + np.arange(CHUNK)
        for dtype, chunks in saved.items():
            values = jax.device_put(chunks)
            self.groups[dtype] = self.groups[dtype].at[branch, rows].set(values)
