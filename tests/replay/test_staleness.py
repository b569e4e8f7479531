"""Staleness: hand-computed AUCs, scikit-learn as oracle, laws, and the protocol."""

from itertools import repeat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from fallow.core.errors import FallowError
from fallow.dynamics.schedules import Never, Permanent, Recurring, Schedule
from fallow.dynamics.tasks import ACTION_REPEAT
from fallow.replay.staleness import (
    Timeline,
    age_auc,
    auc_at,
    interval_auc,
    is_stale,
    mean_auc,
)

TRUNK_FRAMES = 200_000
BRANCH_FRAMES = 130_000
EVALUATION_FRAMES = np.arange(45_000, 125_001, 10_000)  # after the branch point
EPISODE_TRANSITIONS = 500

transitions = st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1)
intervals = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 9), st.booleans()), min_size=1
)


def columns(rows: list) -> list[np.ndarray]:
    return [np.array(column) for column in zip(*rows, strict=True)]


def oracle(age: np.ndarray, stale: np.ndarray) -> float | None:
    """scikit-learn's area under the curve; it has no value for one kind alone."""
    return None if stale.all() or not stale.any() else roc_auc_score(stale, age)


def assert_auc(found: float | None, expected: float | None) -> None:
    if expected is None:
        assert found is None
    else:
        assert found == pytest.approx(expected, abs=1e-12)


def regime_at(schedule: Schedule, frame: int) -> int:
    """On the clock of the whole run; the schedule reads the branch's."""
    if frame < TRUNK_FRAMES:
        return 0
    regime = schedule.regime(schedule.segment(frame - TRUNK_FRAMES))
    assert regime is not None
    return regime


def run(schedule: Schedule, n_worlds: int) -> Timeline:
    """The episodes of trunk and branch; a step is `n_worlds` x 2 frames."""
    step_frames = n_worlds * ACTION_REPEAT
    n_rounds = (TRUNK_FRAMES + BRANCH_FRAMES) // (step_frames * EPISODE_TRANSITIONS)
    start_step = np.repeat(np.arange(n_rounds) * EPISODE_TRANSITIONS, n_worlds)
    end_step = start_step + EPISODE_TRANSITIONS
    label = [regime_at(schedule, (end - 1) * step_frames) for end in end_step.tolist()]
    return Timeline(start_step, end_step, np.array(label))


def protocol_auc(schedule: Schedule, n_worlds: int) -> float | None:
    frames = TRUNK_FRAMES + EVALUATION_FRAMES
    regimes = [regime_at(schedule, int(frame)) for frame in frames]
    steps = frames // (n_worlds * ACTION_REPEAT)
    timeline = run(schedule, n_worlds)
    return mean_auc(map(auc_at, repeat(timeline), steps.tolist(), regimes))


@pytest.mark.parametrize("n_worlds", [1, 4])
@pytest.mark.parametrize(
    ("period_frames", "auc"),
    [(10_000, 0.55), (20_000, 0.56), (40_000, 0.58), (60_000, 0.69), (80_000, 0.89)],
)
def test_recurring_changes_of_the_protocol(period_frames, auc, n_worlds) -> None:
    found = protocol_auc(Recurring(period_frames=period_frames), n_worlds)
    assert found == pytest.approx(auc, abs=0.01 if period_frames == 20_000 else 0.015)


@pytest.mark.parametrize("n_worlds", [1, 4])
def test_age_alone_shows_a_permanent_change(n_worlds) -> None:
    assert protocol_auc(Permanent(), n_worlds) == 1.0
    assert protocol_auc(Never(), n_worlds) is None


def test_the_trunk_has_two_hundred_episodes_in_either_set_up() -> None:
    for n_worlds in (1, 4):
        end_frame = run(Never(), n_worlds).end_step * n_worlds * ACTION_REPEAT
        assert (end_frame <= TRUNK_FRAMES).sum() == 200


def test_hand_computed_numbers() -> None:
    # stale ages 4, 2 against fresh 2, 1, 3: wins 3 and 1, one tie
    assert age_auc([4, 2, 2, 1, 3], [1, 1, 0, 0, 0]) == 4.5 / 6
    # 2 stale before 3 + 1 fresh, 4 stale before 1: (2 x 4 + 4 x 1) / (6 x 4)
    end = np.cumsum([2, 3, 4, 1])
    assert interval_auc([0, *end[:-1]], end, [True, False, True, False]) == 0.5
    # stale at 0, 1, 2, 3 and fresh at 2, 3, 4: 3 + 3 + 2.5 + 1.5
    assert interval_auc([0, 2], [4, 5], [True, False]) == 10 / 12


@given(transitions)
def test_age_auc_equals_scikit_learn(rows) -> None:
    age, stale = columns(rows)
    assert_auc(age_auc(age, stale), oracle(age, stale))
    assert_auc(age_auc(age / 7, stale), oracle(age / 7, stale))


def test_many_transitions_equal_scikit_learn(random) -> None:
    for n_ages in (3, 100, 10**9):
        age, stale = random.integers(n_ages, size=20_000), random.random(20_000) < 0.3
        assert_auc(age_auc(age, stale), roc_auc_score(stale, age))


@given(intervals)
def test_intervals_equal_their_transitions(rows) -> None:
    start, length, stale = columns(rows)
    stored = [np.arange(s, s + n) for s, n in zip(start, length, strict=True)]
    age, expanded = -np.concatenate(stored), np.repeat(stale, length)
    found = interval_auc(start, start + length, stale)
    assert found == age_auc(age, expanded)
    assert_auc(found, oracle(age, expanded))


@given(intervals, st.integers(0, 40), st.booleans())
def test_a_history_cut_at_a_step_equals_its_transitions(rows, step, now) -> None:
    start, length, label = columns(rows)
    stored, stale = [], []
    for first, n, regime in zip(start, length, label, strict=True):
        steps = [s for s in range(first, first + n) if s < step]
        stored += steps
        stale += [first + n <= step and regime != now] * len(steps)
    timeline = Timeline(start, start + length, label.astype(int))
    age = step - np.array(stored, int)
    assert auc_at(timeline, step, int(now)) == age_auc(age, stale)


@given(transitions, st.randoms())
def test_order_does_not_matter_and_opposite_labels_add_to_one(rows, random) -> None:
    age, stale = columns(rows)
    auc = age_auc(age, stale)
    opposite = age_auc(age, ~stale)
    assert_auc(opposite, None if auc is None else 1 - auc)
    random.shuffle(rows)
    assert age_auc(*columns(rows)) == auc


def test_the_ends_of_the_scale_and_what_is_undefined() -> None:
    stale = np.arange(100) < 40
    assert age_auc(100 - np.arange(100), stale) == 1
    assert age_auc(np.arange(100), stale) == 0
    assert age_auc(np.zeros(100), stale) == 0.5
    assert age_auc(np.arange(100), np.ones(100, bool)) is None
    assert age_auc([], []) is None
    assert interval_auc([0, 3], [3, 7], [False, False]) is None
    assert interval_auc([], [], []) is None


def test_a_billion_transitions_cost_no_more_than_their_segments() -> None:
    assert interval_auc([0, 2**31], [2**31, 2**32 - 1], [True, False]) == 1
    assert interval_auc([0, 0], [10**9, 10**9], [True, False]) == 0.5


def test_labels() -> None:
    np.testing.assert_array_equal(is_stale([0, 1, 2], 1), [True, False, True])


def test_a_running_episode_is_fresh_and_an_ended_one_keeps_its_regime() -> None:
    timeline = Timeline(np.array([0, 10]), np.array([10, 20]), np.array([0, 0]))
    assert auc_at(timeline, 15, regime_now=1) == 1
    assert auc_at(timeline, 20, regime_now=1) is None
    assert auc_at(timeline, 10, regime_now=1) is None


def test_averages_leave_out_what_is_undefined() -> None:
    assert mean_auc([0.5, None, 1.0]) == 0.75
    assert mean_auc([None, None]) is None and mean_auc([]) is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: age_auc([1.0, np.nan], [0, 1]), "age holds nan"),
        (lambda: age_auc(["old"], [0]), "age is \\['old'\\]"),
        (lambda: age_auc([1, 2], [0, 2]), "stale is \\[0, 2\\]"),
        (lambda: age_auc([1, 2], [True]), "stale has 1 entries and must have 2"),
        (lambda: interval_auc([3], [3], [0]), "holds 0; a segment has 1"),
        (lambda: interval_auc([1.5], [2], [0]), "start_step is \\[1.5\\]"),
        (lambda: interval_auc([0], [2**40], [0]), "at most 4294967295"),
        (lambda: interval_auc([5], [3], [0]), "end_step - start_step holds -2"),
        (lambda: interval_auc([5], [6, 7], [0]), "end_step has 2 entries"),
        (lambda: Timeline(*np.array([[0], [9], [-1]])), "label holds -1"),
        (lambda: is_stale([0], -1), "regime_now holds -1"),
    ],
)
def test_impossible_values_are_named(call, message: str) -> None:
    with pytest.raises(FallowError, match=message):
        call()
