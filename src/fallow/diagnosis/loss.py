"""The share of a response that was lost, eq. (8), and its resampling interval.

    m_hat = 1 - median(K_fresh) / median(K_stale)

The interval holds 95 % of the values that eq. (8) takes when the episodes of either
kind are resampled. It says how well the *response* ratio of these episodes is known
under the policies that recorded them. It is not an interval of the physical gain,
because K also changes with the policy: `benchmarks/response_coverage.py` counts both.
"""

import numpy as np

from fallow.core import seeds

N_RESAMPLES = 10_000
LEVEL = 0.95
"""Share of the resamples inside an interval."""
SMALLEST = 0.01
"""A stale response below this share of the fresh one has no ratio to it."""


def magnitude(fresh: np.ndarray, stale: np.ndarray) -> float | None:
    """Eq. (8); None where nothing is stale or the stale response is next to zero."""
    if len(fresh) == 0 or len(stale) == 0:
        return None
    over, under = float(np.median(fresh)), float(np.median(stale))
    return 1 - over / under if abs(under) > SMALLEST * abs(over) else None


def resampled_magnitudes(
    fresh: np.ndarray, stale: np.ndarray, n_resamples: int = N_RESAMPLES
) -> np.ndarray:
    """(n_resamples,) eq. (8) with the episodes of either kind resampled.

    Empty where eq. (8) is undefined, or where the resampled stale response is next to
    zero or changes its sign in more than 1 - `LEVEL` of the resamples.
    """
    if magnitude(fresh, stale) is None:
        return np.zeros(0)
    random = seeds.generator(0, "bootstrap of the magnitude")
    over = resampled_medians(fresh, n_resamples, random)
    under = resampled_medians(stale, n_resamples, random)
    usable = under * np.sign(np.median(stale)) > SMALLEST * np.abs(over)
    if usable.mean() < LEVEL:
        return np.zeros(0)
    return 1 - over[usable] / under[usable]


def resampled_medians(
    values: np.ndarray, n_resamples: int, random: np.random.Generator
) -> np.ndarray:
    """Medians of n values resampled from n, without sampling each.

    The middle order statistics of n uniform numbers are Beta distributed, and the value
    at rank ceil(n u) belongs to the uniform u: exact, and as quick for any n.
    """
    n, middle = len(values), (len(values) + 1) // 2
    low = random.beta(middle, n - middle + 1, n_resamples)
    high = low
    if n % 2 == 0:  # the next order statistic, given this one
        high = low + (1 - low) * random.beta(1, n - middle, n_resamples)
    ordered = np.sort(values)
    ranks = [np.minimum((n * u).astype(int), n - 1) for u in (low, high)]
    return (ordered[ranks[0]] + ordered[ranks[1]]) / 2


def interval_of(resampled: np.ndarray) -> tuple[float, float] | None:
    """The central 95 % of resampled magnitudes; None of none."""
    if len(resampled) == 0:
        return None
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
