"""A small study as an engine leaves it: histories of bodies moved by a script.

The numbers are made up; the histories are simulated, and have real changes in them.
"""

import dataclasses
import shutil
from pathlib import Path

import numpy as np

from fallow.core.results import ResultRow, write_results
from fallow.dynamics import EPISODE_FRAMES, Condition, Worlds
from fallow.dynamics.scripted import Scripted
from fallow.logs import Recorder
from fallow.study import Cell, Plan
from fallow.study.planned import PlannedBranch, shifted
from fallow.study.store import Study, write_plan

TASK = "cheetah-run"
TRUNK_EPISODES, BRANCH_EPISODES, SHIFT_EPISODES = 12, 16, 6
TRUNK_FRAMES = TRUNK_EPISODES * EPISODE_FRAMES
SHIFT_FRAME = SHIFT_EPISODES * EPISODE_FRAMES
FRAMES = (4_000, 8_000, 12_000, 16_000)
CONDITIONS = ("none", "gain", "recurring:period_frames=4000")
RULES = ("passive", "recency", "graded")
LEVEL = {"passive": 100.0, "recency": 130.0, "graded": 90.0}


def plan(name: str, seeds: tuple[int, ...]) -> Plan:
    """Three conditions and three rules on one body."""
    return Plan(
        name,
        (Cell(TASK, "dreamer", CONDITIONS, RULES),),
        preset="tiny",
        seeds=seeds,
        trunk_frames=TRUNK_FRAMES,
        branch_frames=BRANCH_EPISODES * EPISODE_FRAMES,
        shift_frame=SHIFT_FRAME,
        evaluate_frames=4_000,
    )


def write(folder: Path, seeds: tuple[int, ...] = (0, 1)) -> Path:
    """A complete study; every rule of a seed has the same episodes."""
    planned = plan(folder.name, seeds)
    for trunk in planned.trunks():
        record(folder, trunk.id, "none", trunk.seed, 0, TRUNK_EPISODES)
    recorded: dict[tuple[str, int], str] = {}
    for branch in planned.branches():
        first = recorded.setdefault((branch.condition, branch.seed), branch.id)
        if first == branch.id:
            place = (branch.seed, TRUNK_FRAMES, BRANCH_EPISODES)
            record(
                folder,
                branch.id,
                shifted(branch.condition, TRUNK_FRAMES + SHIFT_FRAME),
                *place,
            )
        else:
            histories = folder / "histories"
            shutil.copyfile(
                histories / f"{first}.fallow", histories / f"{branch.id}.fallow"
            )
    members = (planned.trunks(), planned.branches(), ())
    made_with = {"versions": {"fallow": "0.0", "mujoco": "3.17.0"}}
    made_with |= {"git_commit": "abc1234"}
    write_plan(Study(folder, planned, *members, folder.parent, made_with))
    rows = [row for branch in planned.branches() for row in rows_of(branch)]
    write_results(folder / "results.csv", rows)
    return folder


def history(folder: Path, rule: str = "", condition: str = "gain") -> Path:
    """The history of a branch of seed 0, or without a rule of its trunk."""
    planned = plan(folder.name, (0,))
    if not rule:
        return folder / "histories" / f"{planned.trunks()[0].id}.fallow"
    (branch,) = (
        b for b in planned.branches() if (b.rule, b.condition) == (rule, condition)
    )
    return folder / "histories" / f"{branch.id}.fallow"


def record(
    folder: Path, name: str, condition: str, seed: int, clock: int, n_episodes: int
) -> None:
    """Write one history, beginning at a frame of the agent's clock."""
    worlds = Worlds(TASK, condition, seed, n_threads=1)
    worlds.set_clock(clock)
    policy = Scripted(worlds.n_actuators, worlds.control_step_s, seed)
    n_steps = EPISODE_FRAMES // worlds.action_repeat
    with Recorder(worlds, folder / "histories" / f"{name}.fallow") as recorder:
        for episode in range(n_episodes):
            number = episode + clock // EPISODE_FRAMES
            for action in policy.actions(number, n_steps).astype(np.float32):
                recorder.add(action[None, None], worlds.step(action[None, None]))


def rows_of(branch: PlannedBranch) -> list[ResultRow]:
    """Evaluations of one branch."""
    schedule = Condition.parse(
        shifted(branch.condition, TRUNK_FRAMES + SHIFT_FRAME)
    ).schedule
    found = []
    for frame in FRAMES:
        value = LEVEL[branch.rule] + 5 * branch.seed + frame / 1000
        found.append(
            ResultRow(
                **dataclasses.asdict(branch.label),
                frame=TRUNK_FRAMES + frame,
                branch_frame=frame,
                regime=schedule.regime(schedule.segment(TRUNK_FRAMES + frame)) or 0,
                updates=frame,
                mean_return=value,
                returns=(value - 1, value + 1),
                stale_share=0.5,
            )
        )
    return found
