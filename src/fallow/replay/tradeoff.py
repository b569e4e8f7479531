"""When forgetting helps: bias against variance, eqs (3) to (6) of the paper.

A scalar of the present dynamics is estimated from observations with noise of standard
deviation `noise_std` (sigma). Fresh ones are centred on it; old, stale ones are off by
`offset` (M). Both have the scalar's unit, errors its square. `n_*` count observations;
beta, rho and rho_w are fractions. Arguments of equations may be arrays, and broadcast.
"""

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError

Numbers = float | np.ndarray
FRACTIONS = ("beta", "rho", "rho_w")


def error(
    beta: Numbers, offset: Numbers, noise_std: Numbers, n_old: Numbers, n_fresh: Numbers
) -> Numbers:
    """The mean-squared error when the mean of the old data has weight beta, eq. (3).

    E(beta) = beta^2 M^2 + beta^2 sigma^2 / n_o + (1 - beta)^2 sigma^2 / n_f
    """
    beta, offset, noise_std, n_old, n_fresh = _checked(
        beta=beta, offset=offset, noise_std=noise_std, n_old=n_old, n_fresh=n_fresh
    )
    old = beta**2 * (offset**2 + noise_std**2 / n_old)
    return old + (1 - beta) ** 2 * noise_std**2 / n_fresh


def beta_star(
    offset: Numbers, noise_std: Numbers, n_old: Numbers, n_fresh: Numbers
) -> Numbers:
    """The weight of the old data that makes the error least, eq. (4).

    beta* = (sigma^2 / n_f) / (M^2 + sigma^2 / n_o + sigma^2 / n_f)

    Raises if offset and noise are both 0: then no weight makes an error.
    """
    offset, noise_std, n_old, n_fresh = _checked(
        offset=offset, noise_std=noise_std, n_old=n_old, n_fresh=n_fresh
    )
    fresh = noise_std**2 / n_fresh
    total = offset**2 + noise_std**2 / n_old + fresh
    if np.any(total == 0):
        raise FallowError(
            "offset is 0 and noise_std is 0, so every weight is equally good; "
            "one of them must differ from 0"
        )
    return fresh / total


def delta_error(
    rho: Numbers,
    rho_w: Numbers,
    offset: Numbers,
    noise_std: Numbers,
    n_window: Numbers,
    n_full: Numbers,
) -> Numbers:
    """The full buffer's mean-squared error less that of its window, eq. (5).

    dE = (rho^2 - rho_w^2) M^2 - sigma^2 (1 / w - 1 / N)

    dE > 0 favours forgetting; going to the window changes the error by -dE. This is
    exact for plain means: N observations, of them rho N stale, have a mean of bias
    rho M and variance sigma^2 / N. (Were each stale by chance, with probability rho,
    the number of them would vary too and add rho (1 - rho) M^2 / N.)
    """
    rho, rho_w, offset, noise_std, n_window, n_full = _checked(
        rho=rho,
        rho_w=rho_w,
        offset=offset,
        noise_std=noise_std,
        n_window=n_window,
        n_full=n_full,
    )
    less_bias = (rho**2 - rho_w**2) * offset**2
    return less_bias - noise_std**2 * (1 / n_window - 1 / n_full)


def offset_star(
    rho: Numbers,
    rho_w: Numbers,
    noise_std: Numbers,
    n_window: Numbers,
    n_full: Numbers,
) -> Numbers:
    """The offset above which forgetting pays, where dE = 0, eq. (6).

    M* = sigma sqrt((1 / w - 1 / N) / (rho^2 - rho_w^2)) for rho > rho_w

    Infinite for rho <= rho_w: then forgetting pays at no offset.
    """
    rho, rho_w, noise_std, n_window, n_full = _checked(
        rho=rho, rho_w=rho_w, noise_std=noise_std, n_window=n_window, n_full=n_full
    )
    more_variance, less_bias = np.broadcast_arrays(
        noise_std**2 * (1 / n_window - 1 / n_full), rho**2 - rho_w**2
    )
    squared = np.full(less_bias.shape, np.inf)
    np.divide(more_variance, less_bias, out=squared, where=less_bias > 0)
    return np.sqrt(squared)


def _checked(**arguments: Numbers) -> list[np.ndarray]:
    """The arguments as arrays of floats, each within its limits."""
    for name, values in arguments.items():
        for value in np.ravel(values).tolist():
            _check(name, value)
    arrays = {name: np.asarray(values, float) for name, values in arguments.items()}
    if "n_window" in arrays and (arrays["n_window"] > arrays["n_full"]).any():
        raise FallowError(
            f"tradeoff: n_window is {arguments['n_window']} and n_full "
            f"{arguments['n_full']}; a window is at most as long as its buffer"
        )
    return list(arrays.values())


def _check(name: str, value: float) -> None:
    if name.startswith("n_"):
        options.check_number("tradeoff", name, value, above=0)
    elif name == "offset":
        options.check_number("tradeoff", name, value)
    else:
        options.check_number("tradeoff", name, value, at_least=0)
    if name in FRACTIONS and value > 1:
        raise FallowError(f"tradeoff: {name} is {value}; a fraction is at most 1")
