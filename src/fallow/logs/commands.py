"""The commands of a recording: which one is in force when."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fallow.logs.streams import Stream


@dataclass(frozen=True)
class Commands:
    """The commands of one recording: streams, and the actions (places) each one has."""

    streams: tuple[tuple[Stream, tuple[int, ...], tuple[int, ...]], ...]
    """Each with its columns and the actions that they are."""
    n_actions: int

    @property
    def first_s(self) -> float:
        """When every action has had its first command."""
        return max(float(stream.time_s[0]) for stream, _, _ in self.streams)

    def since(self, at_s: np.ndarray) -> np.ndarray:
        """(streams, n) when the command in force came; NaN before the first one."""
        places = [_place(stream, at_s) for stream, _, _ in self.streams]
        return np.array(
            [
                np.where(place >= 0, stream.time_s[place], np.nan)
                for place, (stream, _, _) in zip(places, self.streams, strict=True)
            ]
        )

    def held(self, start_s: np.ndarray, stop_s: np.ndarray) -> np.ndarray:
        """(n, d) the command in force in the middle; NaN before the first one."""
        return self._each(lambda s, c: _held(s, c, (start_s + stop_s) / 2), start_s)

    def mean(self, start_s: np.ndarray, stop_s: np.ndarray) -> np.ndarray:
        """(n, d) the mean command, weighted by time; NaN before the first one."""
        return self._each(
            lambda s, c: (
                (_integral(s, c, stop_s) - _integral(s, c, start_s))
                / (stop_s - start_s)[:, None]
            ),
            start_s,
        )

    def _each(
        self, values: Callable[[Stream, list[int]], np.ndarray], start_s: np.ndarray
    ) -> np.ndarray:
        found = np.empty((len(start_s), self.n_actions))
        for stream, columns, actions in self.streams:
            found[:, list(actions)] = values(stream, list(columns))
        return found


def _place(stream: Stream, at_s: np.ndarray) -> np.ndarray:
    """(n,) of the last message at some times; -1 before the first."""
    return np.searchsorted(stream.time_s, at_s, side="right") - 1


def _held(stream: Stream, columns: list[int], at_s: np.ndarray) -> np.ndarray:
    place = _place(stream, at_s)
    values = stream.values[:, columns][place]
    values[place < 0] = np.nan
    return values


def _integral(stream: Stream, columns: list[int], at_s: np.ndarray) -> np.ndarray:
    """(n, columns) of the held command from the first one to a time; NaN before it."""
    values, time_s = stream.values[:, columns], stream.time_s
    steps = np.diff(time_s, append=time_s[-1:])[:, None] * values
    done = np.concatenate([np.zeros((1, len(columns))), np.cumsum(steps, axis=0)[:-1]])
    place = _place(stream, at_s)
    since = (at_s - time_s[place])[:, None]
    total = done[place] + since * values[place]
    total[place < 0] = np.nan
    return total
