"""Labels episodes online: feeds a tracker, and writes its labels into the ledger.

A finished episode goes to the tracker; `EFFECT_STEPS` steps later, or when the next
episode ends if that is sooner, the labels of all episodes, the probability of each
regime and the mismatches between them are written into the ledger. So the tracker
can work on another thread, and samples never depend on its speed.
"""

import re
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError, unknown
from fallow.replay.composition import Record
from fallow.replay.ledger import FREE, Ledger
from fallow.replay.storage import Field

EFFECT_STEPS = 64
"""Steps of the agent between an episode's end and the effect of its label."""
LONGEST_STEPS = 5_000
"""Steps of an episode after which its label is estimated although it has not ended."""
UNUSED_EPISODES = 20
"""After so many that the tracker could not use, and no other, it warns."""
UNUSED = (
    f"rule 'adaptive': the tracker could use none of the first {UNUSED_EPISODES} "
    "episodes, so all data is kept as of one body (the last one was {})"
)
UNKNOWN = -1.0
"""Mismatch of regimes that no gains explain."""
Row = tuple[np.ndarray, np.ndarray]
"""Velocity and action (d,)."""
Ended = tuple[list[int], np.ndarray, np.ndarray]
"""Episodes of the ledger that are one of the tracker's; its rows (n, d)."""
_COLUMNS = re.compile(r"^(?P<field>\w+)(\[(?P<columns>[-\d:, ]+)\])?$")


@dataclass(frozen=True)
class Tracked:
    """Which fields of a row hold what a tracker reads, for `rule="adaptive"`.

    A choice is a field (`action`) or some of its columns: `observation[18:24]`,
    `observation[3,5,8]`. Velocities come in the order of the actions that drive them.
    """

    velocity: str
    action: str = "action"
    control_step_s: float = 0.05
    """Seconds from one row to the next."""
    action_leads: bool = True
    """Whether a row's action led to its observation; else it is taken there."""
    false_alarms_per_1000: float = 1.0
    """Acceptable number in 1,000 episodes of an unchanged body."""
    seed: int = 0

    def places(self, fields: dict[str, Field]) -> "TrackedPlaces":
        """The columns that are read.

        Args:
            fields: of the buffer, by name.

        Returns:
            The places of velocities and actions.

        Raises:
            FallowError: a field or column is missing, or the two differ in number.
        """
        velocity = _place(self.velocity, fields, "velocity")
        action = _place(self.action, fields, "action")
        if len(velocity[1]) != len(action[1]):
            raise FallowError(
                f"'{self.velocity}' are {len(velocity[1])} velocities and "
                f"'{self.action}' {len(action[1])} actions; name the velocity that "
                "each action drives"
            )
        return TrackedPlaces(velocity, action)


def places_of(
    tracked: Tracked | None, fields: Mapping[str, Field]
) -> "TrackedPlaces | None":
    """The columns of fields that a tracker reads; None without one."""
    tracked = checked_tracked(tracked)
    return None if tracked is None else tracked.places(dict(fields))


def checked_tracked(tracked: Any) -> Tracked | None:
    """What is tracked; anything else is an error."""
    if tracked is None or isinstance(tracked, Tracked):
        return tracked
    raise FallowError(
        f"tracked is {options.shown(tracked)}; name the fields, e.g. "
        'Tracked(velocity="observation[18:24]", action="action")'
    )


@dataclass(frozen=True)
class TrackedPlaces:
    """Fields and their columns: d velocities, d actions."""

    velocity: tuple[str, np.ndarray]
    action: tuple[str, np.ndarray]

    def of(self, rows: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Velocities and actions (n, d) of n rows."""
        velocity, action = (
            np.asarray(rows[field]).reshape(len(rows[field]), -1)[:, columns]
            for field, columns in (self.velocity, self.action)
        )
        return velocity, action


def _place(text: str, fields: dict[str, Field], what: str) -> tuple[str, np.ndarray]:
    options.check_text("Tracked", what, text)
    match = _COLUMNS.match(text.strip())
    if match is None or match["field"] not in fields:
        raise unknown(f"field of {what}", text, list(fields))
    width = int(np.prod(fields[match["field"]].shape, dtype=int))
    every = np.arange(width)
    chosen = match["columns"]
    try:
        if not chosen:
            return match["field"], every
        if ":" in chosen:
            first, last = (int(part) if part.strip() else None
                           for part in chosen.split(":"))  # fmt: skip
            columns = every[first:last]
            if max(abs(first or 0), abs(last or 0)) > width:
                columns = every[:0]  # a part of what was named
        else:
            columns = every[[int(part) for part in chosen.split(",")]]
    except (ValueError, IndexError):
        columns = every[:0]
    if not len(columns):
        raise FallowError(
            f"{what} '{text}' does not fit '{match['field']}', which has {width} "
            "columns"
        )
    return match["field"], columns


class Labeler:
    """The tracker of one buffer, the episodes it has not read yet, and its answers."""

    def __init__(self, ledger: Ledger, tracked: Tracked, n_actuators: int) -> None:
        from fallow.tracking import Tracker, TrackerConfig  # imports scipy.signal

        self.ledger, self.tracked = ledger, tracked
        config = TrackerConfig(
            false_alarms_per_1000=tracked.false_alarms_per_1000, seed=tracked.seed
        )
        self.tracker = Tracker(n_actuators, tracked.control_step_s, config)
        self.record: Record | None = None
        """What was sampled: counted by the labels of its time."""
        self.executor: Executor | None = None
        """Where the tracker works; None: here, at once."""
        self.effect_at: int | None = None
        """Step at which the answer that is due takes effect."""
        self.log: list[dict[str, Any]] = []
        """What the tracker reported: episode, state, regime, gains, probabilities."""
        self.waited_s = 0.0
        """Seconds that the learner waited for the tracker."""
        self._episodes: list[int] = []  # of the ledger
        self._read: list[int] = []  # which one of the tracker each of these is in
        self._probabilities: list[float] = []
        self._running: dict[int, list[Row]] = {}  # by world
        self._ended: list[Ended] = []
        self._work: Future[None] | None = None

    # ---------------------------------------------------------------- reading

    def observe(
        self, is_first: Sequence[bool], velocity: np.ndarray, action: np.ndarray
    ) -> None:
        """Rows (W, d) that are stored next; call it before the ledger advances.

        A body that is never reset gets a label every `LONGEST_STEPS` steps.
        """
        for world, first in enumerate(is_first):
            is_long = len(self._running.get(world, ())) >= LONGEST_STEPS
            if first or is_long:
                self._end(world)
            if is_long:
                self.ledger.end_episode(world)
        self._start()
        for world in range(len(velocity)):
            self._append(world, velocity[world], action[world])

    def _append(self, running: int, velocity: np.ndarray, action: np.ndarray) -> None:
        rows = self._running.setdefault(running, [])
        rows.append((velocity.copy(), action.copy()))

    def end(self, world: int) -> None:
        """The episode of a world is over; call it before the ledger's `end_episode`."""
        self._end(world)
        self._start()

    def read_episode(
        self, episode: int, velocity: np.ndarray, action: np.ndarray
    ) -> None:
        """Read rows (n, d) of an episode that is stored already."""
        self._ended.append(([episode], velocity, action))

    def continue_episode(
        self, world: int, velocity: np.ndarray, action: np.ndarray
    ) -> None:
        """Take rows (n, d) of the episode that is running in a world."""
        self._running[world] = list(zip(velocity, action, strict=True))

    def _end(self, world: int) -> None:
        rows, episode = self._running.pop(world, []), self.ledger.running[world]
        if rows and episode != FREE:
            self._ended.append(([episode], *stacked(rows)))

    # ---------------------------------------------------------------- working

    def _start(self) -> None:
        """Hand ended episodes to the tracker; an answer still due takes effect now."""
        if not self._ended:
            return
        self.apply()
        self.effect_at = self.ledger.now + EFFECT_STEPS
        ended, self._ended = self._ended, []
        if self.executor is None:
            self._track(ended, self.ledger.now)
        else:
            self._work = self.executor.submit(self._track, ended, self.ledger.now)

    def start_stored(self) -> None:
        """Begin with the stored episodes; their labels take effect at once."""
        self._start()
        self.effect_at = self.ledger.now

    def _track(self, ended: list[Ended], now: int) -> None:
        for episodes, velocity, action in ended:
            taken = action[1:] if self.tracked.action_leads else action[:-1]
            if len(velocity) < 2:
                continue  # no transition
            update = self.tracker.update(velocity.astype(float), taken.astype(float))
            if self.tracker.n_skipped == self.tracker.n_episodes == UNUSED_EPISODES:
                warnings.warn(UNUSED.format(update.note), stacklevel=2)
            self._episodes += episodes
            self._read += [self.tracker.n_episodes - 1] * len(episodes)
            given = update.probabilities
            self._probabilities = [
                given.get(regime, 0.0) for regime in range(1 + max(given))
            ]
            self.log.append(
                {
                    "episode": episodes[-1],
                    "time": now,
                    "state": update.state,
                    "regime": update.regime,
                    "probability": given.get(update.regime, 0.0),
                    "gain": [round(float(g), 4) for g in update.gain],
                }
            )

    def tick(self) -> None:
        """Let the answer that is due by now take effect; call it after every step."""
        if self.effect_at is not None and self.ledger.now >= self.effect_at:
            self.apply()

    def apply(self) -> None:
        """Write the tracker's answers into the ledger, once it has them."""
        self.wait()
        if self.effect_at is None:
            return
        self.effect_at = None
        if self.record is not None:
            self.record.count(self.ledger)
        read = np.asarray(self._read, np.int64)
        self.ledger.set_labels(self._episodes, self.tracker.labels()[read])
        self.ledger.set_beliefs(self._probabilities, self._mismatches())

    def _mismatches(self) -> np.ndarray:
        regimes = self.tracker.regimes
        n = max(len(regimes), len(self._probabilities))
        found = np.full((n, n), UNKNOWN)
        for i, one in enumerate(regimes):
            for j, other in enumerate(regimes):
                if i == j or (one.is_gain and other.is_gain):
                    found[i, j] = self.tracker.mismatch(i, j)
        return found

    def wait(self) -> None:
        """Until the tracker has read all that was handed to it."""
        if self._work is not None:
            work, self._work = self._work, None
            began = time.perf_counter()
            work.result()
            self.waited_s += time.perf_counter() - began

    # ---------------------------------------------------------------- saving

    def __getstate__(self) -> dict[str, Any]:
        """Without threads; a copy works at once."""
        self.wait()
        return vars(self) | {"executor": None}

    def save(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """All of it: arrays and a JSON header."""
        self.wait()
        saved = self.tracker.save()
        arrays = {f"tracker.{k}": v for k, v in saved.items() if k != "header"}
        for running, rows in self._running.items():
            velocity, action = stacked(rows)
            arrays |= {f"v{running}": velocity, f"a{running}": action}
        arrays["episodes"] = np.asarray(self._episodes, np.int64)
        arrays["read"] = np.asarray(self._read, np.int64)
        header = {
            "tracker": saved["header"],
            "effect_at": self.effect_at,
            "probabilities": self._probabilities,
            "log": self.log,
        }
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take back what `save` gave; an error if it read another body."""
        saved: dict[str, Any] = {
            name.removeprefix("tracker."): values
            for name, values in arrays.items()
            if name.startswith("tracker.")
        }
        tracker = type(self.tracker).restore(saved | {"header": header["tracker"]})
        for name in ("n_actuators", "control_step_s"):
            given, found = getattr(self.tracker, name), getattr(tracker, name)
            if given != found:
                raise FallowError(
                    f"the saved tracker has {name} {found} and this buffer's {given}; "
                    "give the same Tracked"
                )
        self._work, self.tracker = None, tracker
        self.effect_at, self.log = header["effect_at"], list(header["log"])
        self._probabilities = list(header["probabilities"])
        self._episodes = arrays["episodes"].tolist()
        one_each = np.arange(len(self._episodes))  # as in files of earlier versions
        self._read = arrays.get("read", one_each).tolist()
        self._running = {}
        for name in arrays:
            if match := re.fullmatch(r"v(\d+)", name):
                both = arrays[name], arrays[f"a{match[1]}"]
                self._running[int(match[1])] = list(zip(*both, strict=True))


def stacked(rows: list[Row]) -> tuple[np.ndarray, np.ndarray]:
    """Velocities and actions (n, d) of n rows."""
    velocity, action = (np.stack(each) for each in zip(*rows, strict=True))
    return velocity, action


def true_mismatches(gains: np.ndarray | None) -> np.ndarray:
    """(K, K) mismatch of regimes with gains (K, d); empty where nothing is known."""
    from fallow.tracking.regimes import gain_mismatch

    if gains is None:
        return np.zeros((0, 0))
    return np.array([[gain_mismatch(a, b) for b in gains] for a in gains])


def new_labeler(ledger: Ledger, tracked: Tracked, places: TrackedPlaces) -> Labeler:
    """A labeler that has seen nothing."""
    return Labeler(ledger, tracked, len(places.action[1]))


def read_stored(
    labeler: Labeler,
    places: TrackedPlaces,
    rows_of: Callable[[np.ndarray], dict[str, np.ndarray]],
) -> None:
    """Read the episodes that are stored already, e.g. a trunk's at a branch point.

    `rows_of` gives the fields of rows. Episodes that capacity has cut are left out.
    """
    ledger = labeler.ledger
    for episode in range(ledger.episodes.n):
        rows = ledger.episode_rows(episode)
        if rows is None or not len(rows):
            continue
        velocity, action = places.of(rows_of(rows))
        if episode in ledger.running:
            labeler.continue_episode(ledger.running.index(episode), velocity, action)
        else:
            labeler.read_episode(episode, velocity, action)
    labeler.start_stored()
