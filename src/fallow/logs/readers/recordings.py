"""Recordings of messages, MCAP or ROS bags: one file, or a folder with one an episode.

A recording is a file, or a folder that ROS 2 wrote (metadata.yaml and parts of one
recording). A folder of nothing but recordings is one log. The topic with the velocities
sets the clock; `pairing` finds the command in force between two states. A pause begins
a new episode.
"""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from fallow.core.errors import FallowError
from fallow.core.text import counted, printable
from fallow.logs import pairing
from fallow.logs.columns import Columns, refuse
from fallow.logs.limits import Budget, require_regular
from fallow.logs.readers.reader import head_of, reason_of
from fallow.logs.streams import Collector, Stream
from fallow.logs.table import Array, LogTable

SUFFIXES = (".mcap", ".bag", ".db3", ".zstd")
METADATA = "metadata.yaml"
MAX_NAMED = 3
"""Recordings that cannot be read are named in notes up to so many."""

Open = Callable[[Path, Collector, Budget], None]
"""Reads the messages of one file."""
Recording = list[Path]
"""The files of one recording."""


def recordings_in(folder: Path) -> list[Recording]:
    """The recordings of a folder; none if there is anything else in it."""
    if (folder / METADATA).is_file():
        return [_files(folder)] if _files(folder) else []
    found = []
    for path in _visible(folder):
        if path.is_dir():
            inside = _files(path) if (path / METADATA).is_file() else []
        else:
            inside = [path] if path.suffix in SUFFIXES else []
        if not inside:
            return []
        found.append(inside)
    return found


def has_only(folder: Path, suffix: str) -> bool:
    """Whether a folder holds recordings, all of one format."""
    files = [path for recording in recordings_in(folder) for path in recording]
    return bool(files) and all(path.suffix == suffix for path in files)


def read(
    path: Path, columns: Columns, budget: Budget, name: str, openers: dict[bytes, Open]
) -> LogTable:
    """The recordings in the order of their first messages.

    A recording that cannot be read is left out with a note.

    Raises:
        FallowError: none can be read, or no message is about joints.
    """
    refuse(columns, str(path), "episode", "time")
    recordings = recordings_in(path) if path.is_dir() else [[path]]
    found: list[tuple[int, list[Stream]]] = []
    failures: list[str] = []
    for recording in recordings:
        try:
            found.append(_streams(recording, budget, openers))
        except Exception as error:
            if len(recordings) == 1:
                raise
            failures.append(f"{recording[0].name}: {reason_of(error)}")
    if not found:
        raise FallowError(f"{path} holds no recording that can be read: {failures[0]}")
    found.sort(key=lambda item: item[0])
    streams = [item[1] for item in found]
    table = LogTable(str(path), name, _arrays(streams), notes=_notes(failures))
    pair = functools.partial(pairing.pair, table, streams, columns=columns)
    return LogTable(str(path), name, table.arrays, notes=table.notes, pair=pair)


def _streams(
    recording: Recording, budget: Budget, openers: dict[bytes, Open]
) -> tuple[int, list[Stream]]:
    collector = Collector(budget)
    for path in recording:
        head = head_of(require_regular(path))
        opener = next(
            (o for magic, o in openers.items() if head.startswith(magic)), None
        )
        if opener is None:
            raise FallowError(f"{path} is not a recording: it is empty or damaged")
        opener(path, collector, budget)
    start_ns, streams = collector.streams()
    if not streams:
        raise FallowError(
            f"{recording[0]} holds no joint states: no topic of "
            "sensor_msgs/JointState, std_msgs/Float64MultiArray, "
            "trajectory_msgs/JointTrajectory or JSON with velocities was found"
        )
    return start_ns, streams


def _arrays(recordings: Sequence[Sequence[Stream]]) -> dict[str, Array]:
    """The signals of all recordings, by `topic.part`."""
    labels: dict[str, dict[str, None]] = {}
    commands = set()
    for stream in (stream for streams in recordings for stream in streams):
        labels.setdefault(stream.name, {}).update(dict.fromkeys(stream.labels))
        if stream.is_command:
            commands.add(stream.name)
    return {
        name: Array.on_a_clock(tuple(columns), name in commands)
        for name, columns in labels.items()
    }


def _notes(failures: list[str]) -> tuple[str, ...]:
    if not failures:
        return ()
    named = "; ".join(printable(failure, 200) for failure in failures[:MAX_NAMED])
    rest = (
        f"; and {len(failures) - MAX_NAMED} more" if len(failures) > MAX_NAMED else ""
    )
    return (f"left out {counted(len(failures), 'recording')}: {named}{rest}",)


def _visible(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if not p.name.startswith("."))


def _files(folder: Path) -> list[Path]:
    return [path for path in _visible(folder) if path.suffix in SUFFIXES]
