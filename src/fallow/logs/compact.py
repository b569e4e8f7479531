"""Histories reduced to what the estimator of responses reads."""

import dataclasses
from pathlib import Path

import numpy as np

from fallow.core import files
from fallow.core.errors import FallowError
from fallow.core.records import Episode
from fallow.logs.history import Header, History, HistoryWriter, read_history

TYPE = "float16"


def compact(source: str | Path, target: str | Path) -> Path:
    """Write a history again with driven velocities, actions, rewards and regimes only.

    Numbers are float16, about 28 bytes a transition with six actuators, less than a
    fifth of what a fleet records of Walker. It reads like any other history, but
    can't be simulated again.

    Raises:
        FallowError: the source is missing or damaged, or the target exists already.
    """
    target = Path(target)
    if target.exists():
        raise FallowError(f"{target} exists already; choose another file")
    history = read_history(source)
    if history.damage:
        raise FallowError(f"only whole histories are compacted; {history.damage}")
    columns = sorted(set(history.header.actuator_velocity))
    with (
        files.write_atomic(target) as part,
        HistoryWriter(part, _header(history.header, columns)) as writer,
    ):
        for episode in history.episodes:
            writer.add(_episode(episode, columns))
    return target


def with_columns(history: History, columns: list[int]) -> History:
    """A history that has some columns of its observations only, by index.

    Driven velocities must be among them.
    """
    episodes = tuple(
        dataclasses.replace(episode, observation=episode.observation[:, columns])
        for episode in history.episodes
    )
    header = _selected(history.header, columns)
    return History(header, episodes, history.damage)


def _selected(header: Header, columns: list[int]) -> Header:
    return dataclasses.replace(
        header,
        columns=tuple(header.columns[column] for column in columns),
        actuator_velocity=tuple(columns.index(c) for c in header.actuator_velocity),
    )


def _header(header: Header, columns: list[int]) -> Header:
    return dataclasses.replace(_selected(header, columns), observation_type=TYPE)


def _episode(episode: Episode, columns: list[int]) -> Episode:
    regime = episode.regime
    return Episode(
        observation=episode.observation[:, columns],
        action=episode.action.astype(TYPE),
        reward=episode.reward.astype(TYPE),
        regime=None if regime is None else regime.astype(np.int16),
        world=episode.world,
        start_frame=episode.start_frame,
    )
