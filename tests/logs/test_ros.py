"""ROS bags by the writers of `rosbags`: every container, every kind of command."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import ros_files
from rosbags.rosbag2 import CompressionMode

from fallow.core.errors import FallowError
from fallow.diagnosis import decide
from fallow.logs import Columns, logs_in, read_log
from fallow.logs.limits import Budget
from fallow.logs.log import Log
from fallow.logs.streams import Collector, TrajectoryPoint

STEP_S = ros_files.STEP_S


def assert_same(found: Log, log: Log) -> None:
    np.testing.assert_allclose(found.velocity, log.velocity, rtol=1e-9)
    np.testing.assert_allclose(found.action, log.action, rtol=1e-9)
    np.testing.assert_array_equal(found.n_transitions, log.n_transitions)


@pytest.mark.parametrize("command", ["effort", "position", "data", "trajectory"])
@pytest.mark.parametrize("name", ["ros1", "ros2", "ros2-mcap"])
def test_every_kind_of_command(
    name: str, command: str, small_log: Log, tmp_path: Path
) -> None:
    _, file_name, write = ros_files.WRITERS[name]
    write(small_log, tmp_path / file_name, list(ros_files.events(small_log, command)))
    found = read_log(tmp_path / file_name)
    assert_same(found, small_log)
    part = "effort" if command == "trajectory" else command
    assert f"/joint_command.{part}[" in found.notes[0]


def test_a_bag_without_its_folder(small_log: Log, tmp_path: Path) -> None:
    ros_files.write_ros2(small_log, tmp_path / "bag")
    shutil.move(tmp_path / "bag" / "bag.db3", tmp_path / "alone.db3")
    assert_same(read_log(tmp_path / "alone.db3"), small_log)


@pytest.mark.parametrize("compression", ["BZ2", "LZ4"])
def test_compressed_ros1_bags(compression: str, small_log: Log, tmp_path: Path) -> None:
    ros_files.write_bag(small_log, tmp_path / "a.bag", compression=compression)
    assert_same(read_log(tmp_path / "a.bag"), small_log)


@pytest.mark.parametrize(
    ("plugin", "mode"),
    [("SQLITE3", "FILE"), ("SQLITE3", "MESSAGE"), ("MCAP", "STORAGE")],
)
def test_compressed_ros2_bags(
    plugin: str, mode: str, small_log: Log, tmp_path: Path
) -> None:
    assert hasattr(CompressionMode, mode)
    ros_files.write_ros2(small_log, tmp_path / "bag", plugin=plugin, compression=mode)
    assert_same(read_log(tmp_path / "bag"), small_log)


def test_a_folder_of_folders_is_one_log_with_one_recording_an_episode(
    small_log: Log, tmp_path: Path
) -> None:
    takes: list[list] = []
    for event in sorted(ros_files.events(small_log), key=lambda event: event[0]):
        if not takes or event[0] - takes[-1][-1][0] > 1:
            takes.append([])
        takes[-1].append(event)
    for index, take in enumerate(takes):
        plugin = "MCAP" if index % 2 else "SQLITE3"
        name = f"take-{len(takes) - index:03d}"
        ros_files.write_ros2(small_log, tmp_path / "all" / name, take, plugin)
    assert logs_in((tmp_path / "all",)) == [tmp_path / "all"]
    assert_same(read_log(tmp_path / "all"), small_log)


def test_a_broken_recording_is_left_out_with_a_note(
    small_log: Log, tmp_path: Path
) -> None:
    ros_files.write_takes(small_log, tmp_path / "takes")
    names = sorted((tmp_path / "takes").iterdir(), reverse=True)  # in time order
    content = names[3].read_bytes()
    names[3].write_bytes(content[: len(content) // 2])
    names[7].write_bytes(b"")
    found = read_log(tmp_path / "takes")
    assert found.n_episodes == 22
    (note,) = [note for note in found.notes if "left out" in note]
    assert "left out 2 recordings" in note
    assert names[3].name in note and names[7].name in note
    for name in names:
        name.write_bytes(b"")
    with pytest.raises(FallowError, match="no recording that can be read: take-001"):
        read_log(tmp_path / "takes")


def test_a_recording_without_the_commands_is_left_out(
    small_log: Log, tmp_path: Path
) -> None:
    ros_files.write_takes(small_log, tmp_path / "takes")
    silent = [e for e in ros_files.events(small_log) if e[1] == "/joint_states"][:41]
    (tmp_path / "takes" / "take-024.bag").unlink()
    ros_files.write_bag(small_log, tmp_path / "takes" / "take-024.bag", silent)
    found = read_log(tmp_path / "takes")
    assert found.n_episodes == 23
    assert "left out 1 recording without the chosen columns" in found.notes


def test_positions_alone(small_log: Log, tmp_path: Path) -> None:
    events = ros_files.events(small_log, state="position")
    ros_files.write_bag(small_log, tmp_path / "a.bag", list(events))
    found = read_log(tmp_path / "a.bag")
    assert "positions: /joint_states.position[joint 0]" in found.notes[0]
    assert "velocities are differences of positions" in found.notes[-1]
    assert set(found.n_transitions) == {39}
    decision = decide(found)
    assert decision.change_points == (12,)
    assert decision.magnitude.value == pytest.approx(0.5, abs=0.05)


def test_joints_may_come_in_any_order_and_from_several_nodes(
    small_log: Log, tmp_path: Path
) -> None:
    """A gripper publishes to the same topic, and orders change between messages."""
    events = list(ros_files.events(small_log))
    bag = ros_files.rosbag1.Writer(tmp_path / "a.bag")
    store, joints = ros_files.ROS1, small_log.actuators
    with bag:
        topics = {
            topic: bag.add_connection(topic, ros_files.STATE, typestore=store)
            for topic in ("/joint_states", "/joint_command")
        }
        for index, (time_s, topic, kind, parts) in enumerate(sorted(events, key=first)):
            order = [2, 0, 1] if index % 3 else [0, 1, 2]
            names = tuple(joints[i] for i in order)
            mixed = {key: values[order].copy() for key, values in parts.items()}
            content = store.serialize_ros1(
                ros_files.message(store, kind, names, mixed), kind
            )
            bag.write(topics[topic], round(time_s * 1e9), content)
            if topic == "/joint_states":
                other = {"velocity": np.array([7.0])}
                content = store.serialize_ros1(
                    ros_files.message(store, kind, ("gripper",), other), kind
                )
                bag.write(topics[topic], round(time_s * 1e9) + 5, content)
    assert_same(read_log(tmp_path / "a.bag"), small_log)


def first(event: tuple) -> float:
    return event[0]


def test_a_command_with_several_parts_gives_its_effort(
    small_log: Log, tmp_path: Path
) -> None:
    events = [
        (time_s, topic, kind, parts | {"position": np.ones(3), "velocity": np.ones(3)})
        if topic == "/joint_command"
        else (time_s, topic, kind, parts)
        for time_s, topic, kind, parts in ros_files.events(small_log)
    ]
    ros_files.write_bag(small_log, tmp_path / "a.bag", events)
    assert_same(read_log(tmp_path / "a.bag"), small_log)
    other = read_log(tmp_path / "a.bag", Columns(action="/joint_command.velocity"))
    assert (other.action == 1).all()


def trajectory_stream(messages: list[tuple[float, list[tuple[float, float]]]]) -> list:
    collector = Collector(Budget("here"))
    for start_s, points in messages:
        collector.add_trajectory(
            "/t",
            ("a",),
            round(start_s * 1e9),
            [TrajectoryPoint(round(t * 1e9), {"effort": [v]}) for t, v in points],
        )
    start_ns, (stream,) = collector.streams()
    assert stream.is_command
    times = stream.time_s + start_ns * 1e-9
    return [(round(t, 3), v) for t, v in zip(times, stream.values[:, 0], strict=True)]


def test_the_point_in_force_is_the_one_reached_by_then() -> None:
    """The first holds from the start; a new message ends the trajectory before it."""
    points = [(0.1, 1.0), (0.2, 2.0), (0.3, 3.0)]
    assert trajectory_stream([(5.0, points)]) == [(5.0, 1), (5.2, 2), (5.3, 3)]
    replaced = trajectory_stream([(5.0, points), (5.25, [(0.1, 9.0)])])
    assert replaced == [(5.0, 1), (5.2, 2), (5.25, 9)]
    targets = [(5.0 + 0.1 * i, [(0.1, float(i))]) for i in range(3)]
    assert trajectory_stream(targets) == [(5.0, 0), (5.1, 1), (5.2, 2)]


def test_a_trajectory_of_many_points(small_log: Log, tmp_path: Path) -> None:
    """A whole episode's commands in one message, at its beginning."""
    events, done = [], 0
    states = [e for e in ros_files.events(small_log) if e[1] == "/joint_states"]
    row = 0
    for n in small_log.n_transitions:
        events += states[row : row + n + 1]
        points = [
            (t * STEP_S, {"effort": small_log.action[done + t].copy()})
            for t in range(n)
        ]
        start_s = states[row][0] - 0.001
        events.append((start_s, "/plan", ros_files.TRAJECTORY, {"points": points}))
        row, done = row + n + 1, done + n
    ros_files.write_ros2(small_log, tmp_path / "bag", events)
    found = read_log(tmp_path / "bag")
    assert "actions: /plan.effort" in found.notes[0]
    assert_same(found, small_log)


@pytest.mark.parametrize("name", ["a?b", "a%41", "a#b"])
def test_paths_that_the_library_would_misread(
    name: str, small_log: Log, tmp_path: Path
) -> None:
    ros_files.write_ros2(small_log, tmp_path / "bag")
    shutil.copy(tmp_path / "bag" / "bag.db3", tmp_path / f"{name}.db3")
    with pytest.raises(FallowError, match="rename it"):
        read_log(tmp_path / f"{name}.db3")
