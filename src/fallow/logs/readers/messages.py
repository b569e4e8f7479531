"""Messages about joints, from ROS 1, ROS 2 or JSON, as signals of a recording.

sensor_msgs/JointState             name, position, velocity, effort
std_msgs/Float64MultiArray         data
trajectory_msgs/JointTrajectory    joint_names, points: positions, velocities,
                                   accelerations, effort, time_from_start
"""

import functools
import json
from typing import Any

from fallow.core.errors import FallowError
from fallow.core.text import printable
from fallow.logs.readers.reader import needs
from fallow.logs.streams import MAX_TIME_NS, Collector, TrajectoryPoint

STATE_PARTS = ("position", "velocity", "effort")
POINT_PARTS = {
    "effort": "effort",
    "accelerations": "acceleration",
    "velocities": "velocity",
    "positions": "position",
}
"""Of a trajectory's point: its field, and what we call it."""
KINDS = {
    "JointState": "sensor_msgs/msg/JointState",
    "Float64MultiArray": "std_msgs/msg/Float64MultiArray",
    "Float32MultiArray": "std_msgs/msg/Float32MultiArray",
    "JointTrajectory": "trajectory_msgs/msg/JointTrajectory",
}
"""By the last word of a message's type: its type in ROS 2."""
MAX_STAMP_OFFSET_NS = 60 * 10**9
"""A trajectory's start further from its message is on another clock."""
SECOND_NS = 10**9


def kind_of(message_type: str) -> str | None:
    """`JointState` of `sensor_msgs/msg/JointState`; None of what is not read."""
    package, _, name = message_type.replace("/msg/", "/").partition("/")
    known = KINDS.get(name, "")
    return name if known.startswith(f"{package}/") else None


def decode(encoding: str, kind: str, content: bytes) -> Any:
    """A message as an object with its fields; `encoding` is cdr, ros1 or json."""
    if encoding == "json":
        return _Fields(json.loads(content))
    store = _typestore(encoding)
    deserialize = store.deserialize_cdr if encoding == "cdr" else store.deserialize_ros1
    return deserialize(content, KINDS[kind])


def add(
    collector: Collector, topic: str, time_ns: int, message: Any, kind: str = ""
) -> None:
    """Add a decoded message to the signals of a recording."""
    if kind == "JointTrajectory" or (not kind and message.points):
        points = [_point(topic, point) for point in message.points]
        start_ns = _start(message, time_ns)
        collector.add_trajectory(topic, message.joint_names, start_ns, points)
    elif kind.endswith("MultiArray"):
        collector.add(f"{topic}.data", (), time_ns, message.data)
    else:
        for part in STATE_PARTS if kind else (*STATE_PARTS, "data"):
            joints = () if part == "data" else message.name
            collector.add(f"{topic}.{part}", joints, time_ns, getattr(message, part))


class _Fields:
    """A JSON object with the attributes of a message; absent ones are empty."""

    def __init__(self, content: Any) -> None:
        self._content = content if isinstance(content, dict) else {}

    def __getattr__(self, name: str) -> Any:
        value = self._content.get(name)
        if name in ("sec", "nanosec"):
            return value if isinstance(value, int) else 0
        if name == "points":
            return [_Fields(v) for v in value] if isinstance(value, list) else []
        if isinstance(value, list):
            return value
        return _Fields(value) if isinstance(value, dict) or name in _OBJECTS else []


_OBJECTS = ("header", "stamp", "time_from_start")


def _point(topic: str, point: Any) -> TrajectoryPoint:
    after = point.time_from_start
    after_ns = int(after.sec) * SECOND_NS + int(after.nanosec)
    if not 0 <= after_ns < MAX_TIME_NS:
        raise FallowError(
            f"a trajectory of {printable(topic, 60)} has a point at {after_ns} ns; the "
            "recording is damaged"
        )
    parts = {
        name: getattr(point, field)
        for field, name in POINT_PARTS.items()
        if len(getattr(point, field))
    }
    return TrajectoryPoint(after_ns, parts)


def _start(message: Any, time_ns: int) -> int:
    """When a trajectory begins: at its stamp if it has one, else with its message."""
    stamp = message.header.stamp
    stamp_ns = int(stamp.sec) * SECOND_NS + int(stamp.nanosec)
    near = abs(stamp_ns - time_ns) < MAX_STAMP_OFFSET_NS
    return stamp_ns if stamp_ns and near else time_ns


@functools.cache
def _typestore(encoding: str) -> Any:
    types = needs("rosbags.typesys", "ros")
    name = types.Stores.ROS2_HUMBLE if encoding == "cdr" else types.Stores.ROS1_NOETIC
    return types.get_typestore(name)
