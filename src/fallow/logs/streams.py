"""Signals of a recording, each on its clock: joint states and commands by topic."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.text import printable
from fallow.logs.limits import Budget
from fallow.logs.table import limit_columns

MAX_TIME_NS = 1 << 62
"""The year 2116; a later time is damage."""
NS = 1e-9
"""Seconds in a nanosecond."""


@dataclass(frozen=True)
class Stream:
    """Values (n, w) of w joints at the times (n,), in order.

    Times are seconds since the recording's first message.
    """

    name: str
    """`topic.part`, e.g. `/joint_states.velocity`."""
    labels: tuple[str, ...]  # (w,)
    time_s: np.ndarray
    values: np.ndarray
    is_command: bool = False


@dataclass(frozen=True)
class TrajectoryPoint:
    """One point of a trajectory: its parts by name, and when it is reached."""

    after_ns: int
    parts: Mapping[str, Sequence[float]]


class Collector:
    """Gathers the messages of one recording, in any order, into streams."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._n_bytes = 0
        self._joints: dict[tuple[str, frozenset[str]], tuple[str, ...]] = {}
        self._times: dict[tuple[str, tuple[str, ...]], array] = {}
        self._values: dict[tuple[str, tuple[str, ...]], array] = {}
        self._commands: set[str] = set()
        self._trajectories: dict[
            str, list[tuple[int, tuple[str, ...], list[TrajectoryPoint]]]
        ]
        self._trajectories = defaultdict(list)

    def add(
        self,
        name: str,
        joints: Sequence[str],
        time_ns: int,
        values: Iterable[float],
    ) -> None:
        """One message of a signal; messages may name their joints in any order.

        Raises:
            FallowError: values are not numbers, or do not fit the joints.
        """
        row = self._numbers(name, values)
        if row.size == 0:
            return
        labels = tuple(map(str, joints)) or tuple(str(i) for i in range(row.size))
        known = self._joints.setdefault((name, frozenset(labels)), labels)
        if row.size != len(labels) or (not joints and self._widths(name) - {row.size}):
            raise FallowError(
                f"{self._budget.source}: messages of {printable(name, 60)} differ in "
                f"their number of joints ({row.size} values for {len(labels)}); record "
                "the same joints in every message"
            )
        if known != labels and len(set(labels)) == len(labels):
            row = row[[labels.index(joint) for joint in known]]
        self._append(name, known, time_ns, row)

    def add_trajectory(
        self,
        topic: str,
        joints: Sequence[str],
        start_ns: int,
        points: list[TrajectoryPoint],
    ) -> None:
        """One message that replaces the trajectory before it from `start_ns` on."""
        self._count(sum(16 * len(v) + 200 for p in points for v in p.parts.values()))
        entry = (start_ns, tuple(map(str, joints)), points)
        self._trajectories[topic].append(entry)

    def streams(self) -> tuple[int, list[Stream]]:
        """When the first message came, in nanoseconds, and all signals."""
        for topic, messages in self._trajectories.items():
            self._follow(topic, sorted(messages, key=lambda message: message[0]))
        self._trajectories.clear()
        start_ns = min((min(times) for times in self._times.values()), default=0)
        found = []
        for (name, joints), times in self._times.items():
            limit_columns(printable(name, 60), len(joints))
            time_ns = np.frombuffer(times, np.int64)
            values = np.frombuffer(self._values[name, joints]).reshape(len(time_ns), -1)
            order = np.argsort(time_ns, kind="stable")
            labels = tuple(f"{name}[{joint}]" for joint in joints)
            is_command = name in self._commands
            time_s = (time_ns[order] - start_ns) * NS
            found.append(Stream(name, labels, time_s, values[order], is_command))
        return start_ns, found

    def _follow(
        self,
        topic: str,
        messages: list[tuple[int, tuple[str, ...], list[TrajectoryPoint]]],
    ) -> None:
        """Hold each point from when it is reached to the next point's time.

        The first point holds from the start, since a single point is the target until
        the next message; points that a later message replaces are never in force.
        """
        ends = [start for start, _, _ in messages[1:]] + [MAX_TIME_NS]
        for (start, joints, points), end in zip(messages, ends, strict=True):
            for place, point in enumerate(points):
                time_ns = start + point.after_ns if place else start
                if place and time_ns >= end:
                    break
                for part, values in point.parts.items():
                    self._commands.add(f"{topic}.{part}")
                    self.add(f"{topic}.{part}", joints, time_ns, values)

    def _widths(self, name: str) -> set[int]:
        return {len(joints) for known, joints in self._times if known == name}

    def _numbers(self, name: str, values: Iterable[float]) -> np.ndarray:
        try:
            row = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            row = np.zeros((1, 1))
        if row.ndim != 1:
            raise FallowError(
                f"{self._budget.source}: a message of {printable(name, 60)} holds "
                "something else than a list of numbers"
            )
        return row

    def _append(
        self, name: str, joints: tuple[str, ...], time_ns: int, row: np.ndarray
    ) -> None:
        if not 0 <= time_ns < MAX_TIME_NS:
            raise FallowError(
                f"{self._budget.source}: a message of {printable(name, 60)} has the "
                f"time {time_ns} ns; the recording is damaged"
            )
        self._count(8 + row.nbytes)
        self._times.setdefault((name, joints), array("q")).append(time_ns)
        self._values.setdefault((name, joints), array("d")).frombytes(row.tobytes())

    def _count(self, n_bytes: int) -> None:
        self._n_bytes += n_bytes
        self._budget.check(2 * self._n_bytes, "the messages")
