"""The recent episodes that a tracker keeps."""

from dataclasses import dataclass

import numpy as np

from fallow.tracking.body import BodyModel, Fit, Sums
from fallow.tracking.features import Design


@dataclass(frozen=True)
class Reading:
    """The evidence of an episode about the present regime."""

    fit: Fit
    sums: Sums
    gained: float
    """Nats a step that forgetting the older episodes gains."""


@dataclass(frozen=True)
class Held:
    """A recent episode that is not learned from yet, or that is on trial."""

    episode: int
    velocities: np.ndarray  # (T + 1, d)
    actions: np.ndarray  # (T, d)
    design: Design | None = None
    """None before the end of warm-up."""
    reading: Reading | None = None


@dataclass(frozen=True)
class Trial:
    """A new regime whose gains are reviewed after some episodes."""

    body: BodyModel
    """As it was before the change."""
    held: list[Held]
