"""Fallow's own interaction log: one append-only file a run, one block an episode.

The first block is a JSON header that names columns, units, the control step and which
velocity each actuator drives. Every further block is one finished episode, a
safetensors document of plain arrays. A run that is killed leaves a file that reads up
to its last finished episode.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fallow.core import legacy
from fallow.core.errors import FallowError
from fallow.core.legacy import ALGORITHM
from fallow.core.records import Episode
from fallow.dynamics.conditions import Condition
from fallow.logs import blocks

MAGIC = b"FALLOWH1"
OBSERVATION_TYPES = ("float16", "float32", "float64")
_OPTIONAL = ("regime", "policy_mean", "policy_std", "start_state")
_LISTS = {"columns": str, "actuators": str, "actuator_velocity": int}
"""Lists of a header, and what they hold."""


@dataclass(frozen=True)
class Header:
    """Names, units and clocks of the arrays."""

    columns: tuple[str, ...]
    """Name of every observation column, units in brackets."""
    actuators: tuple[str, ...]
    """Name of every action column."""
    actuator_velocity: tuple[int, ...]
    """For each actuator, the observation column of the velocity it drives."""
    control_step_s: float
    """Seconds from one row to the next."""
    frames_per_step: int = 1
    """By how much the agent's clock advances from one row to the next."""
    observation_type: str = "float32"
    """float16 halves the file; actions and rewards keep their type."""
    about: dict[str, Any] = field(default_factory=dict)
    """Origin of the log: task, condition, seeds, versions."""

    def __post_init__(self) -> None:
        if self.observation_type not in OBSERVATION_TYPES:
            raise FallowError(
                f"observation_type is '{self.observation_type}'; "
                f"choose one of {', '.join(OBSERVATION_TYPES)}"
            )
        if len(self.actuator_velocity) != len(self.actuators):
            raise FallowError(
                f"{len(self.actuator_velocity)} velocities for "
                f"{len(self.actuators)} actuators; name one for each"
            )
        for column in self.actuator_velocity:
            if not 0 <= column < len(self.columns):
                raise FallowError(
                    f"velocity column {column} is outside the "
                    f"{len(self.columns)} observation columns"
                )

    def to_json(self) -> bytes:
        """The header as it stands in the file."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    @classmethod
    def from_json(cls, payload: bytes) -> "Header":
        """Read a header back; unknown keys are an error, so nothing is dropped.

        Raises:
            FallowError: a key is missing, unknown, or of another type.
        """
        known = {f.name for f in fields(cls)}
        try:
            content = json.loads(payload)
            if not isinstance(content, dict) or set(content) - known:
                raise ValueError
            for name, kind in _LISTS.items():
                if not all(isinstance(item, kind) for item in content[name]):
                    raise ValueError
                content[name] = tuple(content[name])
            header = cls(**content)
            float(header.control_step_s)
            if not isinstance(header.about, dict) or int(header.frames_per_step) < 0:
                raise ValueError
            return replace(header, about=_modern(header))
        except FallowError:
            raise
        except (KeyError, TypeError, ValueError, RecursionError):
            raise FallowError(
                "the header is damaged, or not of this version of Fallow"
            ) from None


def _modern(header: Header) -> dict[str, Any]:
    """About its origin, in the texts of today; see `fallow.core.legacy`."""
    about = header.about
    if about.get("algorithm") == 2:  # its conditions are those of today
        return about | {"algorithm": ALGORITHM}
    if "condition" not in about or "algorithm" in about:
        return about
    try:
        text = legacy.condition(str(about["condition"]), len(header.actuators))
        return about | {"condition": str(Condition.parse(text)), "algorithm": ALGORITHM}
    except FallowError:  # somebody else's condition
        return about


class HistoryWriter:
    """Appends finished episodes to a history; a context manager.

    Creates the file, or continues an existing one after its last episode. A last block
    that a crash left half-written is cut off; a file with any other damage is refused
    and stays as it is. `keep_episodes` continues after that many, for a run that
    resumes from an earlier checkpoint. If a write fails, e.g. on a full disk, the file
    keeps the episodes it had, and the next `add` works again.
    """

    def __init__(
        self, path: str | Path, header: Header, keep_episodes: int | None = None
    ) -> None:
        self.path = Path(path)
        self.header = header
        self.n_episodes = 0
        if self.path.exists() and self.path.stat().st_size > 0:
            self._continue(keep_episodes)
        else:
            if keep_episodes:
                raise FallowError(
                    f"{path} has no episodes to keep, not {keep_episodes}"
                )
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._create()

    def _create(self) -> None:
        self._file = blocks.Appender(self.path, blocks.Scan(), MAGIC)
        try:
            self._file.append(self.header.to_json())
        except BaseException:
            self._file.close()
            self.path.unlink()
            raise

    def _continue(self, keep_episodes: int | None) -> None:
        scan = blocks.Scan()
        found = None
        for payload in blocks.read(self.path, MAGIC, scan):
            if scan.n_blocks == 1:
                found = Header.from_json(payload)
            if keep_episodes is not None and scan.n_blocks == keep_episodes + 1:
                break
        if scan.damage and not scan.cut_short:
            raise FallowError(
                f"{self.path} is damaged ({scan.damage}) and is not continued, so that "
                "nothing is lost; read what is good with read_history, and write to "
                "another file"
            )
        if found != self.header:
            raise FallowError(
                f"{self.path} was written with another header; choose another file"
            )
        self.n_episodes = scan.n_blocks - 1
        if keep_episodes is not None and self.n_episodes < keep_episodes:
            raise FallowError(
                f"{self.path} has {self.n_episodes} good episodes, fewer than the "
                f"{keep_episodes} to keep"
            )
        self._file = blocks.Appender(self.path, scan)

    def add(self, episode: Episode) -> None:
        """Append one finished episode.

        Raises:
            FallowError: the episode does not fit the header.
            OSError: the write failed; the file keeps the episodes before this one.
        """
        _check_shapes(episode, self.header)
        _check_size(episode, self.header)
        arrays = {
            "observation": episode.observation.astype(self.header.observation_type),
            "action": episode.action,
            "reward": episode.reward,
            "place": np.array([episode.world, episode.start_frame], np.int64),
        }
        for name in _OPTIONAL:
            if getattr(episode, name) is not None:
                arrays[name] = getattr(episode, name)
        self.copy(save({k: np.ascontiguousarray(v) for k, v in arrays.items()}))

    def copy(self, payload: bytes) -> None:
        """Append the block of an episode of another history with the same columns."""
        self._file.append(payload)
        self.n_episodes += 1

    def close(self) -> None:
        """Close the file; every episode was handed to the system as it was added."""
        self._file.close()

    def __enter__(self) -> "HistoryWriter":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def copy_episodes(source: Path, target: Path, header: Header) -> None:
    """Begin a new history, under its own header, with the episodes of another.

    Raises:
        FallowError: the source is damaged or its episodes have other columns.
    """
    scan = blocks.Scan()
    payloads = blocks.read(source, MAGIC, scan)
    first = next(payloads, None)
    found = None if first is None else Header.from_json(first)
    if found is None or replace(found, about=header.about) != header:
        raise FallowError(f"{source} is damaged or has other columns than {target}")
    with HistoryWriter(target, header) as writer:
        for payload in payloads:
            writer.copy(payload)
    if scan.damage:
        raise FallowError(f"{source} is damaged: {scan.damage}")


@dataclass(frozen=True)
class History:
    """A history read back: its header, its good episodes, and what was wrong."""

    header: Header
    episodes: tuple[Episode, ...]
    damage: str = ""
    """One sentence on what could not be read; empty for a whole file."""

    @property
    def n_transitions(self) -> int:
        """Transitions in all episodes."""
        return sum(episode.n_transitions for episode in self.episodes)

    def rows(self) -> dict[str, np.ndarray]:
        """All transitions as columns: one row for each, episodes in file order.

        `regime` is there only if every episode has one; closing rows are left out.
        """
        lengths = [episode.n_transitions for episode in self.episodes]
        regimes = [episode.regime for episode in self.episodes]
        columns = {
            "observation": _stack([e.observation[:-1] for e in self.episodes]),
            "next_observation": _stack([e.observation[1:] for e in self.episodes]),
            "action": _stack([e.action for e in self.episodes]),
            "reward": _stack([e.reward for e in self.episodes]),
            "episode": np.repeat(np.arange(len(lengths)), lengths),
            "step": _stack([np.arange(length) for length in lengths]),
        }
        known = [r for r in regimes if r is not None]
        if len(known) == len(regimes):
            columns["regime"] = _stack(known)
        return columns


def read_history(path: str | Path) -> History:
    """Read every good episode of a history.

    A file cut short or edited is read up to there, and `damage` says how much is good.

    Raises:
        FallowError: the file is missing, is not a history, or its header is damaged.
    """
    path = Path(path)
    if not path.is_file():
        raise FallowError(f"there is no history at {path}")
    scan = blocks.Scan()
    payloads = blocks.read(path, MAGIC, scan)
    first = next(payloads, None)
    if first is None:
        raise FallowError(
            f"{path} has no readable header: {scan.damage or 'it is empty'}"
        )
    header = Header.from_json(first)
    episodes = tuple(_episodes(payloads, path, header))
    damage = ""
    if scan.damage:
        size = path.stat().st_size
        damage = (
            f"{path}: {scan.damage}; the first {len(episodes)} episodes "
            f"({scan.good_bytes:,} of {size:,} bytes) are good and were read"
        )
    return History(header, episodes, damage)


def _episodes(
    payloads: Iterator[bytes], path: Path, header: Header
) -> Iterator[Episode]:
    for number, payload in enumerate(payloads):
        try:
            yield episode_of(payload, header)
        except FallowError as error:
            raise FallowError(f"{path}: block {number + 1} {error}") from None


def episode_of(payload: bytes, header: Header) -> Episode:
    """The episode of one block.

    Raises:
        FallowError: the block holds something else.
    """
    try:
        arrays = load(payload)
        world, start_frame = (int(n) for n in arrays.pop("place"))
        episode = Episode(**arrays, world=world, start_frame=start_frame)
        _check_shapes(episode, header)
    except (SafetensorError, KeyError, TypeError, ValueError, FallowError) as error:
        raise FallowError(f"is not an episode: {error}") from None
    return episode


def _check_shapes(episode: Episode, header: Header) -> None:
    n = episode.n_transitions
    expected = {
        "observation": (n + 1, len(header.columns)),
        "action": (n, len(header.actuators)),
        "reward": (n,),
        "regime": (n,),
        "policy_mean": (n, len(header.actuators)),
        "policy_std": (n, len(header.actuators)),
    }
    if n < 1:
        raise FallowError("an episode of no transitions cannot be recorded")
    for name, shape in expected.items():
        array = getattr(episode, name)
        if array is not None and array.shape != shape:
            raise FallowError(
                f"{name} of an episode has shape {array.shape} and must have {shape}"
            )


def _check_size(episode: Episode, header: Header) -> None:
    largest = float(np.abs(episode.observation).max(initial=0))
    if largest > float(np.finfo(header.observation_type).max):
        raise FallowError(
            f"an observation of {largest:g} does not fit {header.observation_type}; "
            "choose a wider observation_type"
        )


def _stack(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(arrays) if arrays else np.zeros(0)
