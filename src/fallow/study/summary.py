"""Mean, standard error and confidence intervals of paired values of several seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fallow.core import seeds

LEVEL = 0.95
"""Of every interval."""
N_RESAMPLES = 10_000

Interval = tuple[float, float]


@dataclass(frozen=True)
class Missing:
    """A branch that should have given a value and did not."""

    condition: str
    rule: str
    seed: int
    reason: str

    def __str__(self) -> str:
        return f"{self.condition}, {self.rule}, seed {self.seed}: {self.reason}"


@dataclass(frozen=True)
class Summary:
    """n values, one for each seed and trunk; what is not defined is None."""

    values: tuple[float, ...]
    """In the order of seeds and trunks."""
    n_expected: int
    """How many there are in a complete study."""
    missing: tuple[Missing, ...]
    """Why there are fewer; the statistics leave them out."""
    mean: float | None
    se: float | None
    """Standard error of the mean; None for fewer than two values."""
    interval: Interval | None
    """95 % t interval of the mean."""
    bootstrap: Interval | None
    """95 % percentile interval of resampled means. Of five values it covers 84 %."""

    @property
    def n(self) -> int:
        """How many values there are."""
        return len(self.values)

    @property
    def n_positive(self) -> int:
        """How many are above 0."""
        return sum(value > 0 for value in self.values)

    @property
    def n_negative(self) -> int:
        """How many are below 0."""
        return sum(value < 0 for value in self.values)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return self.n == self.n_expected

    @property
    def clear(self) -> bool:
        """Whether the t interval leaves 0 out."""
        return self.interval is not None and not (
            self.interval[0] <= 0 <= self.interval[1]
        )


def summarise(
    values: Sequence[float],
    missing: Sequence[Missing] = (),
    n_expected: int | None = None,
) -> Summary:
    """Summarise values; by default each missing branch counts as one expected value."""
    numbers = np.array(values, np.float64)
    mean = float(numbers.mean()) if len(numbers) else None
    return Summary(
        values=tuple(numbers.tolist()),
        n_expected=len(numbers) + len(missing) if n_expected is None else n_expected,
        missing=tuple(missing),
        mean=mean,
        se=standard_error(numbers),
        interval=t_interval(numbers),
        bootstrap=bootstrap_interval(numbers),
    )


def standard_error(values: np.ndarray) -> float | None:
    """Of the mean of values (n,); None for fewer than two."""
    if len(values) < 2:
        return None
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def t_interval(values: np.ndarray) -> Interval | None:
    """Of the mean of values (n,), taken as normal; None for fewer than two."""
    from scipy.special import stdtrit

    error = standard_error(values)
    if error is None:
        return None
    reach = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2)) * error
    mean = float(values.mean())
    return mean - reach, mean + reach


def bootstrap_interval(
    values: np.ndarray,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """Percentiles of the means of n values sampled with replacement from values (n,).

    Values are differences of pairs, so resampling them keeps every pair together.
    None for fewer than two.
    """
    from scipy import stats

    if len(values) < 2:
        return None
    found = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=n_resamples,
        confidence_level=LEVEL,
        method="percentile",
        rng=seeds.generator(seed, "paired bootstrap"),
    ).confidence_interval
    return float(found.low), float(found.high)
