"""Episodes and settings that a tracker cannot use."""

from dataclasses import replace

import numpy as np
import pytest
from small_body import DEAD, FULL, HALF, N_STEPS, SMALL, STEP_S, episode, run

from fallow.core.errors import FallowError
from fallow.tracking import (
    Tracker,
    TrackerConfig,
)


def bad_episodes() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    v, a = episode(0, FULL)
    nan, inf = v.copy(), a.copy()
    nan[5, 1], inf[7, 2] = np.nan, np.inf
    return {
        "NaN velocity": (nan, a),
        "infinite action": (v, inf),
        "three steps": (v[:4], a[:3]),
        "no steps": (v[:1], a[:0]),
        "zero actions": (v, np.zeros_like(a)),
        "constant actions": (v, np.full_like(a, 0.3)),
        "zero velocities": (np.zeros_like(v), a),
        "huge velocity": (v * 1e200, a),
        "another column": (np.hstack([v, v[:, :1]]), np.hstack([a, a[:, :1]])),
    }


@pytest.mark.parametrize("name", bad_episodes())
@pytest.mark.parametrize("at", [2, 15])
def test_a_bad_episode_is_skipped_and_changes_nothing(name: str, at: int) -> None:
    clean, dirty = Tracker(3, STEP_S, SMALL), Tracker(3, STEP_S, SMALL)
    for i in range(18):
        if i == at:
            update = dirty.update(*bad_episodes()[name])
            assert update.note.startswith("skipped")
            assert update.state != "changed"
        one, two = clean.update(*episode(i, FULL)), dirty.update(*episode(i, FULL))
        assert one.state == two.state
    assert (dirty.n_skipped, dirty.n_episodes) == (1, 19)
    np.testing.assert_array_equal(clean.body.weights, dirty.body.weights)


def test_a_jump_is_skipped_and_named() -> None:
    """A clock that jumps makes a velocity huge for one step."""
    tracker, _ = run([FULL] * 10)
    for i in range(10, 16):
        v, a = episode(i, FULL)
        v[40:42, i % 3] = 1e6
        update = tracker.update(v, a)
        assert "jumps" in update.note and update.state == "settled"
    assert tracker.n_skipped == 6


@pytest.mark.parametrize("at", [0, 12])
def test_wild_values_raise_nothing(at: int) -> None:
    """Spikes, tiny values and a joint at rest, in warm-up and after it."""
    tracker = Tracker(3, STEP_S, SMALL)
    for i in range(30):
        v, a = episode(i, FULL)
        if i >= at:
            kind = i % 5
            if kind == 0:
                v[i % N_STEPS, i % 3] = 1e9
            if kind == 1:
                a[i % N_STEPS, i % 3] = -1e11
            if kind == 2:
                v, a = v * 1e-200, a * 1e-200
            if kind == 3:
                v[:, 1] = 0.0
                a[:, 2] = 0.0
        update = tracker.update(v, a)
        assert np.isfinite(update.gain).all() and np.isfinite(update.gain_high).all()
        assert sum(update.probabilities.values()) == pytest.approx(1)


def test_a_full_library_grows_no_more() -> None:
    tracker = Tracker(3, STEP_S, replace(SMALL, max_regimes=2, trial_episodes=2))
    gains = [FULL] * 20 + [HALF] * 12 + [DEAD] * 12 + [FULL * 0.2] * 12
    for i, gain in enumerate(gains):
        tracker.update(*episode(i, gain))
    assert len(tracker.regimes) == 2


def test_episodes_of_different_length_are_fine() -> None:
    tracker = Tracker(3, STEP_S, SMALL)
    for i in range(40):
        v, a = episode(i, FULL if i < 25 else HALF)
        n = 30 + (i * 37) % 90
        update = tracker.update(v[: n + 1], a[:n])
        assert update.regime == 0 or i >= 25
    assert update.regime == 1


@pytest.mark.parametrize(
    ("v", "a"),
    [((10, 3), (10, 3)), ((11, 3), (10, 4)), ((11,), (10,))],
)
def test_wrong_shapes_are_errors(v: tuple[int, ...], a: tuple[int, ...]) -> None:
    with pytest.raises(FallowError, match="shape"):
        Tracker(3, STEP_S, SMALL).update(np.ones(v), np.ones(a))


def test_what_is_no_number_is_named() -> None:
    with pytest.raises(FallowError, match="velocities are fast; give an array"):
        Tracker(3, STEP_S, SMALL).update("fast", np.ones((10, 3)))  # type: ignore[arg-type]
    with pytest.raises(FallowError, match="n_actuators is six"):
        Tracker("six", STEP_S)  # type: ignore[arg-type]


def test_bad_settings_are_errors() -> None:
    with pytest.raises(FallowError, match="false_alarms_per_1000 is 0"):
        TrackerConfig(false_alarms_per_1000=0)
    with pytest.raises(FallowError, match="n_actuators is 0"):
        Tracker(0, STEP_S)
    with pytest.raises(FallowError, match="control_step_s is nan"):
        Tracker(1, float("nan"))
