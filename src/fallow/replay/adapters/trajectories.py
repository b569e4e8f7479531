"""Trajectories of several environments whose items are written to one stream.

A collector hands over some steps of every environment at a time, so a trajectory comes
in pieces. In the ledger each piece is an episode; the tracker reads whole trajectories.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fallow.replay.labeler import LONGEST_STEPS, Labeler, stacked
from fallow.replay.ledger import FREE

STREAM = 0
"""All items are steps of one world."""
MOST_RUNNING = 1000
"""Trajectories that can run at once; beyond it the first of them has ended."""


class TrajectoryLabeler(Labeler):
    """A labeler of one stream, in which steps of several trajectories alternate."""

    trajectory = 0
    """That of the next step."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._pieces: dict[int, list[int]] = {}

    @property
    def running(self) -> list[int]:
        """The trajectories that have not ended."""
        return list(self._running)

    def observe(
        self, is_first: Sequence[bool], velocity: np.ndarray, action: np.ndarray
    ) -> None:
        """A row (1, d) of `trajectory`, stored next; `is_first` begins a piece."""
        if len(self._running.get(self.trajectory, ())) >= LONGEST_STEPS:
            self.finish(self.trajectory)
        self._append(self.trajectory, velocity[0], action[0])
        (running,), n_episodes = self.ledger.running, self.ledger.episodes.n
        episode = n_episodes if is_first[0] or running == FREE else running
        pieces = self._pieces.setdefault(self.trajectory, [])
        if episode not in pieces[-1:]:
            pieces.append(episode)

    def end(self, world: int) -> None:
        """A piece has ended; its trajectory goes on until `finish`."""

    def continue_episode(
        self, world: int, velocity: np.ndarray, action: np.ndarray
    ) -> None:
        """The piece that runs while a rule is set: its trajectory is not known."""

    def finish(self, trajectory: int) -> None:
        """A trajectory is over."""
        rows = self._running.pop(trajectory, [])
        if rows:
            self._ended.append((self._pieces.pop(trajectory), *stacked(rows)))
            self._start()

    def save(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """All of it: arrays and a JSON header."""
        arrays, header = super().save()
        return arrays, header | {"pieces": list(self._pieces.items())}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take back what `save` gave."""
        super().restore(arrays, header)
        self._pieces = {number: list(some) for number, some in header.get("pieces", ())}
        self._running = {number: self._running[number] for number in self._pieces}


class Trajectories:
    """Which trajectory each item belongs to: by its id, or by where the last one led.

    An environment that is reset need not write `done`. So a trajectory has ended where
    none of a batch's items is of it and another one begins; unless one that ended so
    came back, since then environments are written in turn.
    """

    def __init__(self, running: Sequence[int] = ()) -> None:
        self._running = dict.fromkeys(running)  # in the order of their first items
        self._next = 1 + max(running, default=-1)
        self._expected: dict[bytes, int] = {}
        self._absent: dict[int, None] = {}  # ended since they did not come
        self._in_turn = self._begins = False
        self._seen: set[int] = set()

    def of(self, number: int | None, place: bytes | None) -> int:
        """The trajectory of an item with an id, or at a place, or the only one."""
        if number is None and place is not None:
            number = self._expected.pop(place, None)
        elif number is None:
            number = next(iter(self._running), None)
        if number is None:
            number = self._next
        self._next = max(self._next, number + 1)
        if number in self._absent:
            del self._absent[number]
            self._in_turn = True
        elif number not in self._running:
            self._begins = True
        self._running[number] = None
        self._seen.add(number)
        return number

    def leads(self, number: int, place: bytes | None, is_last: bool) -> None:
        """Where an item's trajectory continues, or that it has ended."""
        if is_last:
            del self._running[number]
        elif place is not None:
            self._expected[place] = number

    def ended(self) -> list[int]:
        """Trajectories that have ended without `done`; ask after every batch."""
        ended = list(self._running)[:-MOST_RUNNING]
        if self._begins and not self._in_turn:
            ended = [number for number in self._running if number not in self._seen]
        for number in ended:
            del self._running[number]
            self._absent[number] = None
        self._forget()
        self._seen.clear()
        self._begins = False
        return ended

    def _forget(self) -> None:
        """Bound what is remembered of trajectories that ended."""
        if len(self._absent) > MOST_RUNNING:
            self._absent = dict.fromkeys(list(self._absent)[-MOST_RUNNING // 2 :])
        if len(self._expected) > 4 * MOST_RUNNING:
            known = self._running.keys() | self._absent.keys()
            self._expected = {p: n for p, n in self._expected.items() if n in known}
