"""The tracker on small bodies with known truth, and the laws it must keep."""

import numpy as np
import pytest
from small_body import DEAD, FULL, HALF, N_STEPS, SMALL, STEP_S, episode, run
from threadpoolctl import threadpool_info, threadpool_limits

from fallow.core.errors import FallowError
from fallow.tracking import (
    Tracker,
    TrackerConfig,
    TrackerUpdate,
    decision,
    read_tracker,
    write_tracker,
)
from fallow.tracking.body import BodyModel
from fallow.tracking.evidence import Evidence
from fallow.tracking.features import Design
from fallow.tracking.hypotheses import Explanation, explain
from fallow.tracking.one_thread import one_blas_thread
from fallow.tracking.regimes import KnownRegime, mismatch

RECURRING = [FULL] * 20 + [HALF] * 12 + [FULL] * 12 + [HALF] * 12


@pytest.fixture(scope="module")
def recurring() -> tuple[Tracker, list[TrackerUpdate]]:
    return run(RECURRING)


def test_an_unchanged_body_raises_no_alarm() -> None:
    tracker, updates = run([FULL] * 80)
    assert {u.state for u in updates[8:]} <= {"settled", "suspicious"}
    assert tracker.labels().tolist() == [0] * 80


def test_memory_does_not_grow_with_episodes() -> None:
    tracker, sizes = Tracker(3, STEP_S, SMALL), []
    for i in range(60):
        tracker.update(*episode(i, FULL))
        saved = tracker.save()
        names = [name for name in saved if not name.startswith(("header", "part"))]
        sizes.append(sum(saved[n].nbytes for n in names if n != "labels"))
    assert sizes[-1] == sizes[10]
    assert len(saved["labels"]) == 60


def test_a_returning_regime_has_its_id(
    recurring: tuple[Tracker, list[TrackerUpdate]],
) -> None:
    tracker, updates = recurring
    truth = [0] * 20 + [1] * 12 + [0] * 12 + [1] * 12
    assert tracker.labels().tolist() == truth
    changes = [u.episode for u in updates if u.state == "changed"]
    assert all(0 <= c - s <= 2 for c, s in zip(changes, (20, 32, 44), strict=True))
    assert np.abs(updates[-1].gain - 0.5).max() < 0.05
    assert updates[-1].gain_low.max() < 0.5 < updates[-1].gain_high.min()
    assert tracker.mismatch(0, 1) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("gain", [HALF, DEAD], ids=["half", "dead"])
def test_gains_must_predict_better(gain, monkeypatch) -> None:
    """Unless their evidence is certain: a policy in new states can give some."""
    changed = [FULL] * 20 + [gain] * 4
    monkeypatch.setattr(decision, "PREDICTION", 0.0)  # the evidence decides
    monkeypatch.setattr(decision, "NEW_EXCESS", 1e9)  # about gains, not other bodies
    assert run(changed)[0].labels().tolist() == [0] * 20 + [1] * 4
    monkeypatch.setattr(decision, "MIN_BETTER", 1e9)
    monkeypatch.setattr(decision, "CERTAIN", 1e9)
    assert run(changed)[0].labels().tolist() == [0] * 24
    monkeypatch.setattr(decision, "CERTAIN", 0.0)
    assert run(changed)[0].labels().tolist() == [0] * 20 + [1] * 4


@pytest.mark.parametrize(("episodes", "n_regimes"), [(24, 2), (0, 3)])
def test_a_new_regime_is_corrected_and_not_split(
    episodes, n_regimes, monkeypatch
) -> None:
    """Its gains were set too high; for 24 episodes better ones replace them."""
    monkeypatch.setattr(decision, "CORRECTED_EPISODES", episodes)
    tracker, _ = run([FULL] * 20 + [HALF] * 14)
    tracker.regime.gain = np.full(3, 0.8)
    states = {tracker.update(*episode(i, HALF)).state for i in range(34, 44)}
    assert len(tracker.regimes) == n_regimes
    assert ("changed" in states) == (n_regimes == 3)
    assert tracker.regime.gain == pytest.approx(HALF, abs=0.1)


@pytest.mark.parametrize(
    ("kind", "gain", "regime", "expected"),
    [
        ("common", 0.4, {"n_episodes": 16}, True),
        ("common", 0.4, {"n_episodes": 24}, False),  # it is new no more
        ("common", 0.25, {"n_episodes": 16}, False),  # by more than a factor of 2
        ("joint 1", 0.4, {"n_episodes": 16}, False),
        ("common", 0.4, {"n_episodes": 16, "body": 1}, False),  # no gains explain it
        ("common", 0.4, {"n_episodes": 16, "id": 0}, False),  # the first body
    ],
)
def test_what_corrects_a_regime(kind, gain, regime, expected) -> None:
    present = KnownRegime(**({"id": 1, "gain": np.full(3, 0.6), "base": FULL} | regime))
    found = Explanation(np.full(3, gain), 100.0, kind)
    assert decision.corrects_present(found, present) == expected


def test_states_of_long_ago_stay_known() -> None:
    """Sums by hand: recent ones decay by the memory, slow ones ten times later."""
    n_steps, memory, d = 50, 200.0, 2
    body = BodyModel(p=6, d=d, memory_steps=memory, drift=10.0)
    none = np.zeros((n_steps, d))

    def visit(state: int) -> Design:
        seen = np.tile(np.eye(2)[state], (n_steps, 1))
        return Design(seen, none[:, :1], none[:, None], change=none, still=none)

    body.learn(visit(0), np.ones(d))
    for _ in range(40):
        body.learn(visit(1), np.ones(d))
    once = n_steps * (4 + d) / 4  # Student weights of no residual, 4 degrees of freedom
    decay = np.exp(-40 * n_steps / memory)
    expected = once * (decay + 0.1 * decay**0.1)
    assert body.sums.gram[0, 0] == pytest.approx(expected)


def test_past_episodes_are_relabelled(
    recurring: tuple[Tracker, list[TrackerUpdate]],
) -> None:
    """Labels reported live, with the corrections, equal the labels at the end."""
    tracker, updates = recurring
    live: list[int] = []
    for update in updates:
        live.append(update.regime)
        for number, regime in update.relabelled:
            live[number] = regime
    assert live == tracker.labels().tolist()
    assert any(update.relabelled for update in updates)


def test_a_dead_joint_is_named() -> None:
    _, updates = run([FULL] * 20 + [DEAD] * 20)
    assert updates[-1].regime == 1
    assert np.abs(updates[-1].gain - DEAD).max() < 0.1


@pytest.mark.parametrize("gain", [-FULL, np.array([1.0, -1.0, 1.0])])
def test_a_reversed_actuator_has_a_gain_below_0(gain) -> None:
    tracker, updates = run([FULL] * 20 + [gain] * 12 + [FULL] * 6)
    assert tracker.labels().tolist() == [0] * 20 + [1] * 12 + [0] * 6
    assert np.abs(updates[31].gain - gain).max() < 0.1
    assert (updates[31].gain_low < gain).all() and (gain < updates[31].gain_high).all()


def test_a_damping_is_unexplained_and_recognised() -> None:
    drags = [0.0] * 20 + [0.5] * 8 + [0.0] * 8 + [0.5] * 8
    tracker, updates = run([FULL] * 44, drags)
    changes = [(u.episode, u.regime) for u in updates if u.state == "changed"]
    assert changes == [(22, 1), (29, 0), (37, 1)]
    assert updates[27].state == updates[43].state == "unexplained"
    assert not tracker.regimes[1].is_gain and not updates[43].calibrated
    assert tracker.labels().tolist() == [0] * 20 + [1] * 8 + [0] * 8 + [1] * 8
    np.testing.assert_array_equal(updates[43].gain, 1)


def test_probabilities_sum_to_one(
    recurring: tuple[Tracker, list[TrackerUpdate]],
) -> None:
    for update in recurring[1]:
        assert sum(update.probabilities.values()) == pytest.approx(1)
    suspicious = [u for u in recurring[1] if u.state == "suspicious"]
    assert suspicious and all(len(u.probabilities) > 1 for u in suspicious)


def test_units_do_not_matter() -> None:
    plain, scaled = Tracker(3, STEP_S, SMALL), Tracker(3, STEP_S, SMALL)
    for i, gain in enumerate([FULL] * 14 + [HALF] * 6):
        v, a = episode(i, gain)
        one, two = plain.update(v, a), scaled.update(1000 * v, 1000 * a)
        assert one.state == two.state
        np.testing.assert_allclose(one.gain, two.gain, atol=1e-5)


def test_permuted_actuators_have_permuted_gains() -> None:
    order = np.array([2, 0, 1])
    plain, permuted = Tracker(3, STEP_S, SMALL), Tracker(3, STEP_S, SMALL)
    for i, gain in enumerate([FULL] * 14 + [DEAD] * 10):
        v, a = episode(i, gain)
        one, two = plain.update(v, a), permuted.update(v[:, order], a[:, order])
        assert one.regime == two.regime
    np.testing.assert_allclose(one.gain[order], two.gain, atol=0.1)


def test_blocks_equal_a_whole_episode() -> None:
    whole, blocks = Tracker(3, STEP_S, SMALL), Tracker(3, STEP_S, SMALL)
    for i, gain in enumerate([FULL] * 12 + [HALF] * 4):
        v, a = episode(i, gain)
        expected = whole.update(v, a)
        for start in range(0, N_STEPS, 50):
            stop = min(start + 50, N_STEPS)
            part = blocks.update_block(
                v[start : stop + 1], a[start:stop], is_last=stop == N_STEPS
            )
            assert part.episode == i
        assert part.state == expected.state
        np.testing.assert_array_equal(part.gain, expected.gain)
    assert blocks.n_episodes == 16


@pytest.mark.parametrize("stop", [3, 13, 21, 30])
def test_a_restored_tracker_continues_exactly(tmp_path, stop: int) -> None:  # type: ignore[no-untyped-def]
    tracker, _ = run(RECURRING[:stop])
    v, a = episode(99, FULL)
    tracker.update_block(v[:31], a[:30], is_last=False)
    write_tracker(tmp_path / "tracker", tracker)
    restored = read_tracker(tmp_path / "tracker")
    for one in (tracker, restored):
        one.update_block(v[30:], a[30:], is_last=True)
    for i, gain in enumerate(RECURRING[stop : stop + 15]):
        first = tracker.update(*episode(stop + i, gain))
        second = restored.update(*episode(stop + i, gain))
        assert first.state == second.state
        assert first.probabilities == second.probabilities
        np.testing.assert_array_equal(first.gain, second.gain)
        np.testing.assert_array_equal(first.gain_low, second.gain_low)
    left, right = tracker.save(), restored.save()
    assert left.pop("header") == right.pop("header")
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name])


def test_a_state_of_another_version_is_refused() -> None:
    saved = Tracker(2, STEP_S).save()
    saved["header"]["version"] = 0
    with pytest.raises(FallowError, match="version 0"):
        Tracker.restore(saved)


def test_fewer_false_alarms_need_more_evidence() -> None:
    limits = [
        Tracker(3, STEP_S, TrackerConfig(false_alarms_per_1000=rate)).threshold
        for rate in (10.0, 1.0, 0.1)
    ]
    np.testing.assert_allclose(np.diff(limits), np.log(10))


def test_the_best_explanation_is_the_maximum() -> None:
    """Along one gain the evidence is a parabola; its top is found by hand."""
    precision, gain = 100 * np.eye(2), np.array([1.0, 0.4])
    found = explain(Evidence(precision @ gain, precision), np.ones(2))
    np.testing.assert_allclose(found.gain, gain)
    assert found.score == pytest.approx(100 * 0.6**2 / 2)


def test_mismatch_by_hand() -> None:
    def regime(*gain: float) -> KnownRegime:
        return KnownRegime(0, np.array(gain), np.ones(len(gain)))

    assert mismatch(regime(1, 1), regime(1, 0)) == pytest.approx(np.sqrt(0.5))
    assert mismatch(regime(0.5, 0.5), regime(1, 1)) == pytest.approx(0.5)
    assert mismatch(regime(0, 0), regime(0, 0)) == 0
    assert mismatch(regime(-1, -1), regime(1, 1)) == 1  # at most, as of a dead one
    assert mismatch(regime(1, 1), regime(-1, 1)) == pytest.approx(np.sqrt(0.5))


def test_a_tracker_works_with_one_blas_thread() -> None:
    """Together with another one, too; afterwards the limits are as before."""

    def n_threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if is_blas(pool)]

    def is_blas(pool: dict) -> bool:
        return pool["user_api"] == "blas"

    with threadpool_limits(2, "blas"):
        before = n_threads()
        with one_blas_thread():
            with one_blas_thread():
                assert set(n_threads()) == {1}
            assert set(n_threads()) == {1}
        assert n_threads() == before
