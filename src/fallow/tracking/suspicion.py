"""Sequential evidence against the present regime: one CUSUM for every hypothesis."""

import numpy as np

from fallow.tracking.evidence import Evidence
from fallow.tracking.hypotheses import grid
from fallow.tracking.regimes import KnownRegime

HOLD = 0.25
"""Share of the threshold from which episodes are suspicious and not learned from."""


class Suspicion:
    """Sums of log likelihood ratios of known and unknown regimes to the present one.

        sum[h] = max(0, sum[h] + clip(log p(episode | h) - log p(episode | present)))

    Such a sum exceeds log(n) by chance once in n episodes; the threshold takes for n
    the wanted time between false alarms times the number of hypotheses. One episode
    adds at most the threshold over `min_episodes`, so no single one decides.
    """

    def __init__(self, false_alarms_per_1000: float, min_episodes: int) -> None:
        self.false_alarms_per_1000 = false_alarms_per_1000
        self.min_episodes = min_episodes
        self.known: dict[int, float] = {}
        self.unknown = np.zeros(0)  # (n hypotheses,)

    def reset(self) -> None:
        """Forget all evidence."""
        self.known, self.unknown = {}, np.zeros(0)

    def threshold(self, present: KnownRegime, n_regimes: int) -> float:
        """Nats at which a change is examined."""
        n_tests = len(grid(present.gain)) + n_regimes
        return float(np.log(1000 / self.false_alarms_per_1000 * n_tests))

    def add(
        self,
        evidence: Evidence,
        present: KnownRegime,
        others: list[KnownRegime],
        ratios: dict[int | None, float],
    ) -> None:
        """Add an episode to every sum.

        `ratios` has the log likelihood ratios that gains do not give: of the other
        bodies' regimes by id, and of an unknown body under None.
        """
        start = evidence.log_likelihood(present.gain)
        most = self.threshold(present, 1 + len(others)) / self.min_episodes + 1e-9
        tests = evidence.log_likelihood(grid(present.gain)) - start
        tests = np.clip(np.append(tests, ratios[None]), -most, most)
        if len(self.unknown) != len(tests):
            self.unknown = np.zeros(len(tests))
        self.unknown = np.maximum(0.0, self.unknown + tests)
        for regime in others:
            ratio = ratios.get(regime.id)
            if ratio is None:
                ratio = float(evidence.log_likelihood(regime.gain) - start)
            total = self.known.get(regime.id, 0.0) + min(max(ratio, -most), most)
            self.known[regime.id] = max(0.0, total)

    @property
    def largest(self) -> float:
        """Nats against the present regime."""
        return max([0.0, *self.known.values(), *self.unknown])

    def probabilities(self, present: KnownRegime, n_regimes: int) -> dict[int, float]:
        """Of every regime; the odds of a change are exp(sum - threshold)."""
        limit = self.threshold(present, n_regimes)
        sums = dict(self.known)
        sums[n_regimes] = max([0.0, *self.unknown])
        odds = {k: float(np.exp(min(s - limit, 50.0))) for k, s in sums.items() if s}
        odds[present.id] = 1.0
        total = sum(odds.values())
        return {regime: odds[regime] / total for regime in sorted(odds)}
