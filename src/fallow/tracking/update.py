"""What the tracker reports after an episode."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class TrackerUpdate:
    """The regime in force after an episode; d actuators."""

    episode: int
    """Index of the episode, from 0; skipped ones count."""
    state: str
    """`warming_up`, `settled`, `suspicious`, `changed` in the update that reports a
    change, `unexplained` as long as a regime is in force that no gains explain."""
    regime: int
    """Id of the regime in force; 0 is the first body."""
    probabilities: dict[int, float]
    """Of every regime that is possible now; a new one has the next free id."""
    gain: np.ndarray  # (d,) relative to regime 0
    gain_low: np.ndarray  # (d,)
    gain_high: np.ndarray  # (d,)
    calibrated: bool
    """Whether gains explain the regime and every interval is narrow; False: read the
    gain as a rough size."""
    relabelled: tuple[tuple[int, int], ...] = field(default=())
    """(episode, regime) of every past episode whose label this update changed."""
    note: str = ""
    """One sentence for people: why an episode was skipped, what changed."""
