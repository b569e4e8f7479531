"""Abrupt changes, the table of actuators and the advice, on logs with known truth."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fallow.diagnosis import VARIANTS, Example, example
from fallow.diagnosis.changes import SMALL_EFFECT, ResponseChange, relative_change
from fallow.diagnosis.loss import magnitude
from fallow.diagnosis.phrases import advice
from fallow.diagnosis.pipeline import Diagnosis, diagnose_log
from fallow.diagnosis.recommendation import (
    MOST_LOST,
    by_response,
    drift,
    recommendation,
    state,
)
from fallow.diagnosis.regimes import SeenRegime
from fallow.logs.log import Log

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
DEAD = Example((1.0, 0.0), (40,), n_joints=6, damaged_joint=3)
ARM = Example((1.0, 0.99, 1.0), (13, 18), 40, 3000, n_joints=1, amplitude_drift=0.0)
"""A precise robot, whose K moves by 1 %."""
LEARNS = Example((1.0,), (), n_episodes=150, drag=0.5, feedback=0.8)


def changed(diagnosis: Diagnosis) -> list[int]:
    return [joint.index for joint in diagnosis.joints if joint.changed]


def places(diagnosis: Diagnosis) -> list[int]:
    return [change.episode for change in diagnosis.changes]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("joint", [0, 5])
@pytest.mark.parametrize("at", [20, 40, 60])
def test_one_dead_motor_of_six_is_named(joint: int, at: int, seed: int) -> None:
    """Also where both regimes are as long, and the published segmentation fails."""
    truth = replace(DEAD, damaged_joint=joint, change_points=(at,), n_episodes=80)
    found = diagnose_log(example(truth, seed))
    assert places(found) == [at] and joint in changed(found)
    row = found.joints[joint]
    assert row.lost == pytest.approx(1, abs=0.02) and row.episode == at
    low, high = row.interval
    assert low < 1.01 and high > 0.99 and high - low < 0.1
    assert found.decision.word == "keep" and by_response(found) == "check"
    words = advice(replace(found, uses_tracker=False))
    assert f"actuator {joint} (joint {joint}) lost" in words
    assert "The paper's selector says keep" in words


def test_joints_are_compared_at_their_last_change() -> None:
    """One joint dies at 30, another at 60: each has its K before and now."""
    first = example(replace(DEAD, damaged_joint=0, change_points=(30,)))
    second = example(replace(DEAD, damaged_joint=4, change_points=(60,)))
    velocity = first.velocity.copy()
    velocity[:, 4] = second.velocity[:, 4]
    action = first.action.copy()
    action[:, 4] = second.action[:, 4]
    found = diagnose_log(
        replace(first, velocity=velocity, action=action, regime=None, gain=None)
    )
    assert places(found) == [30, 60] and changed(found) == [0, 4]
    for index, at in ((0, 30), (4, 60)):
        row = found.joints[index]
        assert row.episode == at and row.lost == pytest.approx(1, abs=0.02)
    assert found.joints[1].lost == pytest.approx(0, abs=0.05)
    assert [s.stale for s in found.stretches] == [True, True, False]
    k = found.decision.response.joint
    assert found.joints[0].before == np.median(k[:30, 0])
    assert found.joints[0].now == np.median(k[30:, 0])
    assert found.joints[4].before == np.median(k[:60, 4])
    assert found.joints[0].lost == magnitude(k[30:, 0], k[:30, 0])


@pytest.mark.parametrize("seed", range(4))
def test_a_step_of_one_percent_is_no_change(seed: int) -> None:
    found = diagnose_log(example(ARM, seed), tracker=False)
    assert found.decision.change_points  # the published segmentation sees it
    assert places(found) == [] and changed(found) == []
    assert recommendation(found) == "keep" and drift(found) < SMALL_EFFECT
    assert advice(found).startswith(
        "Keep the old data: the actuator response did not change in 40 episodes."
    )


def test_effects_are_stated_for_every_boundary() -> None:
    found = diagnose_log(example(Example((1.0, 0.5, 1.0), (40, 60))))
    assert places(found) == [40, 60]
    down, up = (change.effect for change in found.changes)
    np.testing.assert_allclose(down, -0.5, atol=0.06)
    np.testing.assert_allclose(up, 0.5, atol=0.06)
    assert [s.stale for s in found.stretches] == [False, True, False]
    assert "is back where it was at first" in advice(found)
    assert by_response(found) == "keep"


def test_relative_change_by_hand() -> None:
    before, after = np.array([2.0, 1, 0, 0, 1, np.nan]), np.array([1.0, 2, 0, 3, -1, 1])
    expected = [-0.5, 0.5, 0, 1, -2, np.nan]
    np.testing.assert_allclose(relative_change(before, after), expected)


@pytest.mark.parametrize(
    ("before", "after", "z", "abrupt"),
    [
        (1.0, 0.5, 8, True),
        (1.0, 0.5, 6, False),
        (1.0, 0.96, 8, False),  # too small an effect
        (1.0, 0.0, 6, True),  # a joint that dies
        (0.0, 1.0, 6, True),  # and comes back
        (1.0, 0.0, 4, False),
    ],
)
def test_what_is_abrupt(before: float, after: float, z: float, abrupt: bool) -> None:
    """Eight episodes on either side with means `z` standard errors apart."""
    wave = np.array([-1.0, 1] * 4)[:, None]
    error = np.sqrt(2 * wave.var(ddof=1) / 8)
    wave *= abs(after - before) / (z * error)
    change = ResponseChange(8, before + wave, after + wave)
    assert change.z == pytest.approx(z) and change.abrupt == abrupt
    assert change.effect == pytest.approx((after - before) / max(before, after))
    assert change.changed.tolist() == [abrupt]


def test_recurring_bodies_alternate() -> None:
    found = diagnose_log(example(Example((1.0, 0.5) * 3, (40, 60, 80, 100, 120), 140)))
    assert places(found) == [40, 60, 80, 100, 120]
    assert [s.stale for s in found.stretches] == [True, False] * 3
    assert by_response(found) == "keep"


@pytest.mark.parametrize("seed", range(4))
def test_a_policy_that_learns_is_drift_and_not_a_change(seed: int) -> None:
    """The selector discards here although nothing happened to the body."""
    found = diagnose_log(example(LEARNS, seed), tracker=False)
    assert found.decision.discard and places(found) == []
    assert recommendation(found) == "check" and drift(found) > 0.5
    words = advice(found)
    assert words.startswith("Check before you decide: the actuator response did not")
    assert "moved gradually" in words and "selector says discard" in words


def test_unchanged_bodies_have_no_abrupt_change() -> None:
    """60 histories, 6,000 episodes; the amplitude of the policy drifts."""
    truth = Example((1.0,), (), n_steps=40, n_joints=6)
    found = [diagnose_log(example(truth, seed)) for seed in range(60)]
    assert sum(len(places(one)) for one in found) == 0


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 1000),
    st.lists(st.floats(0.01, 100), min_size=3, max_size=3),
    st.permutations(range(3)),
)
def test_units_and_order_of_joints_do_not_matter(
    seed: int, factors: list[float], order: list[int]
) -> None:
    log = example(Example((1.0, 0.4), (15,), 30, 30, damaged_joint=1), seed)
    other = replace(
        log,
        velocity=(log.velocity * factors)[:, order],
        action=log.action[:, order],
        actuators=tuple(log.actuators[j] for j in order),
        gain=None,
        regime=None,
    )
    first, second = diagnose_log(log), diagnose_log(other)
    assert places(first) == places(second)
    for joint in second.joints:
        same = first.joints[order[joint.index]]
        assert joint.name == same.name and joint.changed == same.changed
        assert joint.lost == pytest.approx(same.lost, rel=1e-6, abs=1e-9)


def test_the_interval_of_a_joint_covers_its_response() -> None:
    """The claim that is displayed, on 144 histories of six policies.

    Histories of one policy differ in noise only, so all of them together say what the
    response of its episodes is.
    """
    truth = Example((1.0, 0.5), (20,), 40, 30)
    hits = []
    for policy in range(6):
        found = [diagnose_log(example(truth, policy, noise)) for noise in range(24)]
        pooled = np.stack([one.decision.response.joint for one in found])
        for one in found:
            for joint in one.joints:
                k = pooled[:, :, joint.index]
                expected = magnitude(k[:, 20:].ravel(), k[:, :20].ravel())
                low, high = joint.interval
                hits.append(low <= expected <= high)
    assert len(hits) == 432 and np.mean(hits) >= 0.93


def negated(log: Log, joints: list[int], start: int) -> Log:
    """The log with velocities of some joints negated from an episode on."""
    velocity = log.velocity.copy()
    velocity[np.cumsum(log.n_transitions + 1)[start - 1] :, joints] *= -1
    return replace(log, velocity=velocity)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("joints", [[0], [0, 2], [0, 1, 2]])
def test_a_response_that_changes_its_sign(joints: list[int], variant: str) -> None:
    """A reversed actuator, or a wrong column: to be checked, whatever the mean does."""
    log = negated(example(Example((1.0,), (), n_episodes=60)), joints, 30)
    found = diagnose_log(log, variant)
    states = ["changed its sign" if joint in joints else "" for joint in range(3)]
    assert [state(joint) for joint in found.joints] == states
    assert recommendation(found) == "check"
    for joint in joints:
        assert f"actuator {joint} (joint {joint}) changed its sign" in advice(found)
    assert "is reversed, if a column is wrong (--velocity, --action)" in advice(found)
    if len(joints) == 3:  # every K is negated, so twice of it was lost
        assert found.decision.magnitude.value == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize(
    ("low", "explained", "word"),
    [(0.4, True, "discard"), (-0.1, True, "check"), (0.4, False, "check")],
)
def test_a_policy_can_change_the_sign_of_a_response(
    low: float, explained: bool, word: str
) -> None:
    """The tracker's gain says whether the actuator still pushes the same way."""
    found = diagnose_log(negated(example(Example((1.0,), (), n_episodes=60)), [1], 30))
    assert found.regimes is not None and found.regimes.in_force == 1
    gain = np.full(3, 0.5)
    regime = SeenRegime(1, gain, gain - 0.5 + low, gain + 0.1, explained=explained)
    seen = (found.regimes.seen[0], regime)
    vars(found)["regimes"] = replace(found.regimes, seen=seen)
    assert recommendation(found) == word


@pytest.mark.parametrize("n_joints", [1, 2, 6])
@pytest.mark.parametrize("seed", range(5))
def test_dead_actuators_are_no_error(n_joints: int, seed: int) -> None:
    """All of the response is lost: m_hat is near 1, on either side of it."""
    found = diagnose_log(example(Example((1.0, 0.0), (40,), n_joints=n_joints), seed))
    assert 0.95 < found.decision.magnitude.value <= MOST_LOST
    assert by_response(found) == "discard"
    assert {state(joint) for joint in found.joints} == {"changed"}


def test_an_actuator_that_comes_back_has_no_ratio() -> None:
    found = diagnose_log(example(Example((0.0, 1.0), (40,), n_joints=1, n_steps=400)))
    joint = found.joints[0]
    assert joint.changed and joint.lost is None and joint.interval is None
    assert found.decision.magnitude.value is None and found.decision.word == "keep"
    assert "actuator 0 (joint 0) responds again" in advice(found)


def test_joints_that_are_never_commanded_have_no_row_of_numbers() -> None:
    log = example(replace(DEAD, n_joints=3, damaged_joint=0))
    action = log.action.copy()
    action[:, 2] = 0
    found = diagnose_log(replace(log, action=action))
    assert changed(found) == [0]
    silent = found.joints[2]
    assert silent.before is silent.now is silent.lost is silent.interval is None
    assert state(silent) == "not commanded"


BRAKES = replace(LEARNS, feedback=-0.8, gains=(1.0, 0.5), change_points=(40,))


@pytest.mark.parametrize(
    ("truth", "word"),
    [
        (Example((1.0, 0.5, 1.0), (20, 30), 40), "discard"),
        (replace(BRAKES, n_episodes=60), "discard"),  # where K sees nothing
        (replace(LEARNS, n_episodes=60), "check"),  # where K sees a change
        (replace(DEAD, change_points=(20,), n_episodes=32), "discard"),
        (Example((1.0,), (), 30), "keep"),
    ],
)
def test_the_verdict_rests_on_the_tracker(truth: Example, word: str) -> None:
    """The episodes to keep are those of the regime in force, as the truth has them."""
    log = example(truth)
    found = diagnose_log(log)
    np.testing.assert_array_equal(found.regimes.labels, log.regime)
    assert recommendation(found) == word
    kept = np.concatenate([np.arange(*span) for span in found.regimes.keep])
    np.testing.assert_array_equal(kept, np.flatnonzero(log.regime == log.regime[-1]))
    last = found.regimes.regime(found.regimes.in_force)
    assert ((last.low <= log.gain[-1]) & (log.gain[-1] <= last.high)).all()
    if word == "discard":
        assert advice(found).startswith("Keep episodes ")


def test_a_log_too_short_for_the_tracker_falls_back_on_the_response() -> None:
    log = example(Example((1.0, 0.3), (5,), 10, 15))  # 15 steps are too few to track
    found = diagnose_log(log)
    assert not found.regimes.is_ready
    assert recommendation(found) == by_response(found) == "discard"
    assert "needs 8 usable episodes" in advice(found)
    assert "rests on the response alone" in advice(found)


def test_the_tracker_overrules_a_selector_that_takes_a_policy_for_a_body() -> None:
    found = diagnose_log(example(LEARNS))
    assert by_response(found) == "check" and recommendation(found) == "keep"
    words = advice(found)
    assert words.startswith("Keep the old data: the actuator response did not change")
    assert "The tracker sees one regime in 150 episodes." in words
    assert "selector says discard" in words
