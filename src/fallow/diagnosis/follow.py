"""Tracks logs while they grow: one report for each episode."""

import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fallow.core import arrayfile
from fallow.core.errors import FallowError
from fallow.core.interrupts import deferred_interrupts
from fallow.core.text import printable
from fallow.diagnosis.regime_phrases import event, opening
from fallow.diagnosis.regimes import Follower, Regimes, require_alike
from fallow.diagnosis.serialize import plain
from fallow.logs.following import FollowedItem, Following
from fallow.logs.growing import STDIN, LoggedEpisode
from fallow.tracking import TrackerConfig, TrackerUpdate

KIND, VERSION = "followed log", 1
HEAD_BYTES = 4096
"""Of a log, by which a later call recognises it."""
REVISED = 0.1
"""Change of a gain that is worth a line."""
MOST_EVENTS = 200
"""Lines that a page shows, the newest ones."""


@dataclass(frozen=True)
class Report:
    """The report of one episode, or of one bad log, as text and as data."""

    line: str
    """For people; empty if nothing happened."""
    content: dict[str, Any]
    """For machines, ready for JSON."""
    changed: bool = False
    """Whether another regime came into force."""


@dataclass
class LogFollower:
    """Tracks the episodes of logs that are parts of one run."""

    following: Following
    state: Path | None = None
    """Its file, from which a later call continues."""
    config: TrackerConfig | None = None
    follower: Follower | None = None
    opening: str = ""
    """What is read; known with the first episode."""
    notes: tuple[str, ...] = ()
    n_bad: int = 0
    """Logs of a folder that cannot be read."""
    events: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_EVENTS))
    read: dict[str, list[int]] = field(default_factory=dict)
    """By log: episodes read, and the length and checksum of its first bytes."""
    _known: dict[str, int] = field(default_factory=dict)
    _printed: tuple[int, np.ndarray] = field(default=(-1, np.zeros(0)))
    """Regime in force and its gains as last printed."""

    def __post_init__(self) -> None:
        if self.state is not None and self.state.exists():
            self._restore(self.state)

    def __iter__(self) -> Iterator[Report]:
        """A report for every new episode; Ctrl-C waits until it is made and used.

        Raises:
            FallowError: one sentence on what is wrong with a log.
        """
        counts: dict[str, int] = {}
        for part in self.following:
            name = _name(part.source)
            counts[name] = counts.get(name, 0) + 1
            if part.episode is not None and self._is_known(part.source, counts[name]):
                continue
            with deferred_interrupts():  # or a state would hold half an episode
                report = self._report(part)
                self.read[name] = [counts[name], *_head(part.source)]
                if report.line:
                    self.events.append(report.line)
                yield report

    def _is_known(self, source: Path, count: int) -> bool:
        """Whether an earlier call has read this episode of the log."""
        name = _name(source)
        if name not in self._known:
            n, length, checksum = self.read.get(name, [0, 0, 0])
            is_same = _head(source, length) == [length, checksum]
            self._known[name] = n if is_same and source != STDIN else 0
        return count <= self._known[name]

    def _report(self, part: FollowedItem) -> Report:
        source = printable(str(part.source))
        try:
            if part.episode is None:
                raise FallowError(part.reason)
            update = self._update(part.episode, source, part.format)
        except FallowError as error:
            if part.source in self.following.paths:
                raise
            self.n_bad += 1
            return Report(f"{source}: left out: {error}", {"error": str(error)})
        assert self.follower is not None
        changes = self.follower.changes
        last = changes[-1] if changes else None
        change = last if last and last.episode == update.episode else None
        line, is_revised = "", self._is_revised(update)
        if change is not None or is_revised or update.note:
            line = event(update, change, self.follower.regimes(), is_revised)
        content = {"source": source, **as_json(update)}
        return Report(line, content, changed=change is not None)

    def _is_revised(self, update: TrackerUpdate) -> bool:
        """Whether the gains of the regime in force are others than last printed."""
        regime, gain = self._printed
        is_same = regime == update.regime
        is_revised = is_same and bool(np.abs(update.gain - gain).max() > REVISED)
        if not is_same or is_revised:
            self._printed = update.regime, update.gain
        return is_revised

    def _update(
        self, episode: LoggedEpisode, source: str, format: str
    ) -> TrackerUpdate:
        if not self.opening:
            name = "standard input" if source == str(STDIN) else source
            self.opening = opening(name, episode, format)
            self.notes = episode.notes
        if self.follower is None:
            self.follower = Follower.of(episode.actuators, episode.step_s, self.config)
        require_alike(self.follower, episode.actuators, source)
        return self.follower.update(
            episode.velocity, episode.action, episode.step_s, episode.defect
        )

    def regimes(self) -> Regimes:
        """The regimes so far.

        Raises:
            FallowError: no episode was read, now or before.
        """
        if self.follower is None:
            raise FallowError("no episode was read; record some first")
        return self.follower.regimes()

    def save(self) -> None:
        """Write the state, if it has a place."""
        if self.state is None or self.follower is None:
            return
        arrays, header = self.follower.save()
        header |= {"read": self.read, "events": list(self.events)}
        arrayfile.save(self.state, KIND, VERSION, arrays, header)

    def _restore(self, path: Path) -> None:
        try:
            arrays, header = arrayfile.load(path, KIND, VERSION)
        except FallowError as error:
            raise FallowError(
                f"{error}; name the state that fallow track saved, or a new file to "
                "begin again"
            ) from None
        self.follower = Follower.restore(arrays, header)
        self.read = header["read"]
        self.events.extend(header["events"])


def as_json(update: TrackerUpdate) -> dict[str, Any]:
    """One episode's update as plain values."""
    ends = zip(update.gain_low, update.gain_high, strict=True)
    found: dict[str, Any] = plain(
        {
            "episode": update.episode,
            "state": update.state,
            "regime": update.regime,
            "probabilities": update.probabilities,
            "gain": update.gain,
            "interval": [list(pair) for pair in ends],
            "calibrated": update.calibrated,
            "relabelled": update.relabelled,
            "note": update.note,
        }
    )
    return found


def _name(source: Path) -> str:
    return str(source) if source == STDIN else str(source.absolute())


def _head(source: Path, length: int = HEAD_BYTES) -> list[int]:
    """Length and checksum of a file's first bytes; zeros if it is not a file."""
    if source == STDIN or not source.is_file():
        return [0, 0]
    with source.open("rb") as file:
        head = file.read(length)
    return [len(head), zlib.crc32(head)]
