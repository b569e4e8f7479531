"""Progress of a fleet in training."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class EvaluationResult(NamedTuple):
    """The result of an evaluation."""

    frame: int
    """At which it began."""
    returns: np.ndarray
    """(R, n_episodes)."""


@dataclasses.dataclass(frozen=True)
class Progress:
    """Progress of a fleet."""

    frame: int
    until_frame: int
    n_updates: int
    updates_per_s: float
    """Of all branches together, since the last time; right after an evaluation since
    the evaluation before, all that there was to do included."""
    evaluation: EvaluationResult | None = None
    """Right after an evaluation."""
    metrics: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    """Since the fleet was built, by what they were spent on; see `clock`."""
    message: str = ""


OnProgress = Callable[[Progress], None]
