"""Logs of every format, damaged: bytes, numbers, names, shapes and messages.

The writers are those of the tests, `tests/log_files.py`.
"""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fuzz_bytes
import h5py
import numpy as np
from fuzz import Case

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import log_files
import ros_files

from fallow.diagnosis import Example, decide, example
from fallow.logs import Columns, from_data, read_log
from fallow.logs.blocks import Appender, Scan, read
from fallow.logs.history import MAGIC

LIMIT_BYTES = 100 << 20
ODD_VALUES = (
    *(np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.0, -1.0, 2.0**63),
    *(1e30, -1e30, 1e59, 4e9),
)
ODD_NAMES = (
    *("", "episode", "velocity", "action", "time", "done", "regime", "dt", "qpos"),
    *("\x1b[31m", "a,b", "x[3]", "..", "/", "velocity[0]", "v" * 5000),
)


class Logs:
    """Reads each damaged log and decides, within a limit of memory."""

    name = "logs"

    def prepare(self, folder: Path) -> None:
        """A small log in every format."""
        truth = Example(n_episodes=12, change_points=(6,), n_steps=8, n_joints=2)
        self.log = example(truth)
        self.valid = {}
        for name in log_files.WRITERS:
            (folder / name).mkdir()
            self.valid[name] = log_files.write(
                name, self._as_written(name), folder / name
            )
        for path in self.valid.values():
            decide(read_log(path))  # libraries load once, before memory is counted

    def _as_written(self, name: str) -> Any:
        """Hopper has three joints; the others have two."""
        if name not in ("minari", "d4rl"):
            return self.log
        return example(Example(n_episodes=12, change_points=(6,), n_steps=8))

    def make(self, random: np.random.Generator, folder: Path) -> Case:
        """Bytes of a file, or what a writer of the format is given."""
        ways = [self._bytes, self._bytes, self._arrays, self._messages, self._blocks]
        return ways[random.integers(len(ways))](random, folder)

    def _bytes(self, random: np.random.Generator, folder: Path) -> Case:
        name = str(random.choice(list(self.valid)))
        valid = self.valid[name]
        path = folder / valid.name
        (shutil.copytree if valid.is_dir() else shutil.copy)(valid, path)
        files = sorted(p for p in [path, *path.rglob("*")] if p.is_file())
        file = files[random.integers(len(files))]
        content, how = fuzz_bytes.damaged(file.read_bytes(), random)
        file.write_bytes(content)
        return Case(f"{name}, {how}", lambda: _read(path, random))

    def _arrays(self, random: np.random.Generator, folder: Path) -> Case:
        """Arrays by name, as npz, HDF5, a data set of episodes, or in memory."""
        arrays, how = odd_arrays(log_files.rows(self.log), random)
        form = str(random.choice(["npz", "hdf5", "minari", "memory", "cubes"]))
        choice = odd_choice(random)
        if form == "memory":
            return Case(
                f"{form}, {how}", lambda: decide(from_data(arrays, Columns(**choice)))
            )
        path = folder / ("run.npz" if form in ("npz", "cubes") else "run.hdf5")
        if form == "cubes":
            arrays, how = odd_arrays(_cubes(self.log), random)
        write = {"hdf5": _write_flat, "minari": _write_episodes}.get(form, _write_npz)
        try:
            write(path, arrays)
        except (OSError, ValueError, TypeError, KeyError, RuntimeError):
            path.write_bytes(b"")  # the writer refuses: nothing to read
        return Case(f"{form}, {how}", lambda: _read(path, random, choice))

    def _messages(self, random: np.random.Generator, folder: Path) -> Case:
        """Messages of a bag: values, names, times, kinds and numbers."""
        command = str(random.choice(["effort", "data", "trajectory"]))
        events = list(ros_files.events(self.log, command))
        how = odd_events(events, random)
        name = str(random.choice(["ros1", "ros2", "ros2-mcap"]))
        _, file_name, write = ros_files.WRITERS[name]
        path = folder / file_name
        try:
            write(self.log, path, events)  # type: ignore[call-arg]
        except Exception:  # rosbags refuses: nothing to read
            path = folder / "empty.bag"
            path.write_bytes(b"")
        return Case(f"{name}, {how}", lambda: _read(path, random))

    def _blocks(self, random: np.random.Generator, folder: Path) -> Case:
        """A history whose checksums are right and whose blocks are not."""
        payloads = list(read(self.valid["history"], MAGIC, Scan()))
        place = int(random.integers(len(payloads)))
        payloads[place], how = fuzz_bytes.damaged(payloads[place], random)
        path = folder / "run.fallow"
        writer = Appender(path, Scan(), MAGIC)
        for payload in payloads:
            writer.append(payload)
        writer.close()
        return Case(f"history blocks, {how}", lambda: _read(path, random))


def _read(
    path: Path, random: np.random.Generator, choice: dict[str, Any] | None = None
) -> object:
    return decide(read_log(path, Columns(**(choice or odd_choice(random)))))


def odd_choice(random: np.random.Generator) -> dict[str, Any]:
    """The fields of a choice of columns: mostly none, now and then strange ones."""
    if random.random() < 0.7:
        return {"max_memory_bytes": LIMIT_BYTES}
    return dict(
        velocity=_maybe(random, ("velocity", "0:2", "qvel[-1]", "[", "9:", ",,")),
        action=_maybe(random, ("action", "1", "actions[0]", "action[0:]", "x")),
        episode=_maybe(random, ("episode", "time", "velocity", "")),
        time=_maybe(random, ("time", "episode", "action")),
        episode_steps=_maybe(random, (0, 3, 9, 10**9, -1)),
        position=_maybe(random, ("qpos", "velocity", "0:2")),
        lag_ms=_maybe(random, (0.0, -500.0, 1e4)),
        max_memory_bytes=LIMIT_BYTES,
    )


def _maybe(random: np.random.Generator, choices: tuple[Any, ...]) -> Any:
    return choices[random.integers(len(choices))] if random.random() < 0.3 else None


def odd_arrays(arrays: dict, random: np.random.Generator) -> tuple[dict, str]:
    """Some arrays changed in values, types, shapes or names."""
    changed, how = dict(arrays), []
    for _ in range(random.integers(1, 4)):
        name = str(random.choice(list(changed)))
        change = ARRAY_CHANGES[random.integers(len(ARRAY_CHANGES))]
        how.append(f"{change.__name__.strip('_')} of {name[:20]!r}")
        change(changed, name, random)
        if not changed:
            break
    return changed, "; ".join(how)


Changes = list[Callable[[dict, str, np.random.Generator], None]]


def _odd_value(arrays: dict, name: str, random: np.random.Generator) -> None:
    values = np.array(arrays[name])
    if values.size and values.dtype.kind == "f":
        flat = values.reshape(-1)
        n = int(random.integers(1, flat.size + 1)) if random.random() < 0.2 else 1
        flat[random.integers(0, flat.size, n)] = random.choice(ODD_VALUES)
        arrays[name] = values


def _odd_type(arrays: dict, name: str, random: np.random.Generator) -> None:
    kinds = (
        "f2",
        "f4",
        "g",
        "i1",
        "u8",
        "?",
        "c16",
        "S3",
        "U2",
        "m8[s]",
        "M8[s]",
        ">f8",
    )
    with np.errstate(all="ignore"):
        try:
            arrays[name] = np.asarray(arrays[name]).astype(str(random.choice(kinds)))
        except (TypeError, ValueError):
            arrays[name] = np.zeros(0)


def _odd_shape(arrays: dict, name: str, random: np.random.Generator) -> None:
    values = np.atleast_1d(arrays[name])
    shapes = [
        values[:0],
        values[: len(values) // 2],
        values[..., None],
        values[None],
        values.T,
        values.reshape(-1),
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.float64(1.0),
        np.zeros((2, 2, 2, 2)),
        np.zeros((len(arrays), 20_000)),
    ]
    arrays[name] = shapes[random.integers(len(shapes))]


def _odd_name(arrays: dict, name: str, random: np.random.Generator) -> None:
    arrays[str(random.choice(ODD_NAMES))] = arrays.pop(name)


def _gone(arrays: dict, name: str, random: np.random.Generator) -> None:
    del arrays[name]


def _shuffled(arrays: dict, name: str, random: np.random.Generator) -> None:
    values = np.asarray(arrays[name])
    arrays[name] = random.permutation(values) if values.ndim else values


def _constant(arrays: dict, name: str, random: np.random.Generator) -> None:
    values = np.asarray(arrays[name])
    arrays[name] = np.full(values.shape, float(random.choice(ODD_VALUES)))


ARRAY_CHANGES: Changes = [
    *(_odd_value, _odd_value, _odd_type, _odd_shape, _odd_name),
    *(_gone, _shuffled, _constant),
]


def _cubes(log: Any) -> dict:
    parts = log_files.episodes(log)
    return {
        "qvel": np.stack([v for v, _ in parts]),
        "actions": np.stack([a for _, a in parts]),
        "dt": np.float64(0.02),
    }


def _write_npz(path: Path, arrays: dict) -> None:
    np.savez(path, **arrays)


def _write_flat(path: Path, arrays: dict) -> None:
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values


def _write_episodes(path: Path, arrays: dict) -> None:
    with h5py.File(path, "w") as file:
        for index in range(12):
            for name, values in arrays.items():
                array = np.asarray(values)
                piece = array[9 * index : 9 * (index + 1)] if array.ndim else array
                file[f"episode_{index}/{name}"] = piece


def odd_events(events: list, random: np.random.Generator) -> str:
    """Change some messages in place."""
    how = str(
        random.choice(
            ["value", "width", "time", "repeat", "gone", "swap", "empty", "all gone"]
        )
    )
    if how == "all gone":
        topic = str(random.choice(["/joint_states", "/joint_command"]))
        events[:] = [event for event in events if event[1] != topic]
        return how
    for _ in range(random.integers(1, 6)):
        place = int(random.integers(len(events)))
        time_s, topic, kind, parts = events[place]
        part, values = next(iter(parts.items()))
        if how == "value":
            values = values.copy()
            values[random.integers(len(values))] = random.choice(ODD_VALUES)
        elif how == "width":
            values = np.ones(int(random.choice([0, 1, 3, 1000])))
        elif how == "empty":
            parts, part = {}, str(random.choice(["effort", "velocity", "data"]))
            values = np.zeros(0)
        elif how == "time":
            time_s = float(random.choice([0.0, time_s, 1e9, time_s + 1e3, 4e9]))
        elif how == "swap":
            other = int(random.integers(len(events)))
            events[other], events[place] = events[place], events[other]
            continue
        elif how == "repeat":
            events.append(events[place])
            continue
        else:
            del events[place]
            continue
        events[place] = (time_s, topic, kind, {part: values})
    return how


TARGET = Logs()
