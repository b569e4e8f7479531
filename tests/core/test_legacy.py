"""What earlier versions wrote keeps its meaning: tables, plans, checkpoints."""

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from fallow.agents import runs
from fallow.core import legacy
from fallow.core.errors import FallowError
from fallow.core.legacy import ALGORITHM
from fallow.core.results import ResultRow, read_results, write_results
from fallow.dynamics.conditions import Condition
from fallow.logs.history import Header, HistoryWriter, read_history
from fallow.replay import Rule
from fallow.report.names import rule_name
from fallow.report.tables import study_tables
from fallow.study.engines import run_study
from fallow.study.named import read_toml
from fallow.study.plan import Plan
from fallow.study.results import read_study_results
from fallow.study.rows import modern_condition, read_rows
from fallow.study.store import read_study

ROOT = Path(__file__).parents[2]
SAMPLE = Path(__file__).parents[1] / "data" / "before" / "study-algorithm-1.tar.gz"
TABLE1 = ROOT / "results" / "walker-table1"


@pytest.mark.parametrize(
    ("text", "task", "modern"),
    [
        ("damage", "walker-walk", "damage:actuator=1"),
        ("damage", "cartpole-swingup", "damage"),
        ("damage:actuator=0", "walker-walk", "damage"),
        ("damage:shift_frame=7", "walker-walk", "damage:actuator=1,shift_frame=7"),
        ("damping", "walker-walk", "damping:draw_frames=1000"),
        ("friction", "walker-walk", "friction:draw_frames=1000,std=0.01"),
        (
            "friction:start=0.5",
            "walker-walk",
            "friction:draw_frames=1000,start=0.5,std=0.01",
        ),
        (
            "friction:schedule=permanent,level=0.1",
            "walker-walk",
            "friction:schedule=permanent,level=0.1",
        ),
        (
            "gain:schedule=random_walk",
            "walker-walk",
            "gain:schedule=random_walk,draw_frames=1000",
        ),
        ("gain:g=0.7", "walker-walk", "gain:g=0.7"),
        ("none", "walker-walk", "none"),
    ],
)
def test_conditions_of_algorithm_1(text: str, task: str, modern: str) -> None:
    assert modern_condition(text, task) == modern
    assert str(Condition.parse(modern)) == modern


def test_a_stored_table_i_is_the_knees_on_the_grid_of_then() -> None:
    plan = Plan.read(TABLE1)
    assert plan.offset_frames == 5_000
    assert plan.return_frames == tuple(range(45_000, 125_001, 10_000))
    assert "damage:actuator=1" in plan.conditions and "damage" not in plan.conditions
    assert "wmar" in plan.rules
    rows = read_rows(TABLE1 / "results.csv")
    assert {row.condition for row in rows} == set(plan.conditions)
    assert {row.rule for row in rows} == set(plan.rules)
    listed = json.loads((TABLE1 / "plan.json").read_text())["branches"]
    study = read_study(TABLE1)
    assert [branch.id for branch in study.branches] == [one["id"] for one in listed]
    assert study.branches[8].world_condition == "damage:actuator=1,shift_frame=240000"


def test_a_stored_table_i_has_its_numbers_and_names_its_grid() -> None:
    made, *_ = study_tables(read_study_results(TABLE1))
    texts = made.texts()
    assert made.title.startswith("Table I: Walker return after the shift")
    assert texts[0] == ["Gain reduction", "ours", "1.00", "208 ± 28", "222 ± 49",
                        "202 ± 27", "297 ± 38"]  # fmt: skip
    assert texts[2][:4] == ["Actuator damage (actuator=1)", "ours", "1.00", "490 ± 84"]
    assert texts[3][1:4] == ["the paper", "1.00", "232 ± 40"]
    assert "WMAR" in made.head
    assert "evaluations at branch frames 45,000, 55,000, …, 125,000" in made.notes[0]


@pytest.fixture
def before(tmp_path) -> Path:
    """A study that version 082d9ec was stopped in, at branch frame 600 of 1,200."""
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def test_a_study_of_before_goes_on(before) -> None:
    """As then: the same dynamics, rules and grid; the rows of then stay."""
    study = read_study(before / "study")
    old = read_rows(before / "study" / "results.csv")
    assert {row.condition for row in old} == {"damage:actuator=1"}
    run_study(study.plan, before / "study")
    rows = read_results(before / "study" / "results.csv")
    then = read_rows(before / "finished.csv")
    assert [row.branch_frame for row in rows] == [200, 200, 600, 600, 1000, 1000]
    for now, one in zip(rows, then, strict=True):
        assert (now.condition, now.rule) == (one.condition, one.rule)
        assert (now.updates, now.regime, now.auc) == (one.updates, one.regime, one.auc)
        assert now.stale_share == pytest.approx(one.stale_share, abs=1e-6)
        assert now.mean_return == pytest.approx(one.mean_return, rel=0.05)


def test_a_run_of_before_is_read_with_its_defaults(tmp_path) -> None:
    content = {
        "task": "walker-walk",
        "agent": "dreamer",
        "preset": "tiny",
        "branches": [
            {"seed": 0, "condition": "damage", "rule": "wmar"},
            {"seed": 0, "condition": "damage", "rule": "reservoir"},
        ],
        "until_frame": 4000,
        "evaluate_frames": 1000,
        "n_episodes": 10,
        "save_frames": 20000,
        "capacity_transitions": 200000,
        "histories": True,
    }
    (tmp_path / "run.json").write_text(json.dumps(content))
    run = runs.Run.read(tmp_path)
    assert run.offset_frames == 500 and run.algorithm == ALGORITHM
    assert [branch.condition for branch in run.branches] == ["damage:actuator=1"] * 2
    assert [branch.rule for branch in run.branches] == ["wmar", "reservoir:unit=chunk"]
    run.write(tmp_path)  # the same run: its file stays
    assert json.loads((tmp_path / "run.json").read_text()) == content
    content |= {"algorithm": 2, "offset_frames": 0}
    (tmp_path / "run.json").write_text(json.dumps(content))
    run = runs.Run.read(tmp_path)
    assert run.offset_frames == 0 and run.algorithm == ALGORITHM
    assert [branch.condition for branch in run.branches] == ["damage"] * 2
    assert [branch.rule for branch in run.branches] == ["wmar", "reservoir:unit=chunk"]


@pytest.mark.parametrize(
    ("about", "condition"),
    [
        ({"condition": "damage"}, "damage:actuator=1"),
        ({"condition": "damage", "algorithm": 2}, "damage"),
        ({"condition": "damage:actuator=0"}, "damage"),
        ({"condition": "recurring"}, "recurring"),
    ],
)
def test_a_history_of_before_names_its_joint(about, condition, tmp_path) -> None:
    names = tuple("abcdef")
    header = Header(
        columns=names, actuators=names, actuator_velocity=(0, 1, 2, 3, 4, 5),
        control_step_s=0.05, about=about,
    )  # fmt: skip
    HistoryWriter(tmp_path / "h.fallow", header).close()
    found = read_history(tmp_path / "h.fallow").header.about
    assert found["condition"] == condition and found["algorithm"] == ALGORITHM


def test_a_history_of_algorithm_2_goes_on(tmp_path) -> None:
    header = Header(
        columns=("a",), actuators=("a",), actuator_velocity=(0,), control_step_s=0.05,
        about={"condition": "damage", "algorithm": 2},
    )  # fmt: skip
    HistoryWriter(tmp_path / "h.fallow", header).close()
    today = {"condition": "damage", "algorithm": ALGORITHM}
    HistoryWriter(tmp_path / "h.fallow", replace(header, about=today)).close()
    with pytest.raises(FallowError, match="another header"):
        HistoryWriter(tmp_path / "h.fallow", replace(header, about={}))


@pytest.mark.parametrize(
    ("text", "modern"),
    [
        ("reservoir", "reservoir:unit=chunk"),
        ("reservoir:unit=chunk", "reservoir:unit=chunk"),
        ("reservoir:unit=episode", "reservoir"),
        (
            "reservoir:budget_transitions=500,unit=episode",
            "reservoir:budget_transitions=500",
        ),
        (
            "reservoir:budget_transitions=2048",
            "reservoir:budget_transitions=2048,unit=chunk",
        ),
        (
            "reservoir:stretch_transitions=512",
            "reservoir:unit=chunk,stretch_transitions=512",
        ),
        (
            "reservoir:budget_transitions=2048,stretch_transitions=512",
            "reservoir:budget_transitions=2048,unit=chunk,stretch_transitions=512",
        ),
        ("recency:window_transitions=500", "recency:window_transitions=500"),
    ],
)
def test_rules_of_algorithms_1_and_2(text: str, modern: str) -> None:
    assert legacy.rule(text) == modern
    assert str(Rule.parse(modern)) == modern


def test_a_rule_that_cannot_be_read_stays() -> None:
    for text in ("reservoir:unit", "somebody:x=1", ""):
        assert legacy.rule(text) == text


@pytest.mark.parametrize("algorithm", [1, 2, ALGORITHM])
def test_a_reservoir_of_before_keeps_chunks(algorithm: int, tmp_path) -> None:
    rules = ["passive", "reservoir", "reservoir:unit=episode"]
    if algorithm == ALGORITHM:
        rules[2] = "reservoir:unit=chunk"
    cells = [{"conditions": ["gain"], "rules": rules}]
    content = {"algorithm": algorithm, "plan": {"name": "mine", "cells": cells}}
    (tmp_path / "plan.json").write_text(json.dumps(content))
    plan = Plan.read(tmp_path)
    expected = ["passive", "reservoir:unit=chunk", "reservoir"]
    assert sorted(plan.rules) == sorted(expected)
    if algorithm != ALGORITHM:
        assert list(plan.rules) == expected


@pytest.mark.parametrize("n_left_out", [0, 1, 2])
def test_rows_of_before_keep_chunks(n_left_out: int, tmp_path) -> None:
    """A table says by its columns what wrote it; a row, too, where it can."""
    names = ["task", "agent", "preset", "condition", "rule", "seed", "trunk"]
    row = ResultRow(
        "walker-walk", "dreamer", "lean", "damage", "reservoir", 0, "ab", "cd",
        1, 1, 0, 0, 1.0, (1.0,),
    )  # fmt: skip
    path = write_results(tmp_path / "results.csv", [row])
    columns = [line.split(",") for line in path.read_text().splitlines()]
    for name in ("algorithm", "trunk_fingerprint")[:n_left_out]:
        at = columns[0].index(name)
        for line in columns:
            del line[at]
    assert columns[0][:7] == names
    path.write_text("".join(",".join(line) + "\n" for line in columns))
    (found,) = read_results(path)
    assert found.algorithm == ALGORITHM - n_left_out and found.rule == "reservoir"
    (found,) = read_rows(path)
    assert found.algorithm == ALGORITHM
    assert found.rule == ("reservoir:unit=chunk" if n_left_out else "reservoir")
    assert found.condition == ("damage:actuator=1" if n_left_out == 2 else "damage")
    write_results(path, [found])
    assert read_rows(path) == [found]


def test_both_stored_tables_ii_name_what_they_kept() -> None:
    chunks, episodes = (ROOT / "results" / n for n in ("walker-table2", "table2"))
    for folder, rule in ((chunks, "reservoir:unit=chunk"), (episodes, "reservoir")):
        study = read_study(folder)
        assert rule in study.plan.rules
        assert {row.rule for row in read_rows(folder / "results.csv")} == set(
            study.plan.rules
        )
        assert read_toml(folder / "study.toml").cells == study.plan.cells
        listed = json.loads((folder / "plan.json").read_text())["branches"]
        assert [branch.id for branch in study.branches] == [one["id"] for one in listed]
        made, *_ = study_tables(read_study_results(folder))
        at = made.head.index(rule_name(rule))
        assert [texts[at] for texts in made.texts()[1:4:2]] == ["128 ± 14", "249 ± 14"]
    assert "reservoir" not in Plan.read(chunks).rules
