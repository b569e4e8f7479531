"""Named arrays without more structure: rows with episode marks, or cubes.

Rows: every array has a row for each time, and marks say where episodes end.
Cubes: (episodes, steps, columns), the actions one step shorter or not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.text import printable
from fallow.logs.columns import ACTION_NAMES, OBSERVATION_NAMES, Columns, refuse
from fallow.logs.guess import POSITION_NAMES, VELOCITY_NAMES
from fallow.logs.limits import Budget
from fallow.logs.readers.flat import episode_lengths, episode_regime, episode_steps_s
from fallow.logs.table import Array, LogTable, limit_columns

STEP_NAMES = ("control_step_s", "dt")
NUMBERS = "iufb"
"""Kinds of NumPy types that are read."""


@dataclass(frozen=True)
class Declared:
    """The declaration of an array in a file, read before loading."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return int(np.prod([int(n) for n in self.shape], dtype=object))

    @property
    def n_bytes(self) -> int:
        """Its size in memory."""
        return self.size * self.dtype.itemsize


class NamedArrays:
    """The arrays of a file by name; each is loaded when it is asked for."""

    def __init__(
        self,
        declared: Mapping[str, Declared],
        load: Callable[[str], np.ndarray],
        budget: Budget,
    ) -> None:
        self.declared = {n: d for n, d in declared.items() if d.dtype.kind in NUMBERS}
        self._load = load
        self._budget = budget

    def __call__(self, name: str) -> np.ndarray:
        """One array; its memory is taken from the budget first."""
        declared = self.declared[name]
        self._budget.take(declared.n_bytes, f"'{printable(name, 60)}'")
        values = self._load(name)
        if values.shape != declared.shape:
            raise FallowError(
                f"{self._budget.source}: '{printable(name, 60)}' has shape "
                f"{values.shape} and declares {declared.shape}; the file is damaged"
            )
        return values


def table_of_arrays(arrays: NamedArrays, columns: Columns, **about: Any) -> LogTable:
    """The table of arrays: cubes if the actions are one, else rows.

    Raises:
        FallowError: no array has rows, or rows do not fit.
    """
    source = str(about["source"])
    declared = arrays.declared
    about.setdefault("control_step_s", _control_step(source, arrays))
    rows = {name: d for name, d in declared.items() if d.shape and d.size > 1}
    actions = [d for n, d in rows.items() if _last(n) in ACTION_NAMES]
    is_cube = {len(d.shape) == 3 for d in actions or rows.values()}
    if columns.episode_steps is None and True in is_cube:
        refuse(columns, source, "episode", "time", "lag_ms")
        return LogTable(**_cubes(arrays, rows), **about)
    tables = {name: d for name, d in rows.items() if len(d.shape) <= 2}
    if not tables:
        raise FallowError(f"{source} holds no array with rows; it is not a log")
    n_rows = max(d.shape[0] for d in tables.values())
    if actions and len(actions[0].shape) <= 2:
        n_rows = actions[0].shape[0]
    _check_rows(source, tables, n_rows)
    return LogTable(**_rows(source, arrays, tables, n_rows, columns), **about)


def array_of(
    name: str, width: int, lengths: np.ndarray, load: Callable[[], np.ndarray]
) -> Array:
    """An array (rows, width) that `load` returns when its columns are chosen."""
    limit_columns(printable(name, 60), width)
    kept = int(lengths.sum())

    def chosen(columns: Sequence[int]) -> np.ndarray:
        whole = load()
        return whole.reshape(len(whole), width)[:kept, list(columns)]

    names = (name,) if width == 1 else tuple(f"{name}[{i}]" for i in range(width))
    return Array(names, lengths, chosen)


def _last(name: str) -> str:
    return name.lower().split("/")[-1]


def _control_step(source: str, arrays: NamedArrays) -> float | None:
    """The one step that a file names, in seconds.

    Raises:
        FallowError: it names several.
    """
    for name in STEP_NAMES:
        if name not in arrays.declared:
            continue
        steps = arrays(name)
        if steps.size and steps.min() != steps.max():
            raise FallowError(
                f"{source} mixes control steps: '{name}' goes from {steps.min():g} to "
                f"{steps.max():g} s, and the response depends on the step; diagnose "
                "them separately"
            )
        if steps.size == 1:
            return float(steps.flat[0])
    return None


def _cubes(arrays: NamedArrays, rows: Mapping[str, Declared]) -> dict[str, Any]:
    cubes = {name: d for name, d in rows.items() if len(d.shape) == 3}

    def load(name: str) -> Callable[[], np.ndarray]:
        return lambda: arrays(name).reshape(-1, cubes[name].shape[2])

    found = {}
    for name, d in cubes.items():
        n_episodes, n_steps, width = d.shape
        lengths = np.full(n_episodes, n_steps)
        found[name] = array_of(name, width, lengths, load(name))
    regime = rows.get("regime")
    n_episodes = next(iter(cubes.values())).shape[0]
    known = regime is not None and regime.shape == (n_episodes,)
    return {
        "arrays": found,
        "regime": arrays("regime").astype(np.int64) if known else None,
    }


def _check_rows(source: str, tables: Mapping[str, Declared], n_rows: int) -> None:
    measured = (*ACTION_NAMES, *OBSERVATION_NAMES, *VELOCITY_NAMES, *POSITION_NAMES)
    for name, d in tables.items():
        if _last(name) in measured and d.shape[0] != n_rows:
            raise FallowError(
                f"{source}: '{printable(name, 60)}' has {d.shape[0]} rows and others "
                f"{n_rows} rows; record every array in every row"
            )


def _rows(
    source: str,
    arrays: NamedArrays,
    tables: Mapping[str, Declared],
    n_rows: int,
    columns: Columns,
) -> dict[str, Any]:
    """Arrays of equal length, one row for each time; others are left aside."""
    whole = {name: d for name, d in tables.items() if d.shape[0] == n_rows}
    marks = [name for name, d in whole.items() if d.shape[1:] in ((), (1,))]

    def column(name: str) -> np.ndarray:
        return arrays(name).reshape(-1)

    lengths = episode_lengths(source, marks, column, n_rows, columns)

    def load(name: str) -> Callable[[], np.ndarray]:
        return lambda: arrays(name)

    return {
        "arrays": {
            name: array_of(
                name, 1 if len(d.shape) == 1 else d.shape[1], lengths, load(name)
            )
            for name, d in whole.items()
        },
        "step_s": episode_steps_s(source, marks, column, lengths, columns),
        "regime": episode_regime(marks, column, lengths),
    }
