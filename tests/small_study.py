"""A small study as an engine leaves it: histories of bodies moved by a script.

The numbers are made up; the histories are simulated, and have real changes in them.
"""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np

from fallow.core.results import Evaluation, write_results
from fallow.dynamics import EPISODE_FRAMES, Condition, Worlds
from fallow.dynamics.scripted import Scripted
from fallow.logs import Recorder

TASK = "cheetah-run"
TRUNK_EPISODES, BRANCH_EPISODES, SHIFT_EPISODES = 12, 16, 6
TRUNK_FRAMES = TRUNK_EPISODES * EPISODE_FRAMES
SHIFT_FRAME = SHIFT_EPISODES * EPISODE_FRAMES
FRAMES = (2_000, 6_000, 10_000, 14_000)
CONDITIONS = ("none", "gain", "recurring:period_frames=4000")
RULES = ("passive", "recency", "graded")
LEVEL = {"passive": 100.0, "recency": 130.0, "graded": 90.0}


def write(folder: Path, seeds: tuple[int, ...] = (0, 1)) -> Path:
    """A whole study; every rule of a seed lives through the same episodes."""
    branches = [
        {
            "task": TASK,
            "agent": "dreamer",
            "preset": "tiny",
            "condition": condition,
            "rule": rule,
            "seed": seed,
            "trunk": f"trunk{seed}",
            "id": f"{condition.partition(':')[0]}-{rule}-{seed}",
        }
        for seed in seeds
        for condition in CONDITIONS
        for rule in RULES
    ]
    for seed in seeds:
        record(folder, f"trunk{seed}", "none", seed, 0, TRUNK_EPISODES)
    for branch in branches:
        shifted = world_condition(str(branch["condition"]))
        place = (int(branch["seed"]), TRUNK_FRAMES, BRANCH_EPISODES)
        own = folder / "histories" / f"{branch['id']}.fallow"
        first = own.with_stem(str(branch["id"]).replace(str(branch["rule"]), RULES[0]))
        if first == own:
            record(folder, own.stem, shifted, *place)
        else:
            shutil.copyfile(first, own)
    write_results(folder / "results.csv", [r for b in branches for r in rows(b)])
    (folder / "plan.json").write_text(json.dumps(plan(folder.name, seeds, branches)))
    return folder


def plan(name: str, seeds: tuple[int, ...], branches: list[dict]) -> dict:
    """What stands in `plan.json`."""
    cell = {"task": TASK, "agent": "dreamer", "trunk_set": "A"}
    cell |= {"conditions": list(CONDITIONS), "rules": list(RULES)}
    return {
        "plan": {
            "name": name,
            "cells": [cell],
            "preset": "tiny",
            "seeds": list(seeds),
            "trunk_frames": TRUNK_FRAMES,
            "branch_frames": BRANCH_EPISODES * EPISODE_FRAMES,
            "shift_frame": SHIFT_FRAME,
        },
        "branches": branches,
        "versions": {"fallow": "0.0", "mujoco": "3.17.0"},
        "git_commit": "abc1234",
    }


def world_condition(condition: str) -> str:
    """A condition on the agent's clock, trunk included."""
    own = Condition.parse(condition)
    if own.schedule.shift_frame is None:
        return condition
    moved = dataclasses.replace(own.schedule, shift_frame=TRUNK_FRAMES + SHIFT_FRAME)
    return str(dataclasses.replace(own, schedule=moved))


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


def rows(branch: dict) -> list[Evaluation]:
    """Evaluations of one branch."""
    schedule = Condition.parse(world_condition(branch["condition"])).schedule
    found = []
    for frame in FRAMES:
        value = LEVEL[branch["rule"]] + 5 * branch["seed"] + frame / 1000
        names = {key: value for key, value in branch.items() if key != "id"}
        found.append(
            Evaluation(
                **names,
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
