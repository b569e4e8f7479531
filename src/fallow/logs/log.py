"""A log as the estimator reads it: actions, and the velocity that each one drives.

Every reader returns a `Log`, whatever the format. The true regime and gain are kept
where the file has them; they are shown beside estimates, and no estimate reads them.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.text import counted, printable

MIN_TRANSITIONS = 2
"""In an episode; a single sample says nothing about a response."""
MAX_SIZE = 1e60
"""Of an action or a velocity in any unit; more is damage, and overflows in a square."""
STEP_TOLERANCE = 0.1
"""By how much, relative, the control steps of two episodes may differ."""
MAX_NAME = 100
"""Characters of an actuator's name."""


@dataclass(frozen=True)
class Log:
    """Actions and velocities of k episodes, n transitions in all, d actuators.

    Episodes follow each other. One of T transitions has T actions and T + 1 velocities:
    action t is taken at velocity t and leads to velocity t + 1.
    """

    source: str
    """Where it was read from, printable as the names and notes are."""
    format: str
    """The reader's name."""
    actuators: tuple[str, ...]  # (d,)
    velocity: np.ndarray  # (n + k, d)
    action: np.ndarray  # (n, d)
    n_transitions: np.ndarray  # (k,)
    start_step: np.ndarray  # (k,), the agent's step clock; worlds may run at once
    control_step_s: float | None = None
    regime: np.ndarray | None = None  # (k,), the true one, where the log has it
    gain: np.ndarray | None = None  # (k, d), the true one of every actuator
    notes: tuple[str, ...] = field(default=())
    """Sentences for people: what was guessed, what was left out."""

    def __post_init__(self) -> None:
        set_field = functools.partial(object.__setattr__, self)  # frozen for all others
        set_field("source", printable(self.source))
        set_field("actuators", tuple(printable(n, MAX_NAME) for n in self.actuators))
        set_field("notes", tuple(printable(note) for note in self.notes))
        _check_lengths(self)
        _check_finite(self, "velocity", self.velocity, closing_rows=1)
        _check_finite(self, "action", self.action, closing_rows=0)

    @property
    def n_episodes(self) -> int:
        """How many there are: k."""
        return len(self.n_transitions)

    @property
    def end_step(self) -> np.ndarray:
        """(k,) the step clock after each episode's last transition."""
        return self.start_step + self.n_transitions

    def episodes(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(T + 1, d) velocities and (T, d) actions of each episode."""
        velocities = np.split(self.velocity, np.cumsum(self.n_transitions + 1)[:-1])
        actions = np.split(self.action, np.cumsum(self.n_transitions)[:-1])
        return zip(velocities, actions, strict=True)

    def velocity_change(self) -> np.ndarray:
        """(n, d) v[t + 1] - v[t], never across two episodes."""
        closing = np.cumsum(self.n_transitions + 1) - 1
        change = np.diff(self.velocity, axis=0)
        return np.delete(change, closing[:-1], axis=0)


def common_step(source: str, step_s: np.ndarray) -> float | None:
    """The control step of a log from those of its episodes (k,), in seconds.

    Raises:
        FallowError: two episodes were recorded at different steps.
    """
    if len(step_s) == 0:
        return None
    low, high = int(step_s.argmin()), int(step_s.argmax())
    if not step_s[low] > 0:
        raise FallowError(
            f"{source}: time does not run forward in episode {low}; sort its rows by "
            "time, or choose the time column with --time"
        )
    if step_s[high] > step_s[low] * (1 + STEP_TOLERANCE):
        raise FallowError(
            f"{source} mixes control steps: {step_s[low]:.4g} s in episode {low}, "
            f"{step_s[high]:.4g} s in episode {high}, and the response depends on the "
            "step; diagnose them separately"
        )
    return float(np.median(step_s))


def _check_lengths(log: Log) -> None:
    d, n, k = len(log.actuators), int(log.n_transitions.sum()), log.n_episodes
    if log.velocity.shape != (n + k, d) or log.action.shape != (n, d):
        raise FallowError(
            f"{log.source}: {log.action.shape} actions and {log.velocity.shape} "
            f"velocities do not fit {k} episodes of {n} transitions and {d} actuators"
        )
    short = np.flatnonzero(log.n_transitions < MIN_TRANSITIONS)
    if short.size:
        raise FallowError(
            f"{log.source}: episode {short[0]} has {log.n_transitions[short[0]]} "
            f"transitions and needs {MIN_TRANSITIONS} or more ({short.size} of {k} "
            "episodes are too short); leave such episodes out"
        )


def _check_finite(log: Log, name: str, values: np.ndarray, closing_rows: int) -> None:
    if values.size == 0 or _largest(values) <= MAX_SIZE:
        return
    measured = np.abs(values.astype(np.float64)) <= MAX_SIZE
    row, column = np.argwhere(~measured)[0]
    ends = np.cumsum(log.n_transitions + closing_rows)
    episode = int(np.searchsorted(ends, row, side="right"))
    what = "action" if name == "action" else "velocity driven by"
    raise FallowError(
        f"{log.source}: the {what} '{log.actuators[column]}' is {values[row, column]} "
        f"in episode {episode} ({counted(int((~measured).sum()), 'such value')} in "
        "all); repair or leave out what was not measured"
    )


def _largest(values: np.ndarray) -> float:
    """The largest size; NaN if one is."""
    return max(float(values.max()), -float(values.min()))
