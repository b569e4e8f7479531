"""What trackers reported: the file beside a fleet's table, and its figure."""

import dataclasses
from pathlib import Path

import pytest

from fallow.agents.beliefs import BELIEFS, Belief, read_beliefs
from fallow.core.errors import FallowError
from fallow.report.figures.beliefs import belief_figure, belief_figures, share_right
from fallow.study import Cell, Plan
from fallow.study.results import StudyResults

# two trunk episodes, then four: the change is reported one late and relabelled, and the
# last label is wrong
REPORTS = tuple(
    Belief(0, episode, state, regime, true, label, 0.9, "1/0.5")
    for episode, state, regime, true, label in [
        (0, "settled", 0, 0, 0),
        (1, "settled", 0, 0, 0),
        (2, "suspicious", 0, 1, 1),
        (3, "changed", 1, 1, 1),
        (4, "unexplained", 1, 1, 1),
        (5, "settled", 1, 0, 1),
    ]
)


def test_share_of_right_labels() -> None:
    assert share_right(REPORTS, 2) == 3 / 4
    assert share_right(REPORTS, 0) == 5 / 6
    assert share_right(REPORTS, 6) is None


def test_the_figure_shows_truth_and_tracker() -> None:
    (axes,) = belief_figure(REPORTS, 2).axes
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["tracker"].get_ydata().tolist() == [0, 0, 0, 1, 1, 1]
    assert lines["suspicious"].get_xdata().tolist() == [2]
    assert lines["unexplained"].get_xdata().tolist() == [4]


def test_one_figure_a_condition_and_rule() -> None:
    cell = Cell(
        "cartpole-swingup", "dreamer", ("gain", "none"), ("passive", "adaptive")
    )
    plan = Plan("small", (cell,), preset="tiny", seeds=(0, 1))
    branches = plan.branches()
    beliefs = {b.id: REPORTS for b in branches if b.rule == "adaptive"}
    study = StudyResults("small", Path(), (), plan, branches, beliefs=beliefs)
    figures = belief_figures(study)
    assert [figure.name for figure in figures] == [
        "tracker-gain-adaptive",
        "tracker-none-adaptive",
    ]
    assert "at its end, 2 seeds: 83 % (83 to 83)" in figures[0].caption
    assert belief_figures(dataclasses.replace(study, beliefs={})) == []


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    assert read_beliefs(tmp_path / BELIEFS) == []
    (tmp_path / BELIEFS).write_text("branch,episode\n0,x\n")
    with pytest.raises(FallowError, match="cannot be read"):
        read_beliefs(tmp_path / BELIEFS)
