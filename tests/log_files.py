"""One log in every format, written by that format's writer or to its schema."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import ros_files
from mcap.writer import Writer as JsonWriter
from mcap_ros2.writer import Writer as RosWriter

from fallow.core.records import Episode
from fallow.diagnosis import Example, example
from fallow.logs import Header, HistoryWriter
from fallow.logs.log import Log

STEP_S = 0.02
JOINT_STATE = "\n".join(
    (
        "std_msgs/Header header",
        "string[] name",
        "float64[] position",
        "float64[] velocity",
        "float64[] effort",
        "=" * 80,
        "MSG: std_msgs/Header",
        "builtin_interfaces/Time stamp",
        "string frame_id",
        "=" * 80,
        "MSG: builtin_interfaces/Time",
        "int32 sec",
        "uint32 nanosec",
    )
)


def example_log() -> Log:
    """24 episodes of 40 transitions; three joints lose half their gain at the 12th."""
    return example(Example(n_episodes=24, change_points=(12,), n_steps=40))


def episodes(log: Log) -> list[tuple[np.ndarray, np.ndarray]]:
    """(velocity (T + 1, d), action (T, d)) of every episode."""
    ends = np.cumsum(log.n_transitions)
    velocities = np.split(log.velocity, np.cumsum(log.n_transitions + 1)[:-1])
    return list(zip(velocities, np.split(log.action, ends[:-1]), strict=True))


def rows(log: Log) -> dict[str, np.ndarray]:
    """T + 1 rows an episode; the action of the last one leads nowhere and is zero."""
    zero = np.zeros((1, len(log.actuators)))
    parts = episodes(log)
    return {
        "velocity": log.velocity,
        "action": np.concatenate([np.concatenate([a, zero]) for _, a in parts]),
        "episode": np.repeat(np.arange(len(parts)), log.n_transitions + 1),
        "time": np.concatenate([np.arange(len(v)) * STEP_S for v, _ in parts]),
    }


def observations(velocity: np.ndarray) -> np.ndarray:
    """Positions nobody asks for, then the velocities."""
    return np.concatenate([np.cumsum(velocity, axis=0) * STEP_S, velocity], axis=1)


def hopper(velocity: np.ndarray) -> np.ndarray:
    """As Gymnasium's Hopper lays them out: velocities of three joints come last."""
    return np.concatenate([np.ones((len(velocity), 8)), velocity], axis=1)


def write_history(log: Log, path: Path) -> None:
    d = len(log.actuators)
    header = Header(
        columns=tuple(f"{n} [rad]" for n in log.actuators)
        + tuple(f"{n} [rad/s]" for n in log.actuators),
        actuators=log.actuators,
        actuator_velocity=tuple(range(d, 2 * d)),
        control_step_s=STEP_S,
        observation_type="float64",
    )
    start = 0
    with HistoryWriter(path, header) as writer:
        for index, (velocity, action) in enumerate(episodes(log)):
            n = len(action)
            regime = None
            if log.regime is not None:
                regime = np.full(n, log.regime[index])
            writer.add(
                Episode(
                    observations(velocity),
                    action,
                    np.zeros(n, np.float32),
                    regime,
                    start_frame=start,
                )
            )
            start += n


def write_npz(log: Log, path: Path) -> None:
    np.savez(path, **rows(log))


def write_npz_cube(log: Log, path: Path) -> None:
    parts = episodes(log)
    np.savez_compressed(
        path,
        qpos=np.stack([np.cumsum(v, axis=0) * STEP_S for v, _ in parts]),
        qvel=np.stack([v for v, _ in parts]),
        actions=np.stack([a for _, a in parts]),
        control_step_s=STEP_S,
    )


def write_csv(log: Log, path: Path, delimiter: str = ",") -> None:
    content = rows(log)
    d = len(log.actuators)
    names = [f"{joint}_{kind}" for kind in ("vel", "cmd") for joint in range(d)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["episode", "time", "remark", *names])
        for e, t, v, a in zip(
            content["episode"],
            content["time"],
            content["velocity"],
            content["action"],
            strict=True,
        ):
            writer.writerow([e, f"{t:.4f}", "ok", *map(repr, map(float, (*v, *a)))])


def write_minari(log: Log, path: Path) -> None:
    """As `minari` lays its folder out: data/main_data.hdf5 and data/metadata.json."""
    (path / "data").mkdir(parents=True)
    with h5py.File(path / "data" / "main_data.hdf5", "w") as file:
        for index, (velocity, action) in enumerate(episodes(log)):
            group = file.create_group(f"episode_{index}")
            group.attrs.update({"id": index, "total_steps": len(action)})
            group["observations"] = hopper(velocity)
            group["actions"] = action
            group["rewards"] = np.zeros(len(action))
            group["terminations"] = np.zeros(len(action), bool)
            group["truncations"] = np.arange(len(action)) == len(action) - 1
            group.create_group("infos")
    spec = json.dumps({"id": "Hopper-v5", "kwargs": {}, "additional_wrappers": []})
    metadata = {"total_episodes": log.n_episodes, "env_spec": spec}
    (path / "data" / "metadata.json").write_text(json.dumps(metadata))


def write_minari_columnar(log: Log, path: Path, data_format: str = "arrow") -> None:
    """As Minari writes a dict space: a structure, and a filler after the actions."""
    for index, (velocity, action) in enumerate(episodes(log)):
        columns = [lists(velocity), lists(velocity[:, :2])]
        filled = np.concatenate([action, np.zeros((1, action.shape[1]))])
        table = {
            "episode_id": np.full(len(velocity), index, np.int32),
            "observations": pa.StructArray.from_arrays(columns, ["joint_vel", "goal"]),
            "actions": lists(filled),
            "image": pa.array([b"jpeg"] * len(velocity)),
        }
        pyarrow.dataset.write_dataset(
            pa.RecordBatch.from_pydict(table),
            path / "data",
            format=data_format,
            partitioning=["episode_id"],
            existing_data_behavior="overwrite_or_ignore",
        )
    (path / "data" / "metadata.json").write_text("{}")


def write_d4rl(log: Log, path: Path) -> None:
    content = rows(log)
    last = np.append(content["episode"][1:] != content["episode"][:-1], True)
    with h5py.File(path, "w") as file:
        file["observations"] = hopper(log.velocity).astype(np.float32)
        file["actions"] = content["action"]
        file["rewards"] = np.zeros(len(last), np.float32)
        file["terminals"] = np.zeros(len(last), bool)
        file["timeouts"] = last
        file["infos/qvel"] = hopper(log.velocity)[:, 5:]


def write_lerobot(log: Log, path: Path) -> None:
    """Codebase version 3.0: many episodes a file, names in meta/info.json."""
    content, d = rows(log), len(log.actuators)
    state = observations(log.velocity)
    last = np.append(content["episode"][1:] != content["episode"][:-1], True)
    half = int(np.flatnonzero(last)[log.n_episodes // 2]) + 1
    (path / "data" / "chunk-000").mkdir(parents=True)
    (path / "meta").mkdir()
    for number, part in enumerate((slice(0, half), slice(half, None))):
        n = len(content["time"][part])
        table = pa.table(
            {
                "action": lists(content["action"][part]),
                "observation.state": lists(state[part]),
                "timestamp": pa.array(content["time"][part].astype(np.float32)),
                "frame_index": pa.array(np.arange(n)),
                "episode_index": pa.array(content["episode"][part]),
                "index": pa.array(np.arange(n)),
                "task_index": pa.array(np.zeros(n, np.int64)),
            }
        )
        name = f"data/chunk-000/file-{number:03d}.parquet"
        pyarrow.parquet.write_table(table, path / name)
    joints = [f"joint_{j}" for j in range(d)]
    features = {
        "action": {"dtype": "float64", "shape": [d], "names": joints},
        "observation.state": {
            "dtype": "float64",
            "shape": [2 * d],
            "names": {"motors": [f"{j}.{k}" for k in ("pos", "vel") for j in joints]},
        },
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
    }
    info = {"codebase_version": "v3.0", "fps": 1 / STEP_S, "features": features}
    (path / "meta" / "info.json").write_text(json.dumps(info))


def lists(values: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(values.ravel(), values.shape[1])


def write_mcap(log: Log, path: Path) -> None:
    """One ROS 2 recording with a pause of two seconds between episodes."""
    with path.open("wb") as file:
        writer = RosWriter(file)
        schema = writer.register_msgdef("sensor_msgs/msg/JointState", JOINT_STATE)

        def send(topic: str, time_s: float, **values: np.ndarray) -> None:
            stamp = {"sec": int(time_s), "nanosec": int(time_s % 1 * 1e9)}
            message = {
                "header": {"stamp": stamp, "frame_id": ""},
                "name": list(log.actuators),
                "position": [],
                "velocity": [],
                "effort": [],
                **{name: value.tolist() for name, value in values.items()},
            }
            writer.write_message(topic, schema, message, log_time=round(time_s * 1e9))

        for time_s, velocity, action in stream(log):
            send("/joint_command", time_s - 0.001, effort=action)
            send("/joint_states", time_s, velocity=velocity)
        writer.finish()


def write_mcap_json(log: Log, path: Path) -> None:
    """A folder of JSON recordings, one an episode."""
    path.mkdir()
    parts = list(stream(log))
    starts = np.cumsum(log.n_transitions + 1) - (log.n_transitions + 1)
    for index, (start, n) in enumerate(zip(starts, log.n_transitions + 1, strict=True)):
        # the first recording's name sorts last: time orders them, not names
        with (path / f"take-{log.n_episodes - index:03d}.mcap").open("wb") as file:
            writer = JsonWriter(file)
            writer.start()
            schema = writer.register_schema("joints", "jsonschema", b"{}")
            channels = {
                topic: writer.register_channel(topic, "json", schema)
                for topic in ("/state", "/command")
            }
            for time_s, velocity, action in parts[start : start + n]:
                for topic, key, value, at_s in (
                    ("/command", "data", action, time_s - 0.001),
                    ("/state", "velocity", velocity, time_s),
                ):
                    data = json.dumps({key: value.tolist()}).encode()
                    time = round(at_s * 1e9)
                    writer.add_message(channels[topic], time, data, time)
            writer.finish()


def stream(log: Log) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    content, start_s = rows(log), 10.0
    for index in range(len(content["time"])):
        if index and content["episode"][index] != content["episode"][index - 1]:
            start_s += content["time"][index - 1] + 2.0
        time_s = start_s + content["time"][index]
        yield time_s, content["velocity"][index], content["action"][index]


WRITERS: dict[str, tuple[str, str, Callable[[Log, Path], None]]] = {
    "history": ("history", "run.fallow", write_history),
    "npz": ("npz", "run.npz", write_npz),
    "npz-cube": ("npz", "run.npz", write_npz_cube),
    "csv": ("csv", "run.csv", write_csv),
    "minari": ("minari", "run-v0", write_minari),
    "minari-arrow": ("minari", "run-v1", write_minari_columnar),
    "d4rl": ("d4rl", "hopper_medium-v2.hdf5", write_d4rl),
    "lerobot": ("lerobot", "run", write_lerobot),
    "mcap": ("mcap", "run.mcap", write_mcap),
    "mcap-json": ("mcap", "takes", write_mcap_json),
    **ros_files.WRITERS,
}
"""By name: the reader that must recognise it, the file's name, and its writer."""


def write(name: str, log: Log, folder: Path) -> Path:
    _, file_name, writer = WRITERS[name]
    path = folder / file_name
    writer(log, path)
    return path
