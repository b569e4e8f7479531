"""Decisions on generated histories whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from fallow.core.errors import FallowError
from fallow.diagnosis import VARIANTS, Example, decide, example
from fallow.diagnosis.decision import AUC_GATE, MAGNITUDE_GATE, Gate
from fallow.diagnosis.phrases import advice
from fallow.diagnosis.pipeline import diagnose_log
from fallow.diagnosis.truth import truth_of
from fallow.logs.log import Log

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
RECURRING = Example((1.0, 0.5, 1.0, 0.5), (40, 60, 80))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(3))
def test_a_permanent_loss_is_discarded(variant: str, seed: int) -> None:
    decision = decide(example(seed=seed), variant)
    assert decision.change_points == (40,)
    assert decision.stale.tolist() == [True] * 40 + [False] * 60
    assert decision.auc.value == 1.0
    assert decision.magnitude.value == pytest.approx(0.5, abs=0.03)
    low, high = decision.interval
    assert low < decision.magnitude.value < high
    assert (decision.word, decision.rule) == ("discard", "recency")


@pytest.mark.parametrize("seed", range(5))
def test_no_change_is_kept(seed: int) -> None:
    decision = decide(example(Example((1.0,), ()), seed))
    assert decision.change_points == ()
    assert decision.auc.value is None and decision.magnitude.value is None
    assert not decision.stale.any() and decision.word == "keep"
    assert decision.interval is None and not decision.near


@pytest.mark.parametrize("gain", [0.7, 0.9])
def test_a_small_loss_is_found_and_kept(gain: float) -> None:
    decision = decide(example(Example((1.0, gain), (40,))))
    assert decision.change_points == (40,)
    assert decision.auc.passed and not decision.magnitude.passed
    assert decision.magnitude.value == pytest.approx(1 - gain, abs=0.03)
    assert decision.word == "keep"


def test_a_body_that_comes_and_goes_is_kept() -> None:
    decision = decide(example(RECURRING))
    assert decision.change_points == (40, 60, 80)
    assert [s.stale for s in decision.segments] == [True, False, True, False]
    # 40 old and 20 newer stale episodes against 20 and 20 fresh ones
    pairs = 40 * (20 + 20) + 20 * 20
    assert decision.auc.value == pytest.approx(pairs / (60 * 40))
    assert decision.magnitude.passed and not decision.auc.passed
    assert decision.word == "keep"


def test_a_body_that_is_back_is_kept() -> None:
    decision = decide(example(Example((1.0, 0.5, 1.0), (40, 60))))
    assert [s.stale for s in decision.segments] == [False, True, False]
    assert decision.magnitude.value == pytest.approx(-1, abs=0.1)
    assert decision.word == "keep"


def test_damage_shows_in_its_joint_and_hides_in_the_mean() -> None:
    truth = Example((1.0, 0.0), (40,), n_joints=6, damaged_joint=1)
    decision = decide(example(truth))
    assert decision.change_points == (40,)
    assert decision.magnitude.value == pytest.approx(1 / 6, abs=0.02)
    assert decision.word == "keep"


def test_a_policy_that_changes_is_taken_for_a_body_that_does() -> None:
    """The estimator's weakness, on record: K is response, not gain.

    Nothing happens to this body; the policy comes to push along with the velocity.
    """
    truth = Example((1.0,), (), n_episodes=150, drag=0.5, feedback=0.8)
    assert all(decide(example(truth, seed)).discard for seed in range(5))


def test_stale_is_a_matter_of_the_mean_or_of_any_joint() -> None:
    """Two joints change in opposite directions: the mean does not, each joint does."""
    log = example(Example((1.0, 1.0), (40,), n_joints=2, n_steps=400))
    velocity = log.velocity.copy()
    after = np.cumsum(log.n_transitions + 1)[39]
    velocity[after:] *= (0.9, 1.1)
    log = replace(log, velocity=velocity)
    by_mean, by_any = decide(log), decide(log, stale_by="any_joint")
    assert by_mean.change_points == by_any.change_points == (40,)
    assert not by_mean.stale.any() and by_mean.auc.value is None
    assert by_any.stale.tolist() == [True] * 40 + [False] * 60
    assert by_any.auc.value == 1.0 and by_any.word == "keep"
    k = by_mean.response
    for decision, series in ((by_mean, k.mean[:, None]), (by_any, k.joint)):
        z = stats.ttest_ind(series[:40], series[40:], equal_var=False).statistic
        assert decision.segments[0].z == pytest.approx(np.abs(z).max())
    with pytest.raises(FallowError, match="unknown stale_by 'joint'"):
        decide(log, stale_by="joint")


@pytest.mark.parametrize("variant", ["mean", "large"])
def test_one_channel_has_one_reading_of_stale(variant: str) -> None:
    log = example(RECURRING)
    first = decide(log, variant)
    assert first.segments == decide(log, variant, stale_by="any_joint").segments


def test_auc_counts_transitions_not_episodes() -> None:
    """Against scikit-learn, with episodes of unequal length."""
    log = example(RECURRING)
    short = np.arange(100) % 3 == 0
    n_transitions = np.where(short, 40, 100)
    velocity = np.concatenate(
        [log.velocity[101 * e : 101 * e + n + 1] for e, n in enumerate(n_transitions)]
    )
    action = np.concatenate(
        [log.action[100 * e : 100 * e + n] for e, n in enumerate(n_transitions)]
    )
    cut = replace(
        log,
        velocity=velocity,
        action=action,
        n_transitions=n_transitions,
        start_step=np.cumsum(n_transitions) - n_transitions,
    )
    decision = decide(cut)
    assert decision.change_points == (40, 60, 80)
    stale = np.repeat(decision.stale, n_transitions)
    age = np.arange(len(stale))[::-1]
    assert decision.auc.value == pytest.approx(roc_auc_score(stale, age), abs=1e-12)


@pytest.mark.parametrize("truth", [Example(), RECURRING, Example((1.0,), ())])
def test_the_regime_is_never_read(truth: Example) -> None:
    log = example(truth)
    blind = replace(log, regime=None, gain=None)
    lying = replace(log, regime=log.regime[::-1], gain=log.gain * 0)
    assert diagnose_log(blind).truth is None
    for other in (blind, lying):
        assert_same(log, other)


def assert_same(log: Log, other: Log) -> None:
    first, second = decide(log), decide(other)
    assert first.segments == second.segments
    assert first.auc == second.auc and first.magnitude == second.magnitude
    assert first.interval == second.interval and first.word == second.word


def test_truth_beside_the_estimate() -> None:
    truth = truth_of(example())
    assert truth.change_points == (40,)
    assert truth.auc == 1.0 and truth.magnitude == 0.5
    recurring = truth_of(example(RECURRING))
    assert recurring.change_points == (40, 60, 80)
    assert recurring.auc == pytest.approx((40 * 40 + 20 * 20) / (60 * 40))
    damage = Example((1.0, 0.0), (40,), n_joints=6, damaged_joint=1)
    assert truth_of(example(damage)).magnitude == pytest.approx(1 / 6)
    unchanged = truth_of(example(Example((1.0,), ())))
    assert unchanged.auc is None and unchanged.magnitude is None
    back = truth_of(example(Example((1.0, 0.0, 1.0), (40, 60))))
    assert back.change_points == (40, 60) and back.magnitude is None  # from no gain


def test_gates_are_at_the_thresholds_of_the_paper() -> None:
    assert (AUC_GATE, MAGNITUDE_GATE) == (0.87, 0.40)
    assert Gate("AUC", 0.87, 0.87).passed and not Gate("AUC", 0.8699, 0.87).passed
    assert not Gate("AUC", None, 0.87).passed
    assert Gate("AUC", 0.9, 0.87).margin == pytest.approx(0.03)


def test_a_close_call_says_so() -> None:
    near = diagnose_log(example(Example((1.0, 0.6), (40,), n_steps=40)), tracker=False)
    assert near.decision.near and 0 < near.decision.share_beyond < 1
    assert "close call: m_hat passes its gate in" in advice(near)
    recurring = diagnose_log(example(RECURRING), tracker=False)
    assert recurring.decision.near
    assert advice(recurring).endswith("close call: the AUC is 0.83, its gate 0.87.")
    clear = diagnose_log(example(), tracker=False)
    assert not clear.decision.near and clear.decision.share_beyond == 1
    assert "close" not in advice(clear)


def test_scale_changes_the_result_and_is_kept() -> None:
    """Two balanced regimes, as the estimator's specification measured."""
    truth = Example((1.0, 0.5) * 4, tuple(range(20, 160, 20)), n_episodes=160)
    plain = decide(example(truth))
    normal = decide(example(truth), scale="mad_normal")
    assert len(plain.change_points) == 7
    assert len(normal.change_points) < 7
    assert (plain.scale, normal.scale) == ("mad", "mad_normal")


def test_the_generator_is_reproducible_and_checked() -> None:
    np.testing.assert_array_equal(example(seed=3).velocity, example(seed=3).velocity)
    assert (example(seed=3).action != example(seed=4).action).any()
    with pytest.raises(FallowError, match="give one gain more"):
        Example((1.0,), (40,))
