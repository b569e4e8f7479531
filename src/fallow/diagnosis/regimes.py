"""The regimes of a log as the online tracker saw them, episode by episode.

Unlike the paper's selector the tracker separates the body from the policy, so the
verdict of a diagnosis rests on it. Regime 0 is the first body.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.logs.log import STEP_TOLERANCE, Log
from fallow.tracking import Tracker, TrackerConfig, TrackerUpdate

UNKNOWN_STEP_S = 0.05
"""Control step of a log that has no times; the tracker only reports it."""
CHANGED = 0.05
"""Change of a gain below which an actuator is not named."""


@dataclass(frozen=True)
class SeenRegime:
    """One regime: the gain of d actuators relative to regime 0, with 95 % intervals."""

    id: int
    gain: np.ndarray  # (d,)
    low: np.ndarray  # (d,)
    high: np.ndarray  # (d,)
    explained: bool = True
    """Whether gains explain it; else something else changed, e.g. friction."""
    calibrated: bool = True
    """Whether every interval is narrow."""

    @property
    def changed(self) -> np.ndarray:
        """(d,) which actuators differ from regime 0."""
        outside = (self.low > 1) | (self.high < 1)
        return outside & (np.abs(self.gain - 1) >= CHANGED)


@dataclass(frozen=True)
class RegimeChange:
    """Another regime came into force."""

    episode: int
    """At the end of which it was known."""
    since: int
    """First episode of the regime."""
    regime: int
    is_new: bool


@dataclass(frozen=True)
class Regimes:
    """Regimes of k episodes by a tracker."""

    actuators: tuple[str, ...]
    labels: np.ndarray  # (k,) regime of every episode
    seen: tuple[SeenRegime, ...]
    """Those that were in force, by id."""
    changes: tuple[RegimeChange, ...]
    in_force: int
    state: str
    """Of the last update; see `fallow.tracking.TrackerUpdate`."""
    certainty: float
    """Probability that it is the one in force."""
    n_skipped: int
    warm_up_episodes: int

    @property
    def is_ready(self) -> bool:
        """Whether there were enough usable episodes for a decision."""
        return self.state not in ("", "warming_up")

    @cached_property
    def spans(self) -> tuple[tuple[int, int, int], ...]:
        """(start, stop, regime) of episodes that follow each other in one regime."""
        edges = np.flatnonzero(np.diff(self.labels)) + 1
        starts = np.append(0, edges) if len(self.labels) else edges
        stops = np.append(edges, len(self.labels))[: len(starts)]
        return tuple(
            (int(start), int(stop), int(self.labels[start]))
            for start, stop in zip(starts, stops, strict=True)
        )

    @property
    def keep(self) -> tuple[tuple[int, int], ...]:
        """[start, stop) of the episodes that belong to the regime in force."""
        return tuple((a, b) for a, b, regime in self.spans if regime == self.in_force)

    @property
    def is_doubtful(self) -> bool:
        """Whether another regime may have come into force."""
        return self.state == "suspicious" and self.certainty < 0.5

    @property
    def discards(self) -> bool:
        """Whether some episodes belong to another regime."""
        return bool((self.labels != self.in_force).any())

    def regime(self, regime: int) -> SeenRegime:
        """A regime by its id."""
        return next(one for one in self.seen if one.id == regime)


@dataclass
class Follower:
    """Feeds episodes to a tracker, and keeps what tables and figures show."""

    actuators: tuple[str, ...]
    tracker: Tracker
    step_s: float | None = None
    changes: list[RegimeChange] = field(default_factory=list)
    seen: dict[int, SeenRegime] = field(default_factory=dict)
    state: str = ""
    certainty: float = 1.0

    @classmethod
    def of(
        cls,
        actuators: tuple[str, ...],
        step_s: float | None,
        config: TrackerConfig | None = None,
    ) -> "Follower":
        """A follower that has seen nothing."""
        tracker = Tracker(len(actuators), step_s or UNKNOWN_STEP_S, config)
        return cls(actuators, tracker, step_s)

    def update(
        self,
        velocity: np.ndarray,
        action: np.ndarray,
        step_s: float | None = None,
        defect: str = "",
    ) -> TrackerUpdate:
        """Read an episode: (T + 1, d) velocities, (T, d) actions; or name its defect.

        Raises:
            FallowError: another number of actuators.
        """
        defect = defect or self._clock_defect(step_s)
        before = self.tracker.present
        if defect or len(velocity) == 0:
            empty = np.zeros((1, len(self.actuators)))
            update = self.tracker.update(empty, empty[:0])
            if defect:
                update = replace(update, note=f"skipped: {defect}")
        else:
            update = self.tracker.update(velocity, action)
        self._remember(update, before)
        return update

    def _clock_defect(self, step_s: float | None) -> str:
        if step_s is None or self.step_s is None:
            return ""
        if step_s > 0 and abs(step_s - self.step_s) <= STEP_TOLERANCE * self.step_s:
            return ""
        return f"its control step is {step_s:.4g} s, that of the log {self.step_s:.4g}"

    def _remember(self, update: TrackerUpdate, before: int) -> None:
        self.state = update.state
        self.certainty = float(update.probabilities.get(update.regime, 0.0))
        if update.regime != before:
            moved = [e for e, regime in update.relabelled if regime == update.regime]
            self.changes.append(
                RegimeChange(
                    episode=update.episode,
                    since=min([*moved, update.episode]),
                    regime=update.regime,
                    is_new=update.regime not in self.seen,
                )
            )
        self.seen[update.regime] = SeenRegime(
            id=update.regime,
            gain=update.gain,
            low=update.gain_low,
            high=update.gain_high,
            explained=self.tracker.regimes[update.regime].is_gain,
            calibrated=update.calibrated,
        )

    def regimes(self) -> Regimes:
        """The regimes so far."""
        tracker = self.tracker
        return Regimes(
            actuators=self.actuators,
            labels=tracker.labels(),
            seen=tuple(self.seen[i] for i in sorted(self.seen)),
            changes=tuple(self.changes),
            in_force=tracker.present,
            state=self.state,
            certainty=self.certainty,
            n_skipped=tracker.n_skipped,
            warm_up_episodes=tracker.config.warm_up_episodes,
        )

    def save(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """All of it: arrays by name, and a JSON header."""
        saved = self.tracker.save()
        header = {
            "tracker": saved.pop("header"),
            "actuators": list(self.actuators),
            "step_s": self.step_s,
            "state": self.state,
            "certainty": self.certainty,
            "changes": [vars(change) for change in self.changes],
            "seen": [
                vars(r) | {n: getattr(r, n).tolist() for n in ("gain", "low", "high")}
                for r in self.seen.values()
            ],
        }
        return saved, header

    @classmethod
    def restore(
        cls, arrays: dict[str, np.ndarray], header: dict[str, Any]
    ) -> "Follower":
        """A follower that continues where `save` was called."""
        seen = {
            r["id"]: SeenRegime(
                **r | {n: np.array(r[n], float) for n in ("gain", "low", "high")}
            )
            for r in header["seen"]
        }
        return cls(
            actuators=tuple(header["actuators"]),
            tracker=Tracker.restore(arrays | {"header": header["tracker"]}),
            step_s=header["step_s"],
            changes=[RegimeChange(**change) for change in header["changes"]],
            seen=seen,
            state=header["state"],
            certainty=header["certainty"],
        )


def regimes_of(log: Log) -> Regimes:
    """The regimes of a log that is in memory, read from its start to its end."""
    follower = Follower.of(log.actuators, log.control_step_s)
    for velocity, action in log.episodes():
        follower.update(velocity, action)
    return follower.regimes()


def require_alike(follower: Follower, actuators: tuple[str, ...], source: str) -> None:
    """Raise where a log has other actuators than those before it."""
    if actuators != follower.actuators:
        raise FallowError(
            f"{source} has the actuators {', '.join(actuators)} and what was tracked "
            f"before {', '.join(follower.actuators)}; track logs of one robot, or "
            "choose the columns with --velocity and --action"
        )
