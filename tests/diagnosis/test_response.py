"""Response, segments and bootstrap against hand-computed numbers and oracles."""

import numpy as np
import pytest
import ruptures
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fallow.core.errors import FallowError
from fallow.diagnosis import Example, decide, example
from fallow.diagnosis.actuator import (
    EPSILON,
    LARGE_ACTION,
    VARIANTS,
    joint_response,
    response_of,
)
from fallow.diagnosis.loss import (
    interval_of,
    magnitude,
    resampled_magnitudes,
    resampled_medians,
)
from fallow.diagnosis.segments import (
    MIN_SEGMENT,
    PENALTY_FACTOR,
    change_points,
    segments_of,
    standardise,
    welch_z,
)
from fallow.logs.log import Log

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def log_of(velocities: list, actions: list) -> Log:
    """A log from lists of (T + 1, d) velocities and (T, d) actions."""
    n_transitions = np.array([len(a) for a in actions])
    d = np.shape(actions[0])[1]
    return Log(
        source="hand",
        format="hand",
        actuators=tuple("abcdef"[:d]),
        velocity=np.concatenate([np.asarray(v, float) for v in velocities]),
        action=np.concatenate([np.asarray(a, float) for a in actions]),
        n_transitions=n_transitions,
        start_step=np.cumsum(n_transitions) - n_transitions,
    )


def test_k_by_hand() -> None:
    """Episode 0, joint a: (1 * 1 + 3 * 0.5) / (1 + 0.25) = 2; joint b: -4 / 1."""
    log = log_of(
        [[[0, 0], [1, 4], [4, 4]], [[9, 1], [9, 1], [9, 2]]],
        [[[1, -1], [0.5, 0]], [[1, 0.5], [1, -0.5]]],
    )
    expected = [[2.0, -4.0], [0.0, -1.0]]
    np.testing.assert_allclose(joint_response(log), expected, rtol=1e-7)
    np.testing.assert_allclose(response_of(log, "mean").series, [[-1.0], [-0.5]])


def test_large_actions_by_hand() -> None:
    """Actions of exactly 0.5 do not count; a joint without any has no part."""
    log = log_of(
        [[[0, 0], [1, 4], [4, 4]], [[9, 1], [8, 1], [9, 2]]],
        [[[1, -0.2], [0.5, 0]], [[-1, 0.8], [0.1, -0.6]]],
    )
    response = response_of(log, "large")
    expected = [[1.0, np.nan], [1.0, -0.6]]
    np.testing.assert_allclose(response.joint, expected, rtol=1e-7)
    np.testing.assert_allclose(response.series, [[1.0], [0.2]], rtol=1e-7)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(2, 30), min_size=1, max_size=12), st.integers(0, 2**31))
def test_k_equals_eq_7_written_out(lengths: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    velocities = [random.normal(size=(n + 1, 3)) for n in lengths]
    actions = [random.uniform(-1, 1, (n, 3)) for n in lengths]
    log = log_of(velocities, actions)
    for beyond in (0.0, LARGE_ACTION):
        expected = np.full((len(lengths), 3), np.nan)
        for e, (v, a) in enumerate(zip(velocities, actions, strict=True)):
            for j in range(3):
                kept = np.abs(a[:, j]) > beyond
                pull = sum((v[1:, j] - v[:-1, j])[kept] * a[kept, j])
                if kept.any():
                    expected[e, j] = pull / (sum(a[kept, j] ** 2) + EPSILON)
        np.testing.assert_allclose(joint_response(log, beyond), expected, rtol=1e-9)


def test_float32_logs_lose_nothing_in_the_sums() -> None:
    log = example(Example(n_episodes=12, change_points=(6,), n_steps=2000))
    from dataclasses import replace

    small = replace(
        log,
        velocity=log.velocity.astype(np.float32),
        action=log.action.astype(np.float32),
    )
    np.testing.assert_allclose(joint_response(small), joint_response(log), rtol=1e-5)


def quiet(log: Log, episodes: tuple[int, ...], joint: int | None = None) -> Log:
    from dataclasses import replace

    action = log.action.copy()
    ends = np.cumsum(log.n_transitions)
    for episode in episodes:
        rows = slice(ends[episode] - log.n_transitions[episode], ends[episode])
        action[rows, slice(None) if joint is None else joint] = 0
    return replace(log, action=action)


def test_quiet_episodes_are_left_out_and_mapped_back() -> None:
    truth = Example(n_episodes=60, change_points=(30,))
    whole = decide(example(truth))
    silent = (0, 3, 29, 30, 59)
    decision = decide(quiet(example(truth), silent))
    assert decision.left_out == silent
    assert np.isnan(decision.response.mean[list(silent)]).all()
    assert whole.change_points == (30,)
    assert decision.change_points == (31,)  # 30 says nothing: part of what was before
    assert decision.stale.tolist() == [True] * 31 + [False] * 29
    assert decision.discard


def test_one_nan_would_hide_everything_and_does_not() -> None:
    series = np.concatenate([np.zeros(20), np.full(20, 5.0)])[:, None]
    series += np.random.default_rng(0).normal(0, 0.1, series.shape)
    series[7] = np.nan
    found = segments_of(series, series[:, 0])
    assert [(s.start, s.stop, s.stale) for s in found] == [
        (0, 20, True),
        (20, 40, False),
    ]


def test_a_joint_that_is_never_commanded_has_no_channel() -> None:
    truth = Example(n_episodes=30, change_points=(15,))
    log = quiet(example(truth), tuple(range(30)), joint=1)
    decision = decide(log)
    assert decision.response.silent == ("joint 1",)
    assert decision.response.channels == ("joint 0", "joint 2")
    assert decision.change_points == (15,) and decision.left_out == ()


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_actions_at_all_is_an_error(variant: str) -> None:
    log = quiet(example(), tuple(range(100)))
    with pytest.raises(FallowError, match="no episode has an action"):
        decide(log, variant)


def test_unknown_variants_and_scales() -> None:
    with pytest.raises(FallowError, match="did you mean 'joint'"):
        decide(example(), "joints")
    with pytest.raises(FallowError, match="unknown scale"):
        decide(example(), scale="std")


def test_standardise() -> None:
    series = np.array([[1.0, 5, 7], [2, 5, 7], [3, 5, 7], [4, 5, 9], [100, 5, 7]])
    found = standardise(series)
    np.testing.assert_allclose(found[:, 0], [-2, -1, 0, 1, 97])  # median 3, MAD 1
    np.testing.assert_array_equal(found[:, 1], 0)  # constant
    np.testing.assert_allclose(found[:, 2], [0, 0, 0, 5, 0])  # mean deviation 0.4
    expected = stats.median_abs_deviation(series[:, 0], scale="normal")
    by_steps = standardise(series, "steps")[:, 0]  # steps 1, 1, 1, 96
    np.testing.assert_allclose(by_steps, (series[:, 0] - 3) / 1.4826 * np.sqrt(2))
    wide = standardise(series, "mad_normal")[:, 0]
    np.testing.assert_allclose(wide, (series[:, 0] - 3) / expected, rtol=1e-5)


def random_series(seed: int, hard: bool = False) -> np.ndarray:
    """Steps, or none, in 1 to 6 channels of 10 to 90 episodes.

    A hard one has outliers, and one in four a ramp.
    """
    random = np.random.default_rng(seed)
    n, d = int(random.integers(10, 91)), int(random.integers(1, 7))
    series = random.normal(size=(n, d))
    if hard:
        series = random.standard_t(2, size=(n, d))
    for at in random.integers(0, n, random.integers(0, 5)):
        series[at:] += random.normal(0, 3, d)
    if hard and seed % 4 == 0:
        series += np.linspace(0, random.normal(0, 4), n)[:, None]
    return standardise(series)


def exact(series: np.ndarray, penalty: float, min_segment: int) -> list[int]:
    """Optimal partitioning by dynamic programming over every last segment."""
    n = len(series)
    sums = np.vstack([np.zeros(series.shape[1]), np.cumsum(series, axis=0)])
    squares = np.concatenate([[0.0], np.cumsum((series**2).sum(axis=1))])
    best, last = np.full(n + 1, np.inf), np.zeros(n + 1, int)
    best[0] = -penalty
    for stop in range(min_segment, n + 1):
        starts = np.arange(0, stop - min_segment + 1)
        total = sums[stop] - sums[starts]
        error = squares[stop] - squares[starts]
        error -= (total**2).sum(axis=1) / (stop - starts)
        costs = best[starts] + error + penalty
        last[stop] = starts[costs.argmin()]
        best[stop] = costs.min()
    found, stop = [], n
    while stop > 0:
        stop = int(last[stop])
        found.append(stop)
    return found[-2::-1]


def test_change_points_equal_an_exact_programme() -> None:
    n_changes = 0
    for seed in range(400):
        series = random_series(seed)
        n, d = series.shape
        expected = exact(series, PENALTY_FACTOR * d * np.log(n), MIN_SEGMENT)
        assert change_points(series) == expected, seed
        n_changes += len(expected)
    assert n_changes > 400  # the series do change


def penalised(series: np.ndarray, cuts: list[int], penalty: float) -> float:
    parts = np.split(series, cuts)
    error = sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts)
    return error + penalty * len(cuts)


def test_change_points_of_hard_series_are_nearly_optimal() -> None:
    """Known of ruptures (its PR 383): PELT with a minimum length can prune too much."""
    differ, seeds = 0, range(400)
    for seed in seeds:
        series = random_series(seed, hard=True)
        n, d = series.shape
        penalty = PENALTY_FACTOR * d * np.log(n)
        found, best = change_points(series), exact(series, penalty, MIN_SEGMENT)
        if found != best:
            differ += 1
            cost = penalised(series, best, penalty)
            assert cost < penalised(series, found, penalty) < 1.1 * cost
    assert differ <= 0.03 * len(seeds)


@pytest.mark.slow
def test_change_points_equal_pelt() -> None:
    for seed in range(200):
        series = random_series(seed, hard=seed % 2 == 1)
        n, d = series.shape
        pelt = ruptures.Pelt(model="l2", jump=1, min_size=MIN_SEGMENT).fit(series)
        expected = pelt.predict(pen=PENALTY_FACTOR * d * np.log(n))[:-1]
        assert change_points(series) == expected, seed


def test_too_few_episodes() -> None:
    log = example(Example((1.0,), (), n_episodes=9))
    with pytest.raises(FallowError, match="9 episodes with actions, and 10 are needed"):
        decide(log)
    assert decide(example(Example((1.0,), (), n_episodes=10))).word == "keep"


def test_z_is_welch_s() -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(9, 4)), random.normal(1, 3, size=(30, 4))
    expected = np.abs(stats.ttest_ind(a, b, equal_var=False).statistic)
    np.testing.assert_allclose(welch_z(a, b), expected)
    np.testing.assert_array_equal(welch_z(a, a), 0)
    same = np.ones((5, 2))
    np.testing.assert_array_equal(welch_z(same, same), 0)
    assert np.isinf(welch_z(same, same + 1)).all()


def test_magnitude_by_hand() -> None:
    assert magnitude(np.array([1.0, 2, 9]), np.array([4.0, 4, 1])) == 0.5
    assert magnitude(np.array([4.0]), np.array([2.0])) == -1
    assert magnitude(np.array([1.0]), np.zeros(0)) is None
    assert magnitude(np.array([1.0]), np.zeros(3)) is None
    assert magnitude(np.array([1.0]), np.array([0.009])) is None  # next to nothing
    assert magnitude(np.array([0.0]), np.array([2.0])) == 1


@pytest.mark.parametrize("n", [1, 2, 5, 6, 41])
def test_medians_are_resampled_as_by_drawing(n: int) -> None:
    """Same distribution as medians of samples that are really drawn."""
    random = np.random.default_rng(n)
    values = random.normal(size=n)
    drawn = np.median(values[random.integers(n, size=(20_000, n))], axis=1)
    found = resampled_medians(values, 20_000, random)
    assert stats.ks_2samp(drawn, found).statistic < 0.02
    assert set(np.round(found, 9)) - set(np.round(drawn, 9)) == set() or n > 5


def test_the_interval_covers_the_truth() -> None:
    """The median ratio of two normals, 300 times; 95 % within sampling error."""
    random = np.random.default_rng(1)
    hits = 0
    for _ in range(300):
        fresh, stale = random.normal(1, 0.2, 60), random.normal(2, 0.2, 40)
        low, high = np.quantile(
            resampled_magnitudes(fresh, stale, 1000), [0.025, 0.975]
        )
        hits += low <= 0.5 <= high
    assert 0.91 <= hits / 300 <= 0.99


def test_resampling_is_reproducible() -> None:
    values = np.arange(1.0, 12)
    first = resampled_magnitudes(values, values + 1)
    np.testing.assert_array_equal(first, resampled_magnitudes(values, values + 1))
    assert len(resampled_magnitudes(values, np.zeros(3))) == 0


def test_a_stale_response_of_either_sign_has_no_interval() -> None:
    """Its ratio to anything is arbitrary; one outlier does not make it so."""
    fresh, random = np.linspace(1, 2, 20), np.random.default_rng(0)
    both = random.normal(0.05, 1, 20)
    assert magnitude(fresh, both) is not None
    assert interval_of(resampled_magnitudes(fresh, both)) is None
    outlier = np.append(random.normal(3, 0.1, 20), -50)
    low, high = interval_of(resampled_magnitudes(fresh, outlier))
    assert 0.3 < low < 0.5 < high < 0.7
