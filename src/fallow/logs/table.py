"""What a file holds before columns are chosen: named arrays, cut into episodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fallow.core.errors import FallowError

MAX_COLUMNS = 10_000
"""Of a file; more is a matrix of something else."""

MIN_ROWS = 3
"""Of an episode without a closing row: two transitions."""

Load = Callable[[Sequence[int]], np.ndarray]
"""Numbers of some columns of an array, (rows, chosen)."""


@dataclass(frozen=True)
class Array:
    """One named array of a file: its columns, its rows, and how to load it."""

    columns: tuple[str, ...]
    """Names; `state[3]` where the file has none."""
    lengths: np.ndarray  # (k,) rows in each episode
    load: Load
    named: bool = False
    """Whether the file names the columns itself."""


Choice = tuple[tuple[str, int], ...]
"""Columns, each as the name of its array and its place there."""


@dataclass(frozen=True)
class Table:
    """A file's arrays by name, and what it says about itself."""

    source: str
    format: str
    arrays: Mapping[str, Array]
    velocity: Choice | None = None
    """The columns, where the format says which they are."""
    action: Choice | None = None
    start_step: np.ndarray | None = None  # (k,)
    control_step_s: float | None = None
    step_s: np.ndarray | None = None  # (k,), where every row has a time
    regime: np.ndarray | None = None  # (k,)
    gain: np.ndarray | None = None  # (k, d)
    notes: tuple[str, ...] = field(default=())

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


def of_array(name: str, values: Any, lengths: np.ndarray) -> Array:
    """An array (rows, width) or (rows,) that is loaded already, or sliced lazily."""
    width = 1 if len(values.shape) == 1 else values.shape[1]
    limit_columns(name, width)

    def load(columns: Sequence[int]) -> np.ndarray:
        whole = np.asarray(values[:])
        return whole.reshape(len(whole), -1)[:, list(columns)]

    names = (name,) if width == 1 else tuple(f"{name}[{i}]" for i in range(width))
    return Array(names, lengths, load)


def limit_columns(source: str, n_columns: int) -> None:
    """Raise where nobody can mean all these columns."""
    if n_columns > MAX_COLUMNS:
        raise FallowError(
            f"{source} has {n_columns:,} columns and {MAX_COLUMNS:,} is the limit; "
            "is it written sideways? Write one row for each time"
        )


def runs(source: str, ids: np.ndarray) -> np.ndarray:
    """Rows (k,) of each episode, from an episode number for every row."""
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
    if episode_steps < MIN_ROWS:
        raise FallowError(
            f"--episode-steps is {episode_steps}; an episode needs {MIN_ROWS} rows or "
            "more"
        )
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
