"""Quantiles of Student's t for whole degrees of freedom, by its finite series.

With t = sqrt(df) tan(angle), Pr[|T| <= t] is a polynomial in cos^2(angle):

    odd df    2/pi (angle + sin cos (1 + 2/3 cos^2 + 2/3 4/5 cos^4 + …))
    even df   sin (1 + 1/2 cos^2 + 1/2 3/4 cos^4 + …)

with (df - 1) / 2 and df / 2 terms (Abramowitz and Stegun, 26.7.3 and 26.7.4).
"""

import math

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError

MAX_HALVINGS = 200
"""Of an interval of angles; doubles have no more between two of them."""


def t_quantile(probability: float, df: int) -> float:
    """The t that a share `probability` of Student's distribution lies below.

    Raises:
        FallowError: a probability outside (0, 1), or fewer than one degree of freedom.
    """
    options.check_int("t quantile", "df", df, at_least=1)
    if not 0 < probability < 1:
        raise FallowError(
            f"t quantile: probability is {probability:g}; it must lie inside (0, 1)"
        )
    wanted = abs(2 * probability - 1)
    terms = _terms(df)
    low, high = 0.0, math.pi / 2
    for _ in range(MAX_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if _share_within(middle, df, terms) < wanted:
            low = middle
        else:
            high = middle
    return math.copysign(math.sqrt(df) * math.tan(low), probability - 0.5)


def _terms(df: int) -> np.ndarray:
    """Coefficients of the series in cos^2, the constant one first."""
    first = 1.0 if df % 2 else 0.0
    k = np.arange(1, (df - 1) // 2 if df % 2 else df // 2, dtype=np.float64)
    ratios = (2 * k - 1 + first) / (2 * k + first)
    return np.concatenate([np.ones(1 if df > 1 else 0), np.cumprod(ratios)])


def _share_within(angle: float, df: int, terms: np.ndarray) -> float:
    """Pr[|T| <= sqrt(df) tan(angle)]."""
    cosine, sine = math.cos(angle), math.sin(angle)
    total = float(np.polyval(terms[::-1], cosine**2)) if len(terms) else 0.0
    if df % 2 == 0:
        return sine * total
    return 2 / math.pi * (angle + sine * cosine * total)
