"""The demos show what they say: the walker's, and the words of the paired study."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import made_up
import numpy as np
import pytest
from rich.text import Text

from fallow.agents.checkpoints import begin
from fallow.agents.fleet import Fleet, build_agent
from fallow.core.records import Branch
from fallow.core.results import ResultRow, read_results, write_results
from fallow.demo.claims import CLAIMS, claim_sentences
from fallow.demo.phrases import TIMES_RANDOM, random_return, trunk_sentences
from fallow.demo.recorded import OTHER_SEEDS, TABLE2, TITLE, recorded_study
from fallow.demo.shipped import SHIPPED, unpack_shipped
from fallow.demo.study import (
    LIVE,
    demo_plan,
    report_lines,
    run_demo,
    write_demo_page,
)
from fallow.demo.walker import simulate
from fallow.dynamics import Condition
from fallow.dynamics.tasks import ACTION_REPEAT
from fallow.logs import read_history
from fallow.replay import Rule
from fallow.report.findings import findings
from fallow.report.phrases import headlines
from fallow.study import Cell, Plan
from fallow.study.named import STUDIES
from fallow.study.results import read_study_results
from fallow.study.store import TABLE
from fallow.study.trunks import HISTORY, place_of


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
    """Keeping all is beaten, forgetting is, and adaptive loses nowhere."""
    recorded = recorded_study(TABLE2)
    assert recorded is not None and recorded.seeds == (0, 1, 2, 3, 4)
    lines = headlines(findings(recorded))
    assert "Gain reduction: Adaptive +146, " in lines[0] and "both clear" in lines[0]
    (recurring,) = (line for line in lines if line.startswith("Recurring"))
    assert "Recency -287, all clear; Adaptive +24" in recurring
    (unchanged,) = (line for line in lines if line.startswith("No change"))
    assert "Adaptive 0, within noise" in unchanged
    shown = [line for line in report_lines(TITLE, recorded) if isinstance(line, Text)]
    assert [line.plain for line in shown] == lines
    assert {line.style for line in shown} == {"bold"}


def test_the_recorded_findings_are_there_before_anything_runs(tmp_path: Path) -> None:
    recorded = recorded_study(TABLE2)
    assert recorded is not None
    first = report_lines(TITLE, recorded)
    assert list(islice(run_demo(tmp_path / "demo", demo_plan()), 5)) == list(
        islice(first, 5)
    )
    assert not list(tmp_path.iterdir())


def test_other_seeds_are_the_same_study() -> None:
    plan = demo_plan("10-12")
    assert plan.seeds == (10, 11, 12)
    assert replace(plan, seeds=demo_plan().seeds) == STUDIES["demo"]
    assert not {t.id for t in plan.trunks()} & {t.id for t in demo_plan().trunks()}


def test_the_claims_are_shown_on_other_seeds() -> None:
    others = recorded_study(OTHER_SEEDS)
    assert others is not None and others.plan is not None
    assert replace(others.plan, seeds=demo_plan().seeds) == demo_plan()
    assert not {*others.plan.seeds} & {*demo_plan().seeds}
    sentences = list(claim_sentences(others))
    assert len(sentences) == len(CLAIMS)
    assert all(sentence.startswith("Shown: ") for sentence in sentences)


def test_the_page_labels_what_is_recorded(tmp_path: Path, only_svg) -> None:
    recorded = recorded_study(TABLE2)
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
    """A small task, five seeds, lasting and recurring change, every claim tested."""
    plan = STUDIES["demo"]
    assert plan.preset.startswith("tiny") and len(plan.seeds) >= 5
    schedules = {Condition.parse(text).schedule_name for text in plan.conditions}
    rules = {Rule.parse(text).name for text in plan.rules}
    assert schedules == {claim.schedule for claim in CLAIMS}
    assert rules == {name for one in CLAIMS for name in (one.higher, one.lower)}


# ------------------------------------------------------------------------- its claims

RETURNS = {  # J of three seeds; mean and half width of the interval of a gap by hand
    ("reversal", "passive"): (100.0, 100.0, 100.0),
    ("reversal", "reset"): (190.0, 200.0, 210.0),  # +100, 4.3027 * 10 / sqrt(3) = 24.8
    ("reversal", "adaptive"): (90.0, 110.0, 130.0),  # +10, 49.7
    ("recurring", "passive"): (500.0, 510.0, 520.0),
    ("recurring", "reset"): (600.0, 610.0, 620.0),
    ("recurring", "adaptive"): (700.0, 710.0, 720.0),
}


def claims_of(tmp_path: Path, returns: dict) -> list[str]:
    """What is said of a made-up study."""
    folder = tmp_path / "claims"
    folder.mkdir()
    write_results(folder / "results.csv", made_up.table(returns))
    return list(claim_sentences(read_study_results(folder)))


def test_a_claim_is_shown_only_where_its_interval_leaves_0_out(tmp_path: Path) -> None:
    pays, _, forgets, remembers = claims_of(tmp_path, RETURNS)
    assert pays == (
        "Shown: After a change for good, forgetting beats keeping all (Reset-once less "
        "Passive +100, 95 % interval 75 to 125)."
    )
    assert forgets.startswith("Not shown: ")
    assert (
        "Adaptive less Passive +10, 95 % interval -40 to 60; it contains 0, "
        "2 of 3 seeds are above 0" in forgets
    )
    assert remembers.startswith("Shown: Where the old body returns, that rule does not")
    assert "Adaptive less Reset-once +100, " in remembers


def test_what_contradicts_a_claim_is_said(tmp_path: Path) -> None:
    _, keeps, *_ = claims_of(tmp_path, RETURNS)
    assert keeps.startswith("The opposite came out: Where the old body returns")
    assert "Passive less Reset-once -100" in keeps


def test_one_seed_shows_nothing(tmp_path: Path) -> None:
    lines = claims_of(tmp_path, {key: js[:1] for key, js in RETURNS.items()})
    assert len(lines) == len(CLAIMS) == 4
    assert all(line.startswith("Not shown: ") for line in lines)
    assert all("too few seeds" in line for line in lines)


def test_a_study_that_tests_no_claim_has_none(tmp_path: Path) -> None:
    some = {("gain", "passive"): (1.0, 2.0), ("gain", "recency"): (2.0, 3.0)}
    assert claims_of(tmp_path, some) == []


# ------------------------------------------------------------------------- its trunks


def test_the_shipped_trunks_are_those_of_the_study() -> None:
    """A changed recipe needs new trunks: `python tools/demo_trunks.py`."""
    sizes = {path.name: path.stat().st_size for path in SHIPPED.iterdir()}
    assert set(sizes) == {f"{trunk.id}.zip" for trunk in STUDIES["demo"].trunks()}
    assert max(sizes.values()) < 1e6 and sum(sizes.values()) < 6e6


def test_a_shipped_trunk_is_whole_and_trained(tmp_path: Path) -> None:
    """Checksums hold, its replay is full, and it is the trunk of a branch."""
    plan = STUDIES["demo"]
    assert unpack_shipped(plan, tmp_path) == [trunk.id for trunk in plan.trunks()]
    assert unpack_shipped(plan, tmp_path) == []  # what is there stays
    first = plan.branches()[0]
    agent = build_agent(first.task, first.agent, first.preset)
    branches = [
        Branch(trunk.training_seed, first.world_condition) for trunk in plan.trunks()
    ]
    fleet = Fleet(first.task, agent, branches, plan.capacity_transitions)
    begin(fleet, [place_of(trunk.id, tmp_path) for trunk in plan.trunks()])
    assert fleet.frame == plan.trunk_frames
    n_rows = plan.trunk_frames // ACTION_REPEAT + 21  # each of 21 episodes has a first
    for sampler in fleet.buffer.samplers:
        assert sampler.ledger.stored().length.sum() == n_rows
    assert (fleet.worlds.regime == 1).all()  # the change is due at once
    for trunk in plan.trunks():
        last = read_results(tmp_path / trunk.id / TABLE)[-1]
        assert last.mean_return > TIMES_RANDOM * random_return(trunk.task)
        assert len(read_history(tmp_path / trunk.id / HISTORY).episodes) == 20


def test_a_plan_of_other_trunks_gets_none(tmp_path: Path) -> None:
    assert unpack_shipped(PLAN, tmp_path) == [] and not list(tmp_path.iterdir())
