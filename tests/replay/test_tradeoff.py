"""The trade-off: hand-computed numbers, optima, limits, and a simulation as oracle."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from fallow.core.errors import FallowError
from fallow.replay.tradeoff import beta_star, delta_error, error, offset_star

STANDARD_ERRORS = 4
"""How far a simulation may lie from its formula."""
N_REPETITIONS = 4000

offsets = st.floats(-10, 10)
noise_stds = st.floats(0.01, 10)
counts = st.integers(1, 10_000)
fractions = st.integers(0, 1000).map(lambda n: n / 1000)


@st.composite
def windows(draw) -> tuple[int, int]:
    n_full = draw(st.integers(2, 10_000))
    return draw(st.integers(1, n_full)), n_full


def standard_error(values: np.ndarray) -> float:
    return values.std(ddof=1) / math.sqrt(values.size)


def assert_agrees(squared: np.ndarray, expected) -> None:
    distance = abs(squared.mean() - expected)
    assert distance <= STANDARD_ERRORS * standard_error(squared)


def simulated_errors(random, beta, offset, noise_std, n_old, n_fresh) -> np.ndarray:
    """Squared errors of eq. (3), one a repetition."""
    old = random.normal(offset, noise_std, (N_REPETITIONS, n_old)).mean(axis=1)
    fresh = random.normal(0, noise_std, (N_REPETITIONS, n_fresh)).mean(axis=1)
    return (beta * old + (1 - beta) * fresh) ** 2


def simulated_windows(
    random, rho, rho_w, offset, noise_std, n_window, n_full
) -> tuple[np.ndarray, np.ndarray]:
    """Squared errors of eq. (5), one a repetition: the full buffer's, its window's."""
    n_inside = round(rho_w * n_window)
    n_outside = round(rho * n_full) - n_inside
    centre = np.zeros(n_full)  # the window first
    centre[:n_inside] = centre[n_window : n_window + n_outside] = offset
    observed = random.normal(centre, noise_std, (N_REPETITIONS, n_full))
    return observed.mean(axis=1) ** 2, observed[:, :n_window].mean(axis=1) ** 2


def test_hand_computed_numbers() -> None:
    # 0.25 x 4 + 0.25 x 9/3 + 0.25 x 9/9
    assert error(0.5, 2, 3, n_old=3, n_fresh=9) == 2.0
    # (9/9) / (4 + 9/3 + 9/9)
    assert beta_star(2, 3, n_old=3, n_fresh=9) == 1 / 8
    # (0.25 - 0.0625) x 16 - 4 (1/4 - 1/8)
    assert delta_error(0.5, 0.25, 4, 2, n_window=4, n_full=8) == 2.5
    # 2 sqrt(0.125 / 0.1875)
    assert offset_star(0.5, 0.25, 2, n_window=4, n_full=8) == pytest.approx(
        math.sqrt(8 / 3)
    )


@given(offsets, noise_stds, counts, counts)
def test_the_best_weight_is_where_the_error_is_least(m, sigma, n_old, n_fresh) -> None:
    best = beta_star(m, sigma, n_old, n_fresh)
    least = error(best, m, sigma, n_old, n_fresh)
    grid = error(np.linspace(0, 1, 101), m, sigma, n_old, n_fresh)
    assert (grid >= least * (1 - 1e-12)).all()
    slope = 2 * best * (m**2 + sigma**2 / n_old) - 2 * (1 - best) * sigma**2 / n_fresh
    assert slope == pytest.approx(0, abs=1e-12 * (m**2 + sigma**2))


def test_the_best_weight_equals_scipys() -> None:
    found = minimize_scalar(
        lambda beta: error(beta, 0.3, 1.5, 40, 25), bounds=(0, 1), method="bounded"
    )
    assert beta_star(0.3, 1.5, 40, 25) == pytest.approx(found.x, abs=1e-5)


def test_limits_of_the_best_weight() -> None:
    assert beta_star(0, 2, n_old=30, n_fresh=10) == pytest.approx(30 / 40)
    assert beta_star(1e-9, 2, n_old=30, n_fresh=10) == pytest.approx(30 / 40)
    assert beta_star(1e9, 2, n_old=30, n_fresh=10) == pytest.approx(0, abs=1e-15)
    assert beta_star(1, 0, n_old=30, n_fresh=10) == 0
    weights = np.asarray(beta_star(np.linspace(0, 5, 50), 2, 30, 10))
    assert (np.diff(weights) < 0).all()


@given(fractions, fractions, noise_stds, windows())
def test_forgetting_pays_above_the_threshold_only(rho, rho_w, sigma, window) -> None:
    threshold = offset_star(rho, rho_w, sigma, *window)
    if rho <= rho_w:
        assert threshold == math.inf
        assert delta_error(rho, rho_w, 1e3, sigma, *window) <= 0
    elif 1e-3 < threshold < 1e6:
        at = delta_error(rho, rho_w, threshold, sigma, *window)
        assert at == pytest.approx(0, abs=1e-9 * max(1, threshold**2))
        assert delta_error(rho, rho_w, threshold * 1.01, sigma, *window) > 0
        assert delta_error(rho, rho_w, threshold * 0.99, sigma, *window) < 0


def test_a_window_as_long_as_its_buffer_costs_no_variance() -> None:
    assert delta_error(0.5, 0.25, 2, 3, 8, 8) == 0.75
    assert offset_star(0.5, 0.25, 3, 8, 8) == 0
    assert offset_star(0.5, 0.5, 3, 8, 8) == math.inf
    assert offset_star(0.5, 0.25, 0, 4, 8) == 0


@given(st.integers(1, 99), st.integers(1, 99), offsets, noise_stds)
def test_a_plain_mean_is_a_weight_of_the_stale_fraction(n_old, n_fresh, m, s) -> None:
    """Eq. (3) at beta = rho: bias rho M and variance sigma^2 / N, as in eq. (5)."""
    n, rho = n_old + n_fresh, n_old / (n_old + n_fresh)
    assert error(rho, m, s, n_old, n_fresh) == pytest.approx(rho**2 * m**2 + s**2 / n)


def test_equations_broadcast() -> None:
    m = np.array([0.0, 1.0, 2.0])
    rho = np.array([[0.2], [0.8]])
    table = delta_error(rho, 0.5, m, 1, 10, 100)
    assert np.shape(table) == (2, 3)
    assert table[1, 2] == delta_error(0.8, 0.5, 2.0, 1, 10, 100)
    thresholds = offset_star(rho, 0.5, np.ones(3), 10, 100)
    assert np.isinf(thresholds[0]).all() and np.isfinite(thresholds[1]).all()
    assert isinstance(beta_star(1, 1, 1, np.int64(1)), float)


@pytest.mark.parametrize("beta", [0, 0.1, 0.5, 1])
@pytest.mark.parametrize(("offset", "noise_std"), [(0, 1), (0.7, 2), (-3, 0.5)])
def test_simulated_weights_agree_with_equation_3(
    random, beta, offset, noise_std
) -> None:
    setting = (beta, offset, noise_std, 30, 10)
    assert_agrees(simulated_errors(random, *setting), error(*setting))


@pytest.mark.parametrize(
    "setting",
    [
        (0.5, 0.1, 1.0, 2.0, 20, 200),
        (0.5, 0.5, 1.0, 2.0, 20, 200),
        (0.1, 0.5, 3.0, 1.0, 20, 200),
        (0.9, 0.0, 0.2, 1.0, 10, 100),
    ],
)
def test_simulated_windows_agree_with_equation_5(random, setting) -> None:
    rho, rho_w, offset, noise_std, n_window, n_full = setting
    full, window = simulated_windows(random, *setting)
    assert_agrees(full, rho**2 * offset**2 + noise_std**2 / n_full)
    assert_agrees(window, rho_w**2 * offset**2 + noise_std**2 / n_window)
    assert_agrees(full - window, delta_error(*setting))


def test_the_simulated_sign_turns_at_the_threshold(random) -> None:
    threshold = float(offset_star(0.5, 0.1, 2, 20, 200))
    for factor, sign in ((0.5, -1), (2, 1)):
        full, window = simulated_windows(
            random, 0.5, 0.1, factor * threshold, 2, 20, 200
        )
        difference = full - window
        bound = STANDARD_ERRORS * standard_error(difference)
        assert sign * difference.mean() > bound


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: error(1.5, 1, 1, 1, 1), "beta is 1.5"),
        (lambda: error(np.array([0.5, -0.1]), 1, 1, 1, 1), "beta is -0.1"),
        (lambda: error(0.5, math.nan, 1, 1, 1), "offset is nan"),
        (lambda: error(0.5, 1, -2, 1, 1), "noise_std is -2"),
        (lambda: error(0.5, 1, 1, 0, 1), "n_old is 0"),
        (lambda: error("half", 1, 1, 1, 1), "beta is half"),
        (lambda: beta_star(1, 1, 1, -3), "n_fresh is -3"),
        (lambda: beta_star(0, 0, 1, 1), "offset is 0 and noise_std is 0"),
        (lambda: delta_error(1.2, 0, 1, 1, 1, 2), "rho is 1.2"),
        (lambda: delta_error(0.5, -0.2, 1, 1, 1, 2), "rho_w is -0.2"),
        (lambda: delta_error(0.5, 0, 1, 1, 30, 20), "n_window is 30 and n_full 20"),
        (lambda: offset_star(0.5, 0, 1, 0, 20), "n_window is 0"),
    ],
)
def test_impossible_values_are_named(call, message: str) -> None:
    with pytest.raises(FallowError, match=message):
        call()
