"""Distinguishes a changed body from a policy that visits new states.

Recent episodes are predicted from each other, once with all earlier data of the body
and once with almost none of it. In new states the earlier data does not make the
prediction worse; on a changed body it does. This detects changes that no gain explains,
and shows whether gains explain a change.
"""

import numpy as np

from fallow.tracking.body import BodyModel, Sums
from fallow.tracking.features import Design

START_DEVIATION = 0.15
"""Standard deviation, in nats a step, of what an unchanged body gains from forgetting,
before any is known."""
MIN_DEVIATION = 0.1
"""Smallest one that is believed."""
START_EPISODES = 4.0
"""Episodes that the start counts for."""
SHARE = 0.05
"""Least weight of one episode in the running mean and variance."""
MAX_DEVIATIONS = 4.0
"""At which an episode is clipped before it is learned."""
SHIFT = 3.0
"""Standard deviations of the rise that is tested for."""


class Usual:
    """Running mean and variance of the nats a step that forgetting gains."""

    def __init__(self) -> None:
        self.mean, self.variance, self.n_episodes = 0.0, START_DEVIATION**2, 0

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        return float(np.sqrt(max(self.variance, MIN_DEVIATION**2)))

    def excess(self, gained: float) -> float:
        """Standard deviations above the mean."""
        return (gained - self.mean) / self.deviation

    def log_ratio(self, gained: float) -> float:
        """Nats for a rise by `SHIFT` against none."""
        return SHIFT * self.excess(gained) - SHIFT**2 / 2

    def learn(self, gained: float) -> None:
        """Update by an episode of an unchanged body."""
        self.n_episodes += 1
        share = max(SHARE, 1 / (self.n_episodes + START_EPISODES))
        most = MAX_DEVIATIONS * self.deviation
        step = min(max(gained - self.mean, -most), most)
        self.mean += share * step
        self.variance = (1 - share) * (self.variance + share * step**2)


def predicted(
    body: BodyModel, start: Sums, designs: list[Design], gain: np.ndarray
) -> np.ndarray:
    """(n,) loss of each episode, predicted from `start` and the other half of them."""
    losses = np.zeros(len(designs))
    for half in range(2):
        weights = body.robust_weights(start, designs[1 - half :: 2], gain)
        for i in range(half, len(designs), 2):
            losses[i] = body.loss(designs[i], gain, weights)
    return losses
