"""The demos show what they say: the walker's, and the words of the paired study."""

from itertools import islice
from pathlib import Path

import made_up
import numpy as np
import pytest
from rich.text import Text

from fallow.core.results import ResultRow, write_results
from fallow.demo.phrases import random_return, trunk_sentences
from fallow.demo.recorded import TITLE, recorded_study
from fallow.demo.study import LIVE, report_lines, run_demo, write_demo_page
from fallow.demo.walker import simulate
from fallow.dynamics import Condition
from fallow.logs import read_history
from fallow.replay import Rule
from fallow.report.findings import findings
from fallow.report.phrases import headlines
from fallow.study import Cell, Plan
from fallow.study.named import STUDIES
from fallow.study.results import read_study_results


@pytest.mark.parametrize("seed", range(5))
def test_only_the_weakened_walker_falls(tmp_path: Path, seed: int) -> None:
    walk = simulate(tmp_path / "walker.fallow", seed)
    before, after = walk.reward[: walk.shift_row], walk.reward[walk.shift_row :]
    np.testing.assert_array_equal(before[:, 0], before[:, 1])
    assert after[:, 0].mean() > 0.9 and after[:, 1].mean() < 0.2
    assert walk.height_m[walk.shift_row :, 0].min() > 1.0
    fall_s = walk.fall_s()
    assert fall_s is not None and 0.2 < fall_s < 1.5


def test_its_history_has_the_change_in_the_middle(tmp_path: Path) -> None:
    simulate(tmp_path / "walker.fallow", 0)
    history = read_history(tmp_path / "walker.fallow")
    assert [episode.regime.tolist() for episode in history.episodes] == [
        [0] * 250 + [1] * 250
    ]


# -------------------------------------------------------------------- the paired study

PLAN = Plan(
    "demo",
    (Cell("cartpole-swingup", "dreamer", ("none", "gain"), ("passive", "reset")),),
    preset="tiny",
    seeds=(0, 1),
    trunk_frames=12_000,
    shift_frame=0,
    capacity_transitions=20_000,
)


def test_the_recorded_study_shows_the_finding() -> None:
    """One headline a condition: keeping all is beaten, and forgetting is."""
    recorded = recorded_study()
    assert recorded is not None and recorded.seeds == (0, 1, 2, 3, 4)
    lines = headlines(findings(recorded))
    assert "Gain reduction: Recency +86, clear" in lines[0]
    (recurring,) = (line for line in lines if line.startswith("Recurring"))
    assert "Recency -268, both clear" in recurring
    shown = [line for line in report_lines(TITLE, recorded) if isinstance(line, Text)]
    assert [line.plain for line in shown] == lines
    assert {line.style for line in shown} == {"bold"}


def test_the_recorded_findings_are_there_before_anything_runs(tmp_path: Path) -> None:
    recorded = recorded_study()
    assert recorded is not None
    first = report_lines(TITLE, recorded)
    assert list(islice(run_demo(tmp_path / "demo"), 5)) == list(islice(first, 5))
    assert not list(tmp_path.iterdir())


def test_the_page_labels_what_is_recorded(tmp_path: Path, only_svg) -> None:
    recorded = recorded_study()
    assert recorded is not None
    live = read_study_results(
        made_up.folder(tmp_path / "live", made_up.rows(made_up.table1()))
    )
    page = write_demo_page(live, recorded).read_text()
    assert page.index("Recorded on one H200") < page.index(LIVE)
    assert "not on this machine: walker-walk, DreamerV3, preset lean" in page


def write_trunks(folder: Path, *reached: float) -> None:
    rows = [
        ResultRow(
            "cartpole-swingup", "dreamer", "tiny", "none", "passive", seed, "id", "",
            frame, frame, 0, 1, value, (value,),
        )
        for seed, value in enumerate(reached)
        for frame, value in ((5_000, 1.0), (9_000, value))
    ]  # fmt: skip
    write_results(folder / "trunks.csv", rows)


def test_trunks_are_set_beside_a_random_policy(tmp_path: Path) -> None:
    chance = random_return("cartpole-swingup")
    assert chance == random_return("cartpole-swingup")
    write_trunks(tmp_path, 3.5 * chance, 900)
    (line,) = trunk_sentences(PLAN, tmp_path)
    assert f"{3.5 * chance:.0f}, 900; a random policy gets {chance:.0f}" in line
    write_trunks(tmp_path, 500, 2.9 * chance)
    _, warning = trunk_sentences(PLAN, tmp_path)
    assert "Below 3 times that (seed 1)" in warning and "not as a finding" in warning


def test_a_random_policy_is_as_bad_as_the_suite_says() -> None:
    """dm_control's own pendulum gives a random policy about nothing."""
    assert random_return("pendulum-swingup") < 100
    assert 10 < random_return("cartpole-swingup", 20) < 80


def test_the_demo_is_what_the_readme_promises() -> None:
    """A small task, three seeds, lasting and recurring change, two rules."""
    plan = STUDIES["demo"]
    assert plan.preset == "tiny" and len(plan.seeds) >= 3
    schedules = {Condition.parse(text).schedule_name for text in plan.conditions}
    assert {"permanent", "recurring"} <= schedules
    rules = {Rule.parse(text).name for text in plan.rules}
    assert {"passive", "recency"} <= rules
