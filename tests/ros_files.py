"""Recordings of a log as robots make them, by the writers of `rosbags`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rosbags import rosbag1, rosbag2
from rosbags.typesys import Stores, get_typestore

from fallow.logs.log import Log

STEP_S = 0.02
ROS1, ROS2 = get_typestore(Stores.ROS1_NOETIC), get_typestore(Stores.ROS2_HUMBLE)
STATE = "sensor_msgs/msg/JointState"
DATA = "std_msgs/msg/Float64MultiArray"
TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
EMPTY = np.zeros(0)

Event = tuple[float, str, str, dict[str, Any]]
"""Time in seconds, topic, message type, and what the message says."""


def events(
    log: Log,
    command: str = "effort",
    late_s: float = -0.001,
    state: str = "velocity",
    pause_s: float = 2.0,
) -> Iterator[Event]:
    """States and commands of all episodes, with a pause between two of them.

    Commands are logged `late_s` after the state they were computed from: as the
    efforts of joint states, as `data`, or as a `trajectory` of one point.
    """
    time_s, row, done = 10.0, 0, 0
    for n in log.n_transitions:
        for t in range(n + 1):
            values = log.velocity[row + t]
            if state == "position":
                values = log.velocity[row : row + t + 1].sum(axis=0) * STEP_S
            measured = {state: np.ascontiguousarray(values, float)}
            yield time_s + t * STEP_S, "/joint_states", STATE, measured
            if t < n:
                action = np.ascontiguousarray(log.action[done + t], float)
                kind = {"data": DATA, "trajectory": TRAJECTORY}.get(command, STATE)
                at_s = time_s + t * STEP_S + late_s
                yield at_s, "/joint_command", kind, {command: action}
        time_s += n * STEP_S + pause_s
        row, done = row + n + 1, done + n


def message(store: Any, kind: str, joints: tuple[str, ...], parts: dict) -> Any:
    """A message of one of the three kinds."""
    types = store.types
    if kind == DATA:
        layout = types["std_msgs/msg/MultiArrayLayout"]([], 0)
        return types[kind](layout, parts["data"])
    stamp = types["builtin_interfaces/msg/Time"](0, 0)
    header = {"stamp": stamp, "frame_id": ""}
    if store is ROS1:
        header["seq"] = 0
    header = types["std_msgs/msg/Header"](**header)
    if kind == STATE:
        given = [parts.get(n, EMPTY) for n in ("position", "velocity", "effort")]
        return types[kind](header, list(joints), *given)
    points = parts.get("points") or [(0.0, {"effort": parts["trajectory"]})]
    fields = ("positions", "velocities", "accelerations", "effort")
    return types[kind](
        header,
        list(joints),
        [
            types["trajectory_msgs/msg/JointTrajectoryPoint"](
                **{name: values.get(name, EMPTY) for name in fields},
                time_from_start=types["builtin_interfaces/msg/Duration"](
                    int(after_s), round(after_s % 1 * 1e9)
                ),
            )
            for after_s, values in points
        ],
    )


def _write(writer: Any, store: Any, joints: tuple[str, ...], found: Any) -> None:
    serialize = store.serialize_ros1 if store is ROS1 else store.serialize_cdr
    connections: dict[tuple[str, str], Any] = {}
    for time_s, topic, kind, parts in sorted(found, key=lambda event: event[0]):
        if (topic, kind) not in connections:
            connections[topic, kind] = writer.add_connection(
                topic, kind, typestore=store
            )
        content = serialize(message(store, kind, joints, parts), kind)
        writer.write(connections[topic, kind], round(time_s * 1e9), content)


def write_bag(log: Log, path: Path, found: Any = None, compression: str = "") -> None:
    """ROS 1: one file."""
    writer = rosbag1.Writer(path)
    if compression:
        writer.set_compression(getattr(writer.CompressionFormat, compression))
    with writer:
        _write(writer, ROS1, log.actuators, found or events(log))


def write_ros2(
    log: Log,
    path: Path,
    found: Any = None,
    plugin: str = "SQLITE3",
    compression: str = "",
) -> None:
    """ROS 2: a folder with metadata.yaml and one .db3 or .mcap file."""
    storage = getattr(rosbag2.StoragePlugin, plugin)
    writer = rosbag2.Writer(path, version=9, storage_plugin=storage)
    if compression:
        mode = getattr(rosbag2.CompressionMode, compression)
        writer.set_compression(mode, rosbag2.CompressionFormat.ZSTD)
    with writer:
        _write(writer, ROS2, log.actuators, found or events(log))


def write_ros2_mcap(log: Log, path: Path, found: Any = None) -> None:
    """ROS 2 with MCAP storage, the default of newer versions."""
    write_ros2(log, path, found, plugin="MCAP")


def write_takes(log: Log, path: Path) -> None:
    """A folder of ROS 1 bags, one an episode; the first one's name sorts last."""
    path.mkdir()
    takes: list[list[Event]] = []
    for event in sorted(events(log), key=lambda event: event[0]):
        if not takes or event[0] - takes[-1][-1][0] > 1:
            takes.append([])
        takes[-1].append(event)
    for index, take in enumerate(takes):
        write_bag(log, path / f"take-{len(takes) - index:03d}.bag", take)


WRITERS: dict[str, tuple[str, str, Callable[[Log, Path], None]]] = {
    "ros1": ("ros", "run.bag", write_bag),
    "ros1-takes": ("ros", "takes1", write_takes),
    "ros2": ("ros", "bag2", write_ros2),
    "ros2-mcap": ("mcap", "bag3", write_ros2_mcap),
}
"""As `log_files.WRITERS`."""
