"""What gains must explain, and when a change is called another body."""

import numpy as np
import pytest
from small_body import FULL, HALF, run

from fallow.tracking import decision
from fallow.tracking.contest import Usual
from fallow.tracking.decision import KNOWN_EXCESS, MAX_LEFT, Losses


def losses(excess: float, usual: Usual) -> Losses:
    """Of two episodes that another body predicts better, by so many deviations."""
    gained = usual.mean + excess * usual.deviation
    return Losses(np.full(2, gained), np.zeros(2))


@pytest.mark.parametrize(
    ("n_episodes", "excess", "expected"),
    [(30, 4.9, False), (30, 5.1, True), (10, 14.9, False), (10, 15.1, True)],
)
def test_a_new_body_needs_more_while_little_is_usual(
    n_episodes: int, excess: float, expected: bool
) -> None:
    usual = Usual()
    usual.n_episodes = n_episodes
    assert losses(excess, usual).is_other_body(usual) == expected


@pytest.mark.parametrize(
    ("before", "after", "most_left", "expected"),
    [
        (10.0, 2.4, KNOWN_EXCESS, True),  # little is left
        (10.0, 2.6, KNOWN_EXCESS, False),
        (10.0, 8.4, MAX_LEFT, True),  # strong evidence: up to 85 %
        (10.0, 8.6, MAX_LEFT, False),
        (100.0, 10.1, MAX_LEFT, False),
    ],
)
def test_what_gains_may_leave(
    before: float, after: float, most_left: float, expected: bool
) -> None:
    usual = Usual()
    found = losses(before, usual).explained_by(losses(after, usual), usual, most_left)
    assert found == expected


@pytest.mark.parametrize(("strong", "unexplained"), [(0.0, 0), (1e9, 6)])
def test_gains_that_leave_much_need_strong_evidence(
    strong: float, unexplained: int, monkeypatch
) -> None:
    monkeypatch.setattr(decision, "STRONG", strong)
    monkeypatch.setattr(decision, "KNOWN_EXCESS", -1e9)  # they always leave too much
    monkeypatch.setattr(decision, "EXPLAINED", 1e9)
    tracker, _ = run([FULL] * 40 + [HALF] * 6)
    assert tracker.labels().tolist() == [0] * 40 + [1] * 6
    assert sum(not tracker.regimes[k].is_gain for k in tracker.labels()) == unexplained
