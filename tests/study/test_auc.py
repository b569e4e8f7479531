"""The AUC that a study writes, against the protocol's numbers."""

import dataclasses

import pytest

from fallow.agents.result_table import ledger_auc
from fallow.dynamics.conditions import Condition
from fallow.replay.ledger import Ledger
from fallow.replay.staleness import mean_auc


def auc_of(condition: str, n_worlds: int = 4) -> float | None:
    """AUC of a protocol's branch, averaged over its evaluations at 50k, …, 130k."""
    parsed = Condition.parse(condition)
    schedule = dataclasses.replace(parsed.schedule, shift_frame=240_000)
    frames_per_step, steps = 2 * n_worlds, 500
    ledger, aucs = Ledger(n_worlds, 1_000), []  # the capacity is nothing to it
    ledger.advance_all([True] * n_worlds, None)
    for step in range(330_000 // frames_per_step):
        frame = step * frames_per_step
        ledger.present_regime = schedule.regime(schedule.segment(frame))
        ledger.advance_all([False] * n_worlds, None)
        frame += frames_per_step
        if (step + 1) % steps == 0:  # episodes end, and the next ones begin at once
            ledger.advance_all([True] * n_worlds, None)
        if frame > 240_000 and frame % 10_000 == 0:
            regime = schedule.regime(schedule.segment(frame))
            aucs.append(ledger_auc(ledger, regime))
    assert len(aucs) == 9
    return mean_auc(aucs)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("gain", 1.00),
        ("recurring:period_frames=10000", 0.44),
        ("recurring", 0.537),
        ("recurring:period_frames=40000", 0.55),
        ("recurring:period_frames=60000", 0.58),
        ("recurring:period_frames=80000", 0.78),
    ],
)
def test_auc_of_the_protocol(condition: str, expected: float) -> None:
    """The averages that the design works out."""
    assert auc_of(condition) == pytest.approx(expected, abs=0.006)


def test_auc_where_there_is_none() -> None:
    ledger = Ledger(1, 1_000)
    ledger.advance_all([True], None)
    assert ledger_auc(ledger, 0) is None  # no transition yet
    assert ledger_auc(ledger, -1) is None  # no regimes
    for regime in (0, 1):
        ledger.present_regime = regime
        for _ in range(10):
            ledger.advance_all([False], None)
        ledger.end_episode(0)
    assert ledger_auc(ledger, 1) == 1.0 and ledger_auc(ledger, 0) == 0.0
