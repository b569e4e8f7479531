"""Pairs states with the commands that act between them, each on its clock.

    action[k] = the command in force during [t[k] - lag, t[k + 1] - lag)

The velocity change from state k to state k + 1 is the effect of the command in between,
wherever its message lies in the log. `lag` estimates the lag.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.text import counted
from fallow.logs import differences
from fallow.logs.columns import Columns
from fallow.logs.commands import Commands
from fallow.logs.lag import Intervals, find_lag
from fallow.logs.streams import Stream
from fallow.logs.table import MIN_ROWS, Choice, Chosen, LogTable, Paired, pieces

PAUSE_S = 1.0
"""States further apart than this, and than ten steps, begin a new episode."""


@dataclass(frozen=True)
class Part:
    """One recording: its episodes between pauses, and the commands during them."""

    time_s: list[np.ndarray]  # of each episode, (T + 1,)
    velocity: list[np.ndarray]  # of each episode, (T + 1, d)
    commands: Commands

    @property
    def intervals(self) -> Intervals:
        """All intervals between two states of an episode, with what changed."""
        return (
            self.commands,
            np.concatenate([time[:-1] for time in self.time_s]),
            np.concatenate([time[1:] for time in self.time_s]),
            np.concatenate([np.diff(v, axis=0) for v in self.velocity]),
        )


def pair(
    table: LogTable,
    recordings: Sequence[Sequence[Stream]],
    chosen: Chosen,
    columns: Columns,
) -> Paired:
    """Velocities and the actions between them, of all recordings.

    Raises:
        FallowError: no recording has the chosen columns, states and commands.
    """
    found = [_part(table, streams, chosen, columns) for streams in recordings]
    parts = [part for part in found if part is not None]
    if not parts:
        raise FallowError(
            f"{table.source}: no recording has both the chosen states and commands "
            "before them; choose others with --velocity and --action"
        )
    method, lag_s, notes = find_lag([part.intervals for part in parts], columns.lag_ms)
    every = [episode for part in parts for episode in _acted(part, method, lag_s)]
    episodes = [e for e in every if len(e.action) >= MIN_ROWS - 1]
    if not episodes:
        raise FallowError(
            f"{table.source}: no episode has {MIN_ROWS - 1} transitions with commands; "
            "record states and commands at the same time"
        )
    if n_without := len(found) - len(parts):
        without = counted(n_without, "recording")
        notes += (f"left out {without} without the chosen columns",)
    if n_short := len(every) - len(episodes):
        short = counted(n_short, "piece")
        notes += (f"left out {short} with too few states or no commands",)
    if chosen.is_position:
        notes += (differences.NOTE,)
    return Paired(
        velocity=np.concatenate([e.velocity for e in episodes]),
        action=np.concatenate([e.action for e in episodes]),
        n_velocities=np.array([len(e.velocity) for e in episodes]),
        step_s=np.array([np.median(np.diff(e.time_s)) for e in episodes]),
        notes=notes,
    )


@dataclass(frozen=True)
class PairedEpisode:
    """One episode with its actions."""

    time_s: np.ndarray  # (T + 1,)
    velocity: np.ndarray  # (T + 1, d)
    action: np.ndarray  # (T, d)


def _acted(part: Part, method: str, lag_s: float) -> Iterator[PairedEpisode]:
    """The episodes of a recording, from the first command on."""
    for time_s, velocity in zip(part.time_s, part.velocity, strict=True):
        start_s, stop_s = time_s[:-1] - lag_s, time_s[1:] - lag_s
        seen_s = start_s if method == "mean" else (start_s + stop_s) / 2
        begun = int(np.searchsorted(seen_s, part.commands.first_s))
        action = getattr(part.commands, method)(start_s[begun:], stop_s[begun:])
        yield PairedEpisode(time_s[begun:], velocity[begun:], action)


def _part(
    table: LogTable, streams: Sequence[Stream], chosen: Chosen, columns: Columns
) -> Part | None:
    """One recording's states and commands; None where it lacks a chosen column."""
    states = _located(table, streams, chosen.velocity)
    commands = _located(table, streams, chosen.action)
    if states is None or commands is None:
        return None
    clock, _, _ = states[0]
    fresh = np.append(True, np.diff(clock.time_s) > 0)
    time_s = clock.time_s[fresh]
    velocity = np.empty((len(time_s), len(chosen.velocity)))
    for stream, places, targets in states:
        for place, target in zip(places, targets, strict=True):
            velocity[:, target] = (
                stream.values[fresh, place]
                if stream is clock
                else np.interp(time_s, stream.time_s, stream.values[:, place])
            )
    episodes = []
    for piece in _episodes(time_s, columns):
        times, values = time_s[piece], velocity[piece]
        if chosen.is_position:
            values = differences.backward(values, np.diff(times))
            times = times[1:]
        episodes.append((times, values))
    if not episodes:
        return None
    times_s, velocities = zip(*episodes, strict=True)
    return Part(
        list(times_s), list(velocities), Commands(tuple(commands), len(chosen.action))
    )


def _located(
    table: LogTable, streams: Sequence[Stream], choice: Choice
) -> list[tuple[Stream, tuple[int, ...], tuple[int, ...]]] | None:
    """The streams of chosen columns, each with its columns and their places."""
    by_label: dict[str, tuple[Stream, int]] = {}
    for stream in sorted(streams, key=lambda s: len(s.time_s)):  # the longest stays
        for place, label in enumerate(stream.labels):
            by_label[label] = stream, place
    found: dict[int, tuple[Stream, list[int], list[int]]] = {}
    for target, (array, column) in enumerate(choice):
        label = table.arrays[array].columns[column]
        if label not in by_label:
            return None
        stream, place = by_label[label]
        _, places, targets = found.setdefault(id(stream), (stream, [], []))
        places.append(place)
        targets.append(target)
    return [(stream, tuple(p), tuple(t)) for stream, p, t in found.values()]


def _episodes(time_s: np.ndarray, columns: Columns) -> list[slice]:
    """Pieces as chosen, or what lies between pauses; fragments are left out."""
    if columns.episode_steps is not None:
        stops = np.cumsum(pieces(len(time_s), columns.episode_steps))
    else:
        gaps = np.diff(time_s)
        pause_s = max(PAUSE_S, 10 * float(np.median(gaps))) if len(gaps) else PAUSE_S
        stops = np.append(np.flatnonzero(gaps >= pause_s) + 1, len(time_s))
    starts = np.append(0, stops)[:-1]
    found = [slice(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
    return [piece for piece in found if piece.stop - piece.start >= MIN_ROWS]
