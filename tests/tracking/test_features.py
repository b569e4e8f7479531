"""Features of the body model: joints that are still, and derivatives by gain."""

import numpy as np
import pytest
from small_body import FULL, episode

from fallow.tracking import Tracker, features
from fallow.tracking.features import Basis, Design, scaling_of
from fallow.tracking.signals import LEAK_STEPS, signals_of


def design_of(v: np.ndarray, a: np.ndarray) -> tuple[Basis, Design]:
    basis, signals = Basis(3, m=5, k=4, seed=0), signals_of(v, a)
    return basis, basis.design(signals, scaling_of([signals]))


def test_the_derivative_by_gain_is_that_of_the_prediction(random) -> None:
    basis, design = design_of(*episode(0, FULL))
    weights = random.normal(size=(basis.n_features, 3))
    gain = random.uniform(0.5, 1.5, 3)
    assert design.phi(gain).shape[1] == basis.n_features
    for j, step in enumerate(np.eye(3)):
        after, before = (design.phi(gain + s * step) @ weights for s in (0.5, -0.5))
        found = design.jacobian(weights)[:, j]
        np.testing.assert_allclose(found, after - before, atol=1e-9)


def test_motion_by_hand() -> None:
    v = np.array([[2.0], [2.0], [0.0], [0.0], [0.0]])
    keep = 1 - 1 / LEAK_STEPS[-1]
    expected = 2 * np.sqrt([1, 1, keep, keep**2])
    motion = signals_of(v, np.ones((4, 1))).motion
    np.testing.assert_allclose(motion[:, 0], expected)


def test_still_is_1_without_motion_and_little_at_the_usual_velocity() -> None:
    v, a = episode(0, FULL)
    v[60:, 1] = 0.0
    still = design_of(v, a)[1].still
    assert still[-1, 1] > 0.9 and np.median(still[:, 0]) < 0.1


@pytest.mark.parametrize(("still", "reported"), [(features.STILL, 0), (1e-6, 1)])
def test_a_joint_at_its_limit_is_not_a_dead_one(
    still: float, reported: int, monkeypatch
) -> None:
    monkeypatch.setattr(features, "STILL", still)
    tracker = Tracker(3, 0.05)
    for seed in range(46):
        tracker.update(*episode(seed, FULL, at_limit=1 if seed >= 40 else None))
    assert sum(r.is_gain for r in tracker.regimes[1:]) == reported
