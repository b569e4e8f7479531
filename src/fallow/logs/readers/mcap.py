"""MCAP recordings of joint states and commands, one file an episode or many.

Topics of `sensor_msgs/JointState` and `std_msgs/Float64MultiArray` are read, in ROS 2's
CDR or as JSON. The topic with velocities sets the clock; every other holds its last
value. A pause of a second or more begins a new episode.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.logs.columns import Columns
from fallow.logs.readers.reader import Reader, needs
from fallow.logs.table import Array, Table, limit_columns, pieces, step_of_episodes

MAGIC = b"\x89MCAP0\r\n"
PARTS = ("position", "velocity", "effort", "data")
PAUSE_S = 1.0
NS = 1e-9  # seconds in a nanosecond

Messages = list[tuple[int, Any]]
"""(log time in nanoseconds, decoded message), in time order."""
Signals = dict[str, np.ndarray]
"""`topic.part`: (rows, joints), on the clock of the states."""


def matches(path: Path, head: bytes) -> bool:
    """A recording, or a folder of nothing but recordings."""
    if path.is_dir():
        names = [p for p in path.iterdir() if not p.name.startswith(".")]
        return bool(names) and all(name.suffix == ".mcap" for name in names)
    return head.startswith(MAGIC)


def read(path: Path, columns: Columns) -> Table:
    """The recordings in the order of their first messages."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    recordings = [_topics(file) for file in files if file.suffix == ".mcap"]
    recordings.sort(key=lambda topics: min(m[0][0] for m in topics.values()))
    parts, times = [], []
    labels: dict[str, tuple[str, ...]] = {}
    for topics in recordings:
        time_s, signals, names = _on_one_clock(topics, str(path), columns)
        if labels and names != labels:
            raise FallowError(
                f"{path}: recordings differ in their topics or joints; diagnose them "
                "apart"
            )
        labels = names
        parts.append(signals)
        times.append(time_s)
    lengths = _lengths(times, columns)
    kept = int(lengths.sum())
    whole = {name: np.concatenate([p[name] for p in parts])[:kept] for name in labels}
    return Table(
        source=str(path),
        format="mcap",
        arrays={
            name: Array(labels[name], lengths, _chosen(values), named=True)
            for name, values in whole.items()
        },
        step_s=step_of_episodes(np.concatenate(times)[:kept], lengths),
    )


def _chosen(values: np.ndarray) -> Any:
    return lambda columns: values[:, list(columns)]


def _topics(path: Path) -> dict[str, Messages]:
    """All messages that carry joints, by topic."""
    reader = needs("mcap.reader", "mcap")
    decoder = needs("mcap_ros2.decoder", "mcap").DecoderFactory()
    topics: dict[str, Messages] = defaultdict(list)
    with path.open("rb") as file:
        opened = reader.make_reader(file, validate_crcs=True)
        for schema, channel, message in opened.iter_messages():
            if channel.message_encoding == "json":
                content = json.loads(message.data)
                if isinstance(content, dict) and any(content.get(p) for p in PARTS):
                    topics[channel.topic].append((message.log_time, _Fields(content)))
                continue
            if schema is None or schema.name.split("/")[-1] not in (
                "JointState",
                "Float64MultiArray",
            ):
                continue
            decode = decoder.decoder_for(channel.message_encoding, schema)
            if decode is not None:
                topics[channel.topic].append((message.log_time, decode(message.data)))
    if not topics:
        raise FallowError(
            f"{path} holds no joint states: no topic of sensor_msgs/JointState, "
            "std_msgs/Float64MultiArray or JSON with velocities was found"
        )
    return topics


class _Fields:
    """A JSON message with the attributes of a decoded one."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.name = content.get("name") or []
        for part in PARTS:
            setattr(self, part, content.get(part) or [])


def _on_one_clock(
    topics: dict[str, Messages], source: str, columns: Columns
) -> tuple[np.ndarray, Signals, dict[str, tuple[str, ...]]]:
    """Times (rows,), signals and their labels, on the clock of the velocities."""
    clocks = [
        topic
        for topic, messages in topics.items()
        if len(getattr(messages[0][1], "velocity", ()))
    ]
    if columns.velocity:
        chosen = [t for t in topics if columns.velocity.startswith(t + ".")]
        clocks = chosen or clocks
    if not clocks:
        raise FallowError(
            f"{source}: no topic has velocities ({', '.join(topics)}); record them in "
            "the joint states"
        )
    clock = np.array([time for time, _ in topics[clocks[0]]])
    begun = np.searchsorted(clock, max(m[0][0] for m in topics.values()))
    clock = clock[begun:]
    signals: Signals = {}
    labels: dict[str, tuple[str, ...]] = {}
    for topic, messages in topics.items():
        times = np.array([time for time, _ in messages])
        held = np.searchsorted(times, clock, side="right") - 1
        for part in PARTS:
            values = _stacked([getattr(m, part, ()) for _, m in messages], topic)
            if values is not None:
                name = f"{topic}.{part}"
                signals[name] = values[held]
                labels[name] = _labels(messages, name, values.shape[1])
    return clock * NS, signals, labels


def _stacked(values: list[Any], topic: str) -> np.ndarray | None:
    widths = {len(value) for value in values}
    if widths == {0}:
        return None
    if len(widths) > 1:
        raise FallowError(
            f"messages of {topic} differ in their number of joints ({min(widths)} to "
            f"{max(widths)}); record the same joints in every message"
        )
    limit_columns(topic, widths.pop())
    return np.array(values, dtype=float)


def _labels(messages: Messages, name: str, width: int) -> tuple[str, ...]:
    orders = {tuple(getattr(message, "name", ())) for _, message in messages}
    if len(orders) > 1:
        raise FallowError(
            f"messages of {name} name their joints in different orders; record one "
            "order"
        )
    joints = orders.pop()
    if len(joints) != width:
        joints = tuple(str(i) for i in range(width))
    return tuple(f"{name}[{joint}]" for joint in joints)


def _lengths(times: list[np.ndarray], columns: Columns) -> np.ndarray:
    """Rows (k,) of each episode: pieces as chosen, or what lies between pauses."""
    if columns.episode_steps is not None:
        return pieces(sum(len(time) for time in times), columns.episode_steps)
    lengths: list[int] = []
    for time_s in times:
        pauses = np.flatnonzero(np.diff(time_s) >= PAUSE_S) + 1
        lengths += np.diff(np.concatenate([[0], pauses, [len(time_s)]])).tolist()
    return np.array(lengths, np.int64)


READER = Reader("mcap", "MCAP recordings of joint states", matches, read)
