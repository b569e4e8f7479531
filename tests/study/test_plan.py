"""Plans: the paper's studies by name, ids that distinguish work, bad input."""

import dataclasses
import json
from pathlib import Path

import pytest

from fallow.core.errors import FallowError
from fallow.dynamics.conditions import Condition
from fallow.study import Cell, Plan
from fallow.study.devices import named_bytes
from fallow.study.engines import run_study
from fallow.study.fleets import check_fit, fleets_of
from fallow.study.named import STUDIES, find_plan, part, read_toml
from fallow.study.plan import ALGORITHM

N_BRANCHES = {
    "table1": 4 * 4 * 5,
    "table2": 3 * 4 * 5,
    "table3": (3 * 3 + 3 * 2 + 3 * 2) * 5,
    "recurrence": 7 * 2 * 5,
    "magnitude": (6 + 3) * 2 * 5,
    "window": 6 * 3 * 5,
}


STORED = sorted((Path(__file__).parents[2] / "results").rglob("*.toml"))


@pytest.mark.parametrize("preset", ["paper", "lean"])
@pytest.mark.parametrize("name", N_BRANCHES)
def test_the_studies_of_the_paper(name: str, preset: str) -> None:
    plan = find_plan(name, preset)
    branches = plan.branches()
    assert len(branches) == N_BRANCHES[name]
    assert len({branch.id for branch in branches}) == len(branches)
    assert plan.seeds == (0, 1, 2, 3, 4)
    for cell in plan.cells:
        assert "none" in cell.conditions
        assert {"passive", "recency"} <= set(cell.rules)


def test_the_online_study_is_on_seeds_that_tuned_nothing() -> None:
    plan = STUDIES["online"]
    assert plan.seeds == (5, 6, 7, 8, 9)
    assert len(plan.branches()) == 42 * 5


def test_sizes_distinguish_trunks_their_spelling_does_not() -> None:
    plan = find_plan("table1", "lean")
    same = find_plan("table1", "lean:horizon=15")
    other = find_plan("table1", "lean:horizon=10")
    assert [t.id for t in same.trunks()] == [t.id for t in plan.trunks()]
    assert not {t.id for t in other.trunks()} & {t.id for t in plan.trunks()}
    with pytest.raises(FallowError, match="did you mean 'horizon'"):
        find_plan("table1", "lean:hrizon=10")


def test_conditions_change_40k_frames_after_the_branch_point() -> None:
    for name in N_BRANCHES:
        for branch in STUDIES[name].branches():
            schedule = Condition.parse(branch.world_condition).schedule
            expected = None if branch.condition == "none" else 240_000
            assert schedule.shift_frame == expected
            condition = Condition.parse(branch.condition)
            assert str(condition) == branch.condition
            assert condition.shift == Condition.parse(branch.world_condition).shift


def test_recurring_alternates_every_period_reduced_first() -> None:
    (branch,) = (
        branch
        for branch in STUDIES["recurrence"].branches()
        if branch.condition == "recurring:period_frames=10000"
        and branch.rule == "passive"
        and branch.seed == 0
    )
    condition = Condition.parse(branch.world_condition)
    frames = [239_999, 240_000, 249_999, 250_000, 260_000]
    assert [condition.regime(frame) for frame in frames] == [0, 1, 1, 0, 1]


def test_trunks_are_shared_within_a_set_and_differ_between_sets() -> None:
    trunks = {name: {t.id for t in plan.trunks()} for name, plan in STUDIES.items()}
    assert trunks["table1"] == trunks["recurrence"]
    assert trunks["table2"] == trunks["window"]
    assert not trunks["table1"] & trunks["table2"]
    assert trunks["magnitude"] == trunks["table1"] | trunks["table2"]
    assert trunks["table1"] < trunks["table3"]
    seeds = {t.training_seed for t in STUDIES["table2"].trunks()}
    assert len(seeds) == 5 and not seeds & set(range(5))


def test_ids_stay_and_differ_where_results_would() -> None:
    """The ids of a release are known by number: work done before is found again."""
    plan = STUDIES["table1"]
    first = plan.branches()[0]
    assert first.id == find_plan("table1", "lean").branches()[0].id
    others = [
        dataclasses.replace(plan, trunk_frames=208_000),
        dataclasses.replace(plan, branch_frames=140_000),
        dataclasses.replace(plan, preset="paper"),
        dataclasses.replace(plan, capacity_transitions=600_000),
        dataclasses.replace(plan, n_episodes=5),
    ]
    ids = {plan.branches()[0].id for plan in others}
    assert len(ids) == len(others) and first.id not in ids
    # the first branch has no change, so that the frame of the change is nothing to it
    later = dataclasses.replace(plan, shift_frame=44_000).branches()
    assert later[0].id == first.id and later[4].id != plan.branches()[4].id
    same = [
        dataclasses.replace(plan, name="another"),
        dataclasses.replace(plan, device="h200"),
        dataclasses.replace(plan, save_frames=1_000),
        part(plan, [0]),
    ]
    assert {plan.branches()[0].id for plan in same} == {first.id}


def test_plans_come_back_from_json() -> None:
    for plan in STUDIES.values():
        content = json.loads(json.dumps(plan.content()))
        assert Plan.from_content(content) == plan


def test_a_part_has_all_conditions_and_rules_of_some_seeds() -> None:
    plan = find_plan("table1", seeds="0-1")
    assert len(plan.branches()) == 32
    whole = {branch.id for branch in STUDIES["table1"].branches()}
    assert {branch.id for branch in plan.branches()} < whole
    with pytest.raises(FallowError, match="has no seed 7; its seeds are 0, 1, 2"):
        find_plan("table1", seeds="7")


# -------------------------------------------------------------------- fleets


def test_fleets_split_by_seed_and_fit_the_device() -> None:
    plan = dataclasses.replace(find_plan("table1", "paper"), device="100GiB")
    fleets = fleets_of(plan)
    assert [len(fleet.branches) for fleet in fleets] == [48, 32]
    for fleet in fleets:
        seeds = {branch.seed for branch in fleet.branches}
        assert seeds == {trunk.seed for trunk in fleet.trunks}
        assert len(fleet.branches) == 16 * len(seeds)
    check_fit(plan, fleets)
    on_cpu = fleets_of(dataclasses.replace(plan, device="cpu", preset="tiny"))
    assert [len(fleet.branches) for fleet in on_cpu] == [16] * 5
    together = dataclasses.replace(plan, preset="tiny", seeds_per_fleet=5)
    assert [len(fleet.branches) for fleet in fleets_of(together)] == [80]


def test_cells_of_one_agent_share_fleets_on_an_accelerator() -> None:
    """Also those of two sets of trunks, which are then trained together."""
    changed = Cell(conditions=("gain", "recurring"), rules=("passive", "reset"))
    unchanged = Cell(conditions=("none",), rules=("passive",))
    others = dataclasses.replace(unchanged, trunk_set="B")
    tdmpc = dataclasses.replace(unchanged, agent="tdmpc")
    cells = (changed, unchanged, others, tdmpc)
    plan = Plan("mine", cells, seeds=(0, 1), device="h200")
    first, second = fleets_of(plan)
    assert (len(first.branches), len(first.trunks)) == (12, 4)
    assert {trunk.trunk_set for trunk in first.trunks} == {"A", "B"}
    assert (len(second.branches), len(second.trunks)) == (2, 2)
    assert {b.id for b in (*first.branches, *second.branches)} == {
        b.id for b in plan.branches()
    }
    on_cpu = fleets_of(dataclasses.replace(plan, device="cpu"))
    assert sorted(len(f.branches) for f in on_cpu) == [1, 1, 1, 1, 1, 1, 4, 4]


def test_fleets_that_do_not_fit_are_refused() -> None:
    plan = dataclasses.replace(find_plan("table1", "paper"), device="1GiB")
    with pytest.raises(FallowError, match=r"16 branches of seed 0 need about .* GiB"):
        check_fit(plan, fleets_of(plan))
    with pytest.raises(FallowError, match="unknown device 'h20': did you mean 'h200'"):
        fleets_of(dataclasses.replace(plan, device="h20"))
    with pytest.raises(FallowError, match="unknown device 'manyGiB'"):
        fleets_of(dataclasses.replace(plan, device="manyGiB"))
    for text in ("0GiB", f"{'9' * 400}GiB", "1.5 turnips"):
        with pytest.raises(FallowError, match="write a size such as 500MB or 4GiB"):
            named_bytes(text)
    assert named_bytes("1.5MiB") == 3 << 19 and named_bytes("a100") == 79 << 30


def test_dry_run_prints_what_it_would_take(run) -> None:
    for preset in ("paper", "lean"):
        code, out, _ = run("study", "table1", "--dry-run", "--preset", preset)
        assert code == 0
        lines = {line.split()[0]: line for line in out.splitlines()}
        assert lines["branches"].split() == ["branches", "80"]
        assert lines["trunks"].split() == ["trunks", "5"]
        # 100 at first, then 2 for each step of 8 frames but for the first 625: until
        # 200,000, one step before the change at 240,000, and 330,000
        trunk, prefix, whole = (100 + 2 * (n - 625) for n in (25_000, 29_999, 41_250))
        assert lines["prefixes"].split()[1] == "20:"
        n_updates = 5 * trunk + 20 * (prefix - trunk) + 80 * (whole - prefix)
        assert f"{n_updates:,}" in lines["updates"]
        assert "GiB" in lines["memory"] and "about" in lines["time"]


def test_dry_run_counts_one_as_one(tmp_path, run) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TOML.replace("[[", "n_episodes = 1\nevaluate_frames = 9000\n[[", 1))
    code, out, _ = run("study", path, "--dry-run")
    evaluated = "1 episode at 1 branch frame, 9,000; J is the one at 9,000"
    assert code == 0 and evaluated in out


# -------------------------------------------------------------------- bad input

TOML = """
name = "mine"
preset = "tiny"
seeds = "0-1"
trunk_frames = 8000
branch_frames = 16000
shift_frame = 8000
capacity_transitions = 20000

[[cells]]
task = "cartpole-swingup"
conditions = ["none", "gain"]
rules = ["passive", "recency:window_transitions=2000"]
"""


def test_a_study_from_a_file(tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TOML)
    plan = read_toml(path)
    cell = Cell("cartpole-swingup", "dreamer", ("none", "gain"), plan.rules)
    assert plan.cells == (cell,) and plan.seeds == (0, 1)
    assert plan.branches()[-1].world_condition == "gain:shift_frame=16000"
    assert find_plan(str(path)) == plan


def test_a_study_is_run_again_from_its_plan(tmp_path) -> None:
    plan = part(STUDIES["table1"], [1, 3])
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"algorithm": ALGORITHM, "plan": plan.content()}))
    assert find_plan(str(path)) == plan
    assert find_plan(str(path), seeds="3").seeds == (3,)
    with pytest.raises(FallowError, match="there is no study at"):
        find_plan(str(tmp_path / "lost" / "plan.json"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.parent.name)
def test_a_stored_plan_can_be_run(path: Path) -> None:
    """Those of studies that are left, too: names and numbers are checked on reading."""
    assert read_toml(path).branches()


def test_the_example_file_can_be_read() -> None:
    plan = read_toml(Path(__file__).parents[2] / "examples" / "study.toml")
    assert len(plan.branches()) == 3 * 3 * 5


@pytest.mark.parametrize(
    ("line", "bad", "words"),
    [
        ('task = "cartpole-swingup"', 'task = "cartpol"', "unknown task 'cartpol'"),
        ('"gain"', '"gian"', "unknown condition 'gian': did you mean 'gain'"),
        ('"passive"', '"pasive"', "unknown rule 'pasive'"),
        ('"passive"', '"passive", "passive"', "rule 'passive' is in a cell twice"),
        ('"gain"', '"gain:shift_frame=3"', "give it once, as the study's shift_frame"),
        ('"gain"', "3", "write a list of texts"),
        ('preset = "tiny"', 'preset = "huge"', "unknown preset of dreamer 'huge'"),
        ('seeds = "0-1"', "seeds = []", "has no seeds"),
        ('seeds = "0-1"', "seeds = [0, 0]", "a seed twice"),
        ('seeds = "0-1"', 'seeds = "b"', "cannot read seeds 'b'"),
        ('seeds = "0-1"', "seeds = [-1]", "from 0 to 2,147,483,647"),
        ("shift_frame = 8000", "shift_frame = 16000", "a branch ends at 16,000"),
        ("trunk_frames = 8000", "trunk_frames = 9000", "multiples of 4,000"),
        ("trunk_frames = 8000", "trunk_frames = 0", "trunk_frames is 0"),
        ("branch_frames = 16000", "evaluate_frames = 1.5", "evaluate_frames is 1.5"),
        ("branch_frames = 16000", "branch_frame = 1", "did you mean 'branch_frames'"),
        ("capacity_transitions = 20000", "capacity_transitions = 100", "can hold 100"),
        ('name = "mine"', "", "needs a name"),
        ('name = "mine"', 'name = "a/b"', "letters, digits"),
        ("[[cells]]", "[cells]", "cells are tables"),
        ('task = "cartpole-swingup"', "colour = 1", "option of a cell 'colour'"),
        ("[[cells]]", "[[cells", "mine.toml"),
    ],
)  # fmt: skip
def test_bad_files_end_in_one_sentence(line, bad, words, tmp_path, run) -> None:
    assert line in TOML
    path = tmp_path / "mine.toml"
    path.write_text(TOML.replace(line, bad))
    code, _, error = run("study", path, "--out", tmp_path / "out")
    assert code == 2
    assert words in error and "mine.toml" in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_unknown_studies_and_impossible_bodies(tmp_path, run) -> None:
    code, _, error = run("study", "tabel1")
    assert code == 2 and "did you mean 'table1'" in error
    code, _, error = run("study", tmp_path / "nothing.toml")
    assert code == 2 and "there is no study file" in error
    code, _, error = run("study")
    assert code == 2 and "name one study" in error
    path = tmp_path / "mine.toml"
    path.write_text(TOML.replace('"gain"', '"damage:actuator=3"'))
    code, _, error = run("study", path, "--out", tmp_path / "out")
    assert code == 2 and "actuator" in error
    assert not (tmp_path / "out").exists()
    code, _, error = run("study", path, "--dry-run")
    assert code == 2 and "actuator" in error
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "plan.json").write_text("{}")
    code, _, error = run("study", tmp_path / "old")
    assert code == 2 and f"fallow study --resume {tmp_path / 'old'}" in error


def test_two_cells_must_not_hold_the_same_branch() -> None:
    cell = Cell(rules=("passive",))
    with pytest.raises(FallowError, match=r"none with passive .* is in two cells"):
        Plan("twice", (cell, cell))
    with pytest.raises(FallowError, match="has no cells"):
        Plan("nothing", ())
    with pytest.raises(FallowError, match="has no rule"):
        Cell(rules=())


def test_a_plan_takes_what_a_file_takes_and_says_what_it_cannot() -> None:
    assert Plan("mine", [Cell()], seeds="0-2,5").seeds == (0, 1, 2, 5)
    assert Plan("mine", [Cell()], seeds=3).seeds == (3,)
    with pytest.raises(FallowError, match="give a list of Cell"):
        Plan("mine", Cell())
    with pytest.raises(
        FallowError, match="conditions of a cell are none; write a list"
    ):
        Cell(conditions="none")
    with pytest.raises(FallowError, match="a study is table1; make a Plan"):
        run_study("table1", "never")
