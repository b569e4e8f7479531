"""Schedules: the Real-World RL arithmetic, and the laws of segments and regimes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow.core import seeds
from fallow.core.errors import FallowError
from fallow.dynamics.schedules import (
    SCHEDULES,
    Drift,
    Never,
    Permanent,
    Range,
    Recurring,
)

RANGE = Range(start=0.7, min=0.01, max=2.0, std=0.05)
N_LEVELS = 1000


def equations(kind: str, seed: int) -> list[float]:
    """The schedulers written out as the suite documents them, one if at a time."""
    normals = seeds.generator(seed, "drift").standard_normal(N_LEVELS)
    uniforms = seeds.generator(seed, "drift-uniform").random(N_LEVELS)
    current, direction, path = RANGE.start, 1.0, []
    for normal, uniform in zip(normals, uniforms, strict=True):
        d = normal * RANGE.std
        if kind == "random_walk":
            current = current + d
        elif kind == "drift_pos":
            current = current + abs(d)
        elif kind == "drift_neg":
            current = current - abs(d)
        elif kind == "cyclic_pos":
            current = current + abs(d)
            if current >= RANGE.max:
                current = RANGE.start
        elif kind == "cyclic_neg":
            current = current - abs(d)
            if current <= RANGE.min:
                current = RANGE.start
        elif kind == "uniform":
            current = uniform * (RANGE.max - RANGE.min) + RANGE.min
        elif kind == "saw_wave":
            current = current + direction * abs(d)
            if current >= RANGE.max or current <= RANGE.min:
                direction = -direction
        else:
            assert kind == "constant"
        current = float(np.clip(current, RANGE.min, RANGE.max))
        path.append(current)
    return path


DRIFTS = [name for name, named in SCHEDULES.items() if named.cls is Drift]


def test_all_eight_schedulers_are_there() -> None:
    assert sorted(DRIFTS) == sorted(
        [
            *("constant", "random_walk", "uniform", "saw_wave"),
            *("drift_pos", "drift_neg", "cyclic_pos", "cyclic_neg"),
        ]
    )


@pytest.mark.parametrize("kind", DRIFTS)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_thousand_samples_equal_the_equations(kind: str, seed: int) -> None:
    drift = Drift(kind)
    levels = [drift.level(k, RANGE, seed) for k in range(1, N_LEVELS + 1)]
    np.testing.assert_allclose(levels, equations(kind, seed), rtol=1e-12)


@pytest.mark.parametrize("kind", DRIFTS)
def test_levels_stay_in_bounds_and_do_not_depend_on_the_order_asked(kind: str) -> None:
    drift = Drift(kind)
    late = drift.level(1500, RANGE, seed=3)
    levels = [drift.level(k, RANGE, seed=3) for k in range(1, 2000)]
    assert levels[1499] == late
    assert min(levels) >= RANGE.min and max(levels) <= RANGE.max


def test_cycle_length_of_walker_damping() -> None:
    """0.1 to 10 in half-normal steps of 0.5: a cycle takes about 26 samples."""
    drift, damping = Drift("cyclic_pos"), Range(0.1, 0.1, 10.0, 0.5)
    resets = [
        sum(drift.level(k, damping, seed) == damping.start for k in range(1, 2001))
        for seed in range(5)
    ]
    assert 2000 / np.mean(resets) == pytest.approx(25.6, abs=1.0)


def test_first_sample_comes_at_the_shift_frame() -> None:
    drift = Drift("drift_neg", shift_frame=40_000, draw_frames=1000)
    assert drift.segment(39_999) == 0
    assert drift.segment(40_000) == 1 and drift.segment(40_999) == 1
    assert drift.segment(41_000) == 2
    assert drift.level(1, RANGE, seed=0) < RANGE.start


def test_levels_are_sampled_when_the_worlds_reset() -> None:
    """Four worlds of 1,000 frames: every 4,000, the first not before the shift."""
    drift = Drift("drift_neg", shift_frame=240_000).on_clock(4_000)
    frames = [0, 239_999, 240_000, 243_999, 244_000, 329_999]
    assert [drift.segment(frame) for frame in frames] == [0, 0, 1, 1, 2, 23]
    late = Drift("drift_neg", shift_frame=241_000).on_clock(4_000)
    assert late.segment(243_999) == 0 and late.segment(244_000) == 1
    fixed = Drift("drift_neg", shift_frame=241_000, draw_frames=500)
    assert fixed.on_clock(4_000) == fixed
    assert Recurring().on_clock(4_000) == Recurring()


def test_friction_reaches_the_floor_near_a_branchs_end() -> None:
    """The suite's steps, 18 samples on average, one in 4,000 frames from 40k on."""
    friction, reached = Range(0.7, 0.01, 2.0, 0.05), []
    drift = Drift("drift_neg", shift_frame=40_000).on_clock(4_000)
    for seed in range(200):
        sample = next(k for k in range(1, 99) if drift.level(k, friction, seed) == 0.01)
        reached.append(40_000 + 4_000 * (sample - 1))
    assert np.mean(reached) == pytest.approx(108_000, abs=3_000)


def test_switches_at_hand_computed_frames() -> None:
    recurring = Recurring(shift_frame=40_000, period_frames=20_000)
    frames = [0, 39_999, 40_000, 59_999, 60_000, 79_999, 80_000]
    regimes = [recurring.regime(recurring.segment(frame)) for frame in frames]
    assert regimes == [0, 0, 1, 1, 0, 0, 1]  # reduced first
    permanent = Permanent(shift_frame=10)
    assert [permanent.regime(permanent.segment(f)) for f in (9, 10, 10**9)] == [0, 1, 1]
    assert Never().regime(Never().segment(10**9)) == 0


def test_five_evaluations_reduced_and_four_original() -> None:
    """The protocol's nine evaluations under the paper's recurring condition."""
    recurring = Recurring()
    evaluations = range(45_000, 125_001, 10_000)
    regimes = [recurring.regime(recurring.segment(frame)) for frame in evaluations]
    assert (regimes.count(1), regimes.count(0)) == (5, 4)


schedules = st.one_of(
    st.just(Never()),
    st.builds(Permanent, st.integers(0, 10_000)),
    st.builds(Recurring, st.integers(0, 10_000), st.integers(1, 5_000)),
    st.builds(Drift, st.just("uniform"), st.integers(0, 10_000), st.integers(1, 5_000)),
)


@given(schedules, st.integers(0, 50_000))
def test_a_segment_ends_exactly_where_the_next_begins(schedule, frame: int) -> None:
    end = schedule.segment_end(frame)
    assert end > frame
    if np.isfinite(end):
        assert schedule.segment(int(end)) == schedule.segment(frame) + 1
        assert schedule.segment(int(end) - 1) == schedule.segment(frame)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Recurring(period_frames=0), "period_frames is 0"),
        (lambda: Recurring(period_frames=-5), "period_frames is -5"),
        (lambda: Permanent(shift_frame=-1), "shift_frame is -1"),
        (lambda: Permanent(shift_frame=1.5), "whole number"),
        (lambda: Drift("uniform", std=-0.1), "std is -0.1"),
        (lambda: Drift("uniform", min=float("nan")), "min is nan"),
        (lambda: Drift("uniform", draw_frames=0), "draw_frames is 0"),
        (lambda: Drift("uniform", start=3.0).range(RANGE), "outside"),
    ],
)
def test_impossible_numbers_are_named(make, message: str) -> None:
    with pytest.raises(FallowError, match=message):
        make()
