"""Fallow's histories; their header says which velocity each actuator drives."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fallow.core.errors import FallowError
from fallow.dynamics.conditions import Condition
from fallow.logs.columns import Columns, refuse
from fallow.logs.history import MAGIC, Header, History, read_history
from fallow.logs.limits import Budget
from fallow.logs.readers.reader import Reader
from fallow.logs.table import Array, LogTable

STOOD_STILL = "the clock stood still: episodes are taken one after another"


def matches(path: Path, head: bytes) -> bool:
    """Whether the file begins as a history does."""
    return head.startswith(MAGIC)


def read(path: Path, columns: Columns, budget: Budget) -> LogTable:
    """The history's observations and actions; its damage, if any, is a note."""
    check_columns(path, columns)
    budget.take(path.stat().st_size, "the history")
    return table_of(read_history(path), str(path))


def check_columns(path: Path, columns: Columns) -> None:
    """Raise if episodes or times are chosen, which a history has itself."""
    refuse(columns, str(path), "episode", "time", "episode_steps", "lag_ms")


def table_of(history: History, source: str) -> LogTable:
    """A history that is read already.

    Raises:
        FallowError: it holds no episode.
    """
    header, episodes = history.header, history.episodes
    if not episodes:
        raise FallowError(f"{source} holds no finished episode; record some first")
    n_transitions = np.array([e.n_transitions for e in episodes], np.int64)
    regime = _regime(history)
    start_step = _start_step(history)
    timed = start_step is not None

    def observations(chosen: Sequence[int]) -> np.ndarray:
        return np.concatenate([e.observation[:, list(chosen)] for e in episodes])

    def actions(chosen: Sequence[int]) -> np.ndarray:
        return np.concatenate([e.action[:, list(chosen)] for e in episodes])

    return LogTable(
        source=source,
        format="history",
        arrays={
            "observation": Array(header.columns, n_transitions + 1, observations, True),
            "action": Array(header.actuators, n_transitions, actions, True),
        },
        velocity=tuple(("observation", c) for c in header.actuator_velocity),
        action=tuple(("action", c) for c in range(len(header.actuators))),
        start_step=start_step,
        control_step_s=header.control_step_s,
        regime=regime,
        gain=None if regime is None else _gain(header, regime),
        notes=tuple(filter(None, (history.damage, "" if timed else STOOD_STILL))),
    )


def _start_step(history: History) -> np.ndarray | None:
    """(k,) on the agent's clock; None where it stood still, as in an evaluation.

    It did where two episodes of one world would share a step.
    """
    if history.header.frames_per_step == 0:
        return None
    free_from: dict[int, int] = {}
    starts = []
    for episode in history.episodes:
        start = episode.start_frame // history.header.frames_per_step
        if start < free_from.get(episode.world, 0):
            return None
        free_from[episode.world] = start + episode.n_transitions
        starts.append(start)
    return np.array(starts, np.int64)


def _regime(history: History) -> np.ndarray | None:
    """(k,) an episode belongs to the regime in force when it ends."""
    regimes = [e.regime for e in history.episodes if e.regime is not None]
    if len(regimes) < len(history.episodes):
        return None
    return np.array([regime[-1] for regime in regimes], np.int64)


def _gain(header: Header, regime: np.ndarray) -> np.ndarray | None:
    """(k, d) true gains, where the history names its condition."""
    n_actuators = len(header.actuators)
    try:
        gains = Condition.parse(str(header.about["condition"])).gains(n_actuators)
    except (KeyError, FallowError):
        return None
    return None if gains is None else gains[(regime > 0).astype(int)]


READER = Reader("history", "Fallow's own histories", matches, read)
