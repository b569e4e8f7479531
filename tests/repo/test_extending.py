"""One new rule, condition, task, log format and agent: listed, run and reported."""

import importlib
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import EXAMPLES

from fallow.agents import AGENTS
from fallow.core.results import read_results
from fallow.dynamics.conditions import CONDITIONS
from fallow.dynamics.tasks import TASKS
from fallow.logs.readers import READERS, read_log
from fallow.replay import RULES
from fallow.study import Cell, Plan
from fallow.study.engines import run_study

REGISTRIES = (TASKS, CONDITIONS, RULES, AGENTS, READERS)
NAMES = {
    "tasks": "pendulum-rest",
    "conditions": "viscous",
    "rules": "newer",
    "agents": "noise",
    "formats": "jsonl",
}
FILES = ("rule", "condition", "task", "log_format", "agent")


@pytest.fixture(scope="module")
def extended(tmp_path_factory):
    """A package of somebody else, one file a thing; the registries are put back."""
    folder = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(EXAMPLES / "extending", folder / "extension")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        for registry in REGISTRIES:
            patch.setattr(registry, "_entries", dict(registry._entries))
        for name in FILES:
            importlib.import_module(f"extension.{name}")
        yield
    for name in [name for name in sys.modules if name.startswith("extension")]:
        del sys.modules[name]


def test_they_are_listed(extended, run) -> None:
    code, out, _ = run("list", "--json")
    names = json.loads(out)
    assert code == 0
    assert {group: names[group][-1] for group in NAMES} == NAMES
    assert "random actions, a mean reward; presets tiny" in run("list")[1]


def test_a_study_of_them_is_run_and_reported(
    extended, tmp_path: Path, run, only_svg
) -> None:
    cell = Cell("pendulum-rest", "noise", ("viscous",), ("passive", "newer"))
    numbers = {
        "trunk_frames": 1_000,
        "branch_frames": 500,
        "shift_frame": 250,
        "evaluate_frames": 500,
        "n_episodes": 1,
        "save_frames": 1_000,
        "capacity_transitions": 1_000,
    }
    folder = tmp_path / "study"
    run_study(Plan("mine", (cell,), preset="tiny", seeds=(0,), **numbers), folder)
    rows = read_results(folder / "results.csv")
    assert [(row.condition, row.rule, row.regime) for row in rows] == [
        ("viscous", "passive", 1),
        ("viscous", "newer", 1),
    ]
    # both rules see the same start, and an agent that never moves
    assert rows[0].mean_return == rows[1].mean_return > 0
    code, out, _ = run("report", folder, "--tables")
    assert code == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    for shown in ("Viscous joints", "Newer half"):
        assert shown in out and shown in page


def test_a_log_of_the_format_is_read(extended, tmp_path: Path, run) -> None:
    random = np.random.default_rng(0)
    path = tmp_path / "robot.jsonl"
    action = random.uniform(-1, 1, (200, 2))
    velocity = np.cumsum(action, axis=0)
    steps = [
        {"episode": i // 50, "action": a.tolist(), "velocity": v.tolist()}
        for i, (a, v) in enumerate(zip(action, velocity, strict=True))
    ]
    path.write_text("\n".join(json.dumps(step) for step in steps))
    log = read_log(path)
    assert (log.format, log.n_episodes) == ("jsonl", 4)
    assert run("diagnose", path)[0] in (0, 2)  # read; 2: too short to decide
