"""Rows without more structure than columns: where episodes end, and how time runs."""

from collections.abc import Callable, Iterable

import numpy as np

from fallow.core.errors import FallowError, unknown
from fallow.core.text import printable
from fallow.logs.columns import Columns, refuse
from fallow.logs.table import ended, pieces, runs, step_of_episodes

EPISODE_NAMES = (
    *("episode", "episode_index", "episode_id", "episode_number", "episodes"),
    *("trajectory", "traj"),
)
END_NAMES = (
    *("done", "dones", "terminal", "terminals", "terminated"),
    *("timeout", "timeouts", "truncated"),
)
MAX_REGIME = 1 << 31
"""A larger number does not count regimes."""
TIME_NAMES = ("time", "time_s", "timestamp", "timestamps", "t", "stamp")

Column = Callable[[str], np.ndarray]
"""All rows (n,) of a column by its name."""


def episode_lengths(
    source: str, names: Iterable[str], column: Column, n_rows: int, columns: Columns
) -> np.ndarray:
    """Rows (k,) of each episode: as chosen, by a number for each row, or by ends."""
    known = list(names)
    if columns.episode_steps is not None:
        if n_rows < columns.episode_steps:
            raise FallowError(
                f"--episode-steps is {columns.episode_steps:,} and {source} has "
                f"{n_rows:,} rows; choose a smaller one"
            )
        return pieces(n_rows, columns.episode_steps)
    number, ends = episode_columns(source, known, columns)
    if number is not None:
        return runs(source, column(number))
    return ended(np.logical_or.reduce([column(name).astype(bool) for name in ends]))


def episode_columns(
    source: str, names: list[str], columns: Columns
) -> tuple[str | None, list[str]]:
    """The column that numbers episodes; without one, the flags at their last rows.

    Raises:
        FallowError: there is neither.
    """
    if columns.episode is not None:
        return _known(names, columns.episode, "--episode"), []
    by_name = {name.lower(): name for name in reversed(names)}
    for name in EPISODE_NAMES:
        if name in by_name:
            return by_name[name], []
    ends = [by_name[name] for name in END_NAMES if name in by_name]
    if ends:
        return None, ends
    raise FallowError(
        f"{source} does not say where episodes end; name the column that numbers them "
        "with --episode, or cut the recording into pieces with --episode-steps"
    )


def episode_steps_s(
    source: str,
    names: Iterable[str],
    column: Column,
    lengths: np.ndarray,
    columns: Columns,
) -> np.ndarray | None:
    """(k,) the control step of each episode in seconds; None without times."""
    refuse(columns, source, "lag_ms")
    known = list(names)
    if columns.time is not None:
        name: str | None = _known(known, columns.time, "--time")
    else:
        by_name = {name.lower(): name for name in reversed(known)}
        found = [by_name[name] for name in TIME_NAMES if name in by_name]
        name = found[0] if found else None
    if name is None:
        return None
    try:
        time_s = column(name).astype(float)
    except (FallowError, ValueError):
        if columns.time is not None:
            raise
        return None  # a guess that holds dates, say
    if not np.isfinite(time_s).all():
        if columns.time is None:
            return None
        raise FallowError(
            f"{source}: the time column '{printable(name, 60)}' holds NaN or infinite "
            "values; choose another with --time"
        )
    return step_of_episodes(time_s, lengths)


def episode_regime(
    names: Iterable[str], column: Column, lengths: np.ndarray
) -> np.ndarray | None:
    """(k,) the regime at each episode's end, where a column has it."""
    if "regime" not in names or len(lengths) == 0:
        return None
    regime = column("regime")[np.cumsum(lengths) - 1].astype(float)
    if (
        not np.array_equal(regime, np.floor(regime))
        or np.abs(regime).max() > MAX_REGIME
    ):
        return None  # something else by that name
    return regime.astype(np.int64)


def _known(names: list[str], name: str, flag: str) -> str:
    if name not in names:
        raise unknown(
            f"column for {flag}", name, [printable(n, 60) for n in names[:40]]
        )
    return name
