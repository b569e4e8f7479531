"""Evaluations beside a fleet's life are those made while it stands still."""

from pathlib import Path

import numpy as np
from test_fleet import assert_equal, fleet_of, trained

from fallow.agents.result_table import ResultTable
from fallow.core.records import Branch
from fallow.core.results import Label

BRANCHES = (Branch(3), Branch(4, "recurring:shift_frame=300,period_frames=300"))
BEGIN = 75  # learning, and 300 frames trained: the second branch has just changed


def test_beside_life_it_is_what_it_is_alone() -> None:
    fleet, still = (trained(fleet_of(*BRANCHES), BEGIN) for _ in range(2))
    running = fleet.evaluate_concurrently(n_episodes=2)
    trained(fleet, BEGIN + 499)
    assert not running.is_done
    fleet.step()
    assert running.is_done  # 500 steps a world
    assert fleet.learners.n_updates > still.learners.n_updates
    np.testing.assert_array_equal(running.finish(), still.evaluate(n_episodes=2))


def test_evaluation_does_not_change_training() -> None:
    evaluation, left_alone = (trained(fleet_of(*BRANCHES), 60) for _ in range(2))
    evaluation.evaluate_concurrently(
        n_episodes=2
    )  # its first steps are of random actions
    for fleet in (evaluation, left_alone):
        trained(fleet, 90)
    for index in range(2):
        assert_equal(evaluation, index, left_alone, index)


def test_one_is_finished_before_the_next() -> None:
    fleet, still = (trained(fleet_of(*BRANCHES), BEGIN) for _ in range(2))
    first = fleet.evaluate_concurrently(n_episodes=2)
    expected = still.evaluate(n_episodes=2)
    trained(fleet, BEGIN + 5)
    trained(still, BEGIN + 5)
    second = fleet.evaluate_concurrently(n_episodes=2)
    assert first.is_done
    np.testing.assert_array_equal(first.finish(), expected)
    np.testing.assert_array_equal(second.finish(), still.evaluate(n_episodes=2))


def test_its_row_is_of_the_frame_at_which_it_began(tmp_path: Path) -> None:
    fleet = trained(fleet_of(*BRANCHES), BEGIN)
    kept = ("pendulum-swingup", "dreamer", "micro")
    labels = [
        Label(*kept, branch.condition, branch.rule, branch.seed, "", "")
        for branch in BRANCHES
    ]
    results = ResultTable(tmp_path / "results.csv", labels, begin_frame=100)
    regimes, frame = fleet.worlds.regime.tolist(), fleet.frame
    updates = fleet.learners.n_updates
    results.begin(fleet)
    trained(fleet, 2 * BEGIN)
    assert fleet.worlds.regime.tolist() != regimes  # it has changed since
    results.end(np.array([[1.0, 3.0], [5.0, 7.0]]))
    assert [row.regime for row in results.rows] == regimes
    assert {row.frame for row in results.rows} == {frame}
    assert {row.branch_frame for row in results.rows} == {frame - 100}
    assert {row.updates for row in results.rows} == {updates}
    assert [row.mean_return for row in results.rows] == [2.0, 6.0]
