"""Logs from data in memory: frames, arrays by name, episodes, or two arrays."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.sizes import machine_memory
from fallow.core.text import printable
from fallow.logs.assemble import assemble
from fallow.logs.columns import Columns, refuse
from fallow.logs.limits import Budget
from fallow.logs.log import Log
from fallow.logs.readers.arrays import NUMBERS, Declared, NamedArrays, table_of_arrays
from fallow.logs.readers.episodes import arrays_of_episodes
from fallow.logs.readers.flat import episode_lengths, episode_regime, episode_steps_s
from fallow.logs.table import Array, LogTable, limit_columns

FORMAT = "data"


def from_data(data: Any, columns: Columns | None = None, *, name: str = "data") -> Log:
    """A log of data in memory, with the same choice of columns as a file.

    Args:
        data: a pandas `DataFrame` (or another with `columns` and `to_numpy`), one row
            for each time; a dict of arrays, (rows, …) or (episodes, steps, …); a list
            of dicts of arrays, one an episode; or a pair (velocity, action) of arrays
            (rows, d), (episodes, steps, d), or lists of (steps, d) by episode.
        columns: which columns are velocities and actions, and where episodes end.
        name: what notes and errors call the data.

    Raises:
        FallowError: one sentence on what is wrong with the data or the choice.
    """
    columns = columns or Columns()
    limit_bytes = columns.max_memory_bytes or machine_memory()
    budget = Budget(printable(name), limit_bytes)
    return assemble(_table(data, columns, budget), columns, budget)


def _table(data: Any, columns: Columns, budget: Budget) -> LogTable:
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):
        return _of_frame(data, columns, budget.source)
    if isinstance(data, tuple) and len(data) == 2:
        data = dict(zip(("velocity", "action"), data, strict=True))
    if isinstance(data, Mapping):
        if any(_is_ragged(value) for value in data.values()):
            return _of_episodes(_by_episode(data, budget.source), columns, budget)
        return _of_arrays(data, columns, budget)
    if isinstance(data, Sequence) and all(isinstance(item, Mapping) for item in data):
        return _of_episodes(data, columns, budget)
    raise FallowError(
        f"{budget.source} is of type {type(data).__name__}; give a DataFrame, a dict "
        "of arrays, a list of dicts by episode, or a pair (velocity, action)"
    )


def _of_frame(frame: Any, columns: Columns, source: str) -> LogTable:
    names = [str(label) for label in frame.columns]
    limit_columns(source, len(names))
    places = {name: place for place, name in reversed(list(enumerate(names)))}

    def column(name: str) -> np.ndarray:
        values = frame[frame.columns[places[name]]].to_numpy()
        return _array(source, name, values[:, 0] if values.ndim > 1 else values)

    lengths = episode_lengths(source, names, column, len(frame), columns)
    kept = int(lengths.sum())

    def load(chosen: Sequence[int]) -> np.ndarray:
        return np.stack([column(names[place])[:kept] for place in chosen], axis=1)

    return LogTable(
        source=source,
        format=FORMAT,
        arrays={"table": Array(tuple(names), lengths, load, named=True)},
        step_s=episode_steps_s(source, names, column, lengths, columns),
        regime=episode_regime(names, column, lengths),
    )


def _of_arrays(data: Mapping[Any, Any], columns: Columns, budget: Budget) -> LogTable:
    arrays = {str(key): _array(budget.source, key, data[key]) for key in data}
    declared = {name: Declared(a.shape, a.dtype) for name, a in arrays.items()}
    found = NamedArrays(declared, arrays.__getitem__, budget)
    return table_of_arrays(found, columns, source=budget.source, format=FORMAT)


def _of_episodes(
    episodes: Sequence[Mapping[Any, Any]], columns: Columns, budget: Budget
) -> LogTable:
    refuse(columns, budget.source, "episode", "time", "episode_steps", "lag_ms")
    arrays = [_flat(budget.source, episode) for episode in episodes]
    declared = [
        {name: Declared(a.shape, a.dtype) for name, a in episode.items()}
        for episode in arrays
    ]

    def load(name: str) -> list[np.ndarray]:
        return [episode[name] for episode in arrays]

    found = arrays_of_episodes(declared, load, budget)
    return LogTable(source=budget.source, format=FORMAT, arrays=found)


def _flat(source: str, episode: Mapping[Any, Any], prefix: str = "") -> dict:
    """Arrays of numbers by name; those of a dict in it by `name/inner name`."""
    found: dict[str, np.ndarray] = {}
    for key, value in episode.items():
        if isinstance(value, Mapping):
            found |= _flat(source, value, f"{prefix}{key}/")
        else:
            array = _array(source, key, value)
            if array.dtype.kind in NUMBERS and array.ndim:
                found[f"{prefix}{key}"] = array
    return found


def _is_ragged(value: Any) -> bool:
    """Whether a value is a list of tables, one an episode."""
    return isinstance(value, list | tuple) and any(np.ndim(v) > 1 for v in value[:1])


def _by_episode(data: Mapping[Any, Any], source: str) -> list[dict[str, Any]]:
    counts = {str(key): len(value) for key, value in data.items() if _is_ragged(value)}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{n} of '{printable(k, 60)}'" for k, n in counts.items())
        raise FallowError(f"{source} has lists of different lengths: {listed} episodes")
    by_name = {str(key): value for key, value in data.items() if str(key) in counts}
    n_episodes = next(iter(counts.values()))
    return [{name: v[e] for name, v in by_name.items()} for e in range(n_episodes)]


def _array(source: str, name: Any, values: Any) -> np.ndarray:
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise FallowError(
            f"{source}: '{printable(str(name), 60)}' is not an array; its rows must be "
            "equally long"
        ) from None
