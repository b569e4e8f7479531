"""When the body changes, on the agent's frame clock.

A schedule cuts the clock into segments of constant dynamics: segment 0 is the
original body, before `shift_frame`; segments 1, 2, … follow. A *switch* (never,
permanent, recurring) moves between two regimes. A *drift* samples a new level for every
segment, with the names and the arithmetic of the Real-World RL suite's schedulers, and
as there only when worlds reset, unless `draw_frames` says otherwise.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fallow.core import options, seeds
from fallow.core.errors import FallowError
from fallow.core.registry import Registry

SHIFT_FRAME = 40_000
"""Frame of the change in the protocol, counted from the branch point."""


class Schedule:
    """The segments of a clock; subclasses define the regime or level of each."""

    shift_frame: int | None
    """First frame of segment 1; None: there is none."""

    @property
    def segment_frames(self) -> int | None:
        """Length of segments 1, 2, …; None: segment 1 does not end."""
        return None

    def segment(self, frame: int) -> int:
        """Which segment a frame belongs to."""
        if self.shift_frame is None or frame < self.shift_frame:
            return 0
        if self.segment_frames is None:
            return 1
        return 1 + (frame - self.shift_frame) // self.segment_frames

    def segment_end(self, frame: int) -> float:
        """First frame after the segment that holds `frame`; infinite if none."""
        if self.shift_frame is None:
            return np.inf
        segment = self.segment(frame)
        if segment == 0:
            return self.shift_frame
        if self.segment_frames is None:
            return np.inf
        return self.shift_frame + segment * self.segment_frames

    def regime(self, segment: int) -> int | None:
        """The regime in force in a segment, or None where there are no regimes."""
        raise NotImplementedError

    def on_clock(self, episode_frames: int) -> "Schedule":
        """The schedule of an agent whose worlds reset every so many frames."""
        return self


@dataclass(frozen=True)
class Never(Schedule):
    """The original body for ever."""

    @property
    def shift_frame(self) -> None:  # type: ignore[override]
        return None

    def regime(self, segment: int) -> int:
        return 0


@dataclass(frozen=True)
class Permanent(Schedule):
    """Regime 1 from `shift_frame` on."""

    shift_frame: int = SHIFT_FRAME

    def __post_init__(self) -> None:
        options.check_int("permanent", "shift_frame", self.shift_frame, at_least=0)

    def regime(self, segment: int) -> int:
        return segment


@dataclass(frozen=True)
class Recurring(Schedule):
    """Regimes 1 and 0 in turn from `shift_frame` on, each for `period_frames`."""

    shift_frame: int = SHIFT_FRAME
    period_frames: int = 20_000

    def __post_init__(self) -> None:
        options.check_int("recurring", "shift_frame", self.shift_frame, at_least=0)
        options.check_int("recurring", "period_frames", self.period_frames, at_least=1)

    @property
    def segment_frames(self) -> int:
        return self.period_frames

    def regime(self, segment: int) -> int:
        return segment % 2


class Range(NamedTuple):
    """Where a drifting level starts, its bounds, and the size of its steps."""

    start: float
    min: float
    max: float
    std: float


@dataclass(frozen=True)
class Drift(Schedule):
    """A level that moves at resets from `shift_frame` on, or once in `draw_frames`.

    Each sample takes d ~ N(0, std²) and updates the level c, then clips it to
    [min, max]; see `UPDATES`. Bounds that are None are the shift's own for the body.
    """

    kind: str
    shift_frame: int = SHIFT_FRAME
    draw_frames: int | None = None
    """Frames between two levels, the first at `shift_frame`. None samples a level
    whenever the agent's worlds reset, so that it holds for whole episodes."""
    start: float | None = None
    min: float | None = None
    max: float | None = None
    std: float | None = None

    def __post_init__(self) -> None:
        options.check_int(self.kind, "shift_frame", self.shift_frame, at_least=0)
        if self.draw_frames is not None:
            options.check_int(self.kind, "draw_frames", self.draw_frames, at_least=1)
        for bound in ("start", "min", "max"):
            if getattr(self, bound) is not None:
                options.check_number(self.kind, bound, getattr(self, bound))
        if self.std is not None:
            options.check_number(self.kind, "std", self.std, at_least=0)

    @property
    def segment_frames(self) -> int | None:
        return self.draw_frames

    def regime(self, segment: int) -> None:
        return None

    def on_clock(self, episode_frames: int) -> "Drift":
        """Sample at resets, the first one not before `shift_frame`."""
        if self.draw_frames is not None:
            return self
        first = -(-self.shift_frame // episode_frames) * episode_frames
        return replace(self, shift_frame=first, draw_frames=episode_frames)

    def range(self, default: Range) -> Range:
        """The options given, the rest from the shift's own range for the body."""
        given = {
            bound: getattr(self, bound)
            for bound in Range._fields
            if getattr(self, bound) is not None
        }
        range_ = default._replace(**given)
        if not range_.min <= range_.start <= range_.max:
            raise FallowError(
                f"{self.kind}: start is {range_.start:g}, outside "
                f"[{range_.min:g}, {range_.max:g}]; set start, min and max together"
            )
        return range_

    def level(self, segment: int, range_: Range, seed: int) -> float:
        """The level in force in segment 1, 2, …, after that many samples."""
        n_samples = -(-segment // 1024) * 1024  # round up, so that few paths are kept
        return _path(self.kind, range_, seed, n_samples)[segment - 1]


Update = Callable[[float, float, float, Range], float]
"""(c, |d|, d, range) -> c before clipping."""


def _cyclic_pos(c: float, size: float, d: float, r: Range) -> float:
    return r.start if c + size >= r.max else c + size


def _cyclic_neg(c: float, size: float, d: float, r: Range) -> float:
    return r.start if c - size <= r.min else c - size


UPDATES: dict[str, Update] = {
    "constant": lambda c, size, d, r: c,
    "random_walk": lambda c, size, d, r: c + d,
    "drift_pos": lambda c, size, d, r: c + size,
    "drift_neg": lambda c, size, d, r: c - size,
    "cyclic_pos": _cyclic_pos,
    "cyclic_neg": _cyclic_neg,
}
"""The schedulers without memory or a second sample; `_path` does the other two."""


@functools.lru_cache(maxsize=256)
def _path(kind: str, range_: Range, seed: int, n_samples: int) -> tuple[float, ...]:
    """The level after 1, 2, …, n samples; a longer path begins with the shorter one.

    `saw_wave` follows the suite's documentation (drift up, turn at a bound, drift
    down); its code overwrites the level instead of moving it.
    """
    d = range_.std * seeds.generator(seed, "drift").standard_normal(n_samples)
    if kind == "uniform":
        uniform = seeds.generator(seed, "drift-uniform").random(n_samples)
        return tuple(range_.min + (range_.max - range_.min) * uniform)
    levels, c, direction = [], range_.start, 1
    for step in d.tolist():
        if kind == "saw_wave":
            c += direction * abs(step)
            if c >= range_.max or c <= range_.min:
                direction = -direction
        else:
            c = UPDATES[kind](c, abs(step), step, range_)
        c = min(max(c, range_.min), range_.max)
        levels.append(c)
    return tuple(levels)


class Named(NamedTuple):
    """A schedule as it is chosen by name."""

    summary: str
    cls: type[Schedule]
    fixed: dict[str, Any]
    """Options that the name itself sets."""


SCHEDULES: Registry[Named] = Registry("schedule")
SCHEDULES.add("never", Named("the original body for ever", Never, {}))
SCHEDULES.add("permanent", Named("a switch that stays", Permanent, {}))
SCHEDULES.add("recurring", Named("a switch there and back", Recurring, {}))
for _kind, _summary in {
    "constant": "the level stays where it starts",
    "random_walk": "the level moves up or down",
    "drift_pos": "the level rises and sticks at its maximum",
    "drift_neg": "the level falls and sticks at its minimum",
    "cyclic_pos": "the level rises, then jumps back to its start",
    "cyclic_neg": "the level falls, then jumps back to its start",
    "uniform": "the level is sampled anew between its bounds",
    "saw_wave": "the level rises and falls between its bounds",
}.items():
    SCHEDULES.add(_kind, Named(_summary, Drift, {"kind": _kind}))
