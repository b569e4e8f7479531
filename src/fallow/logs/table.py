"""The content of a file before columns are chosen: named arrays, cut into episodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fallow.core.errors import FallowError

MAX_COLUMNS = 10_000
"""Of a file; more is a matrix of something else."""

MIN_ROWS = 3
"""Of an episode without a closing row: two transitions."""

Load = Callable[[Sequence[int]], np.ndarray]
"""Numbers of some columns of an array, (rows, chosen)."""


def _no_rows(columns: Sequence[int]) -> np.ndarray:
    raise NotImplementedError("columns of a recording are paired by time")


@dataclass(frozen=True)
class Array:
    """One named array of a file: its columns, its rows, and how to load it."""

    columns: tuple[str, ...]
    """Names; `state[3]` where the file has none."""
    lengths: np.ndarray  # (k,) rows in each episode
    load: Load
    named: bool = False
    """Whether the file names the columns itself."""
    is_command: bool = False
    """Whether the format says that these are commands, e.g. a trajectory."""

    @classmethod
    def on_a_clock(cls, columns: tuple[str, ...], is_command: bool) -> "Array":
        """Columns of a recording, which have no rows before they are paired."""
        return cls(columns, np.zeros(0, int), _no_rows, True, is_command)


Choice = tuple[tuple[str, int], ...]
"""Columns, each as the name of its array and its place there."""


@dataclass(frozen=True)
class Chosen:
    """Actions and, in the same order, the velocity that each one drives."""

    action: Choice
    velocity: Choice
    is_position: bool = False
    """Whether `velocity` names positions, whose differences are the velocities."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Paired:
    """Velocities, and the actions between them, of k episodes that follow each other.

    An episode of T transitions has T + 1 velocities and T actions.
    """

    velocity: np.ndarray  # (n + k, d)
    action: np.ndarray  # (n, d)
    n_velocities: np.ndarray  # (k,)
    step_s: np.ndarray | None = None  # (k,), the median time between two velocities
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogTable:
    """A file's arrays by name, and its metadata."""

    source: str
    format: str
    arrays: Mapping[str, Array]
    environment: str = ""
    """The id of the environment that was recorded, where the file has it."""
    velocity: Choice | None = None
    """The columns, where the format says which they are."""
    action: Choice | None = None
    start_step: np.ndarray | None = None  # (k,)
    control_step_s: float | None = None
    step_s: np.ndarray | None = None  # (k,), where every row has a time
    regime: np.ndarray | None = None  # (k,)
    gain: np.ndarray | None = None  # (k, d)
    notes: tuple[str, ...] = field(default=())
    pair: Callable[[Chosen], Paired] | None = None
    """Pairs chosen columns by time, where rows are not paired already."""

    def load(self, choice: Choice) -> tuple[np.ndarray, np.ndarray]:
        """The chosen columns (rows, chosen) and the rows of each episode (k,)."""
        names = list(dict.fromkeys(name for name, _ in choice))
        lengths = self.arrays[names[0]].lengths
        wanted = {name: [c for owner, c in choice if owner == name] for name in names}
        for name in names[1:]:
            if not np.array_equal(self.arrays[name].lengths, lengths):
                raise FallowError(
                    f"{self.source}: '{names[0]}' and '{name}' have different numbers "
                    "of rows; choose columns that belong together"
                )
        loaded = {name: self.arrays[name].load(wanted[name]) for name in names}
        if len(names) == 1:
            return loaded[names[0]], lengths
        places = [(owner, wanted[owner].index(column)) for owner, column in choice]
        return np.stack([loaded[owner][:, i] for owner, i in places], axis=1), lengths


def limit_columns(source: str, n_columns: int) -> None:
    """Raise if there are too many columns to be meant."""
    if n_columns > MAX_COLUMNS:
        raise FallowError(
            f"{source} has {n_columns:,} columns and {MAX_COLUMNS:,} is the limit; "
            "is it transposed? Write one row for each time"
        )


def runs(source: str, ids: np.ndarray) -> np.ndarray:
    """Rows (k,) of each episode, from an episode number for every row."""
    if len(ids) == 0:
        raise FallowError(f"{source} has no rows; record something")
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    found, counts = np.unique(ids[starts], return_counts=True)
    if (counts > 1).any():
        raise FallowError(
            f"{source}: rows of episode {found[counts > 1][0]:g} are not together; "
            "sort the rows by episode, then time"
        )
    return np.diff(np.append(starts, len(ids)))


def ended(ends: np.ndarray) -> np.ndarray:
    """Rows (k,) of each episode, from a flag at every last row.

    An episode that had hardly begun when the recording ended is left.
    """
    stops = np.concatenate([[0], np.flatnonzero(ends) + 1])
    if len(ends) - stops[-1] >= MIN_ROWS:
        stops = np.append(stops, len(ends))
    return np.diff(stops)


def pieces(n_rows: int, episode_steps: int) -> np.ndarray:
    """Rows (k,) of equal pieces of a recording without episodes; the rest is left."""
    return np.full(n_rows // episode_steps, episode_steps)


def step_of_episodes(time_s: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(k,) the median time from one row to the next in each episode."""
    ends = np.cumsum(lengths)
    return np.array(
        [
            np.median(np.diff(time_s[end - length : end]))
            for end, length in zip(ends, lengths, strict=True)
            if length > 1
        ]
    )
