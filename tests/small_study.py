"""A study so small that it runs in seconds, shared by the tests and their processes."""

import dataclasses

from test_fleet import MICRO, TASK

from fallow.agents.dreamer.config import PRESETS
from fallow.results import Evaluation, read_results
from fallow.study import Cell, Plan

PRESET = "micro-study"
SMALL = dataclasses.replace(
    MICRO, n_worlds=1, train_ratio=8, prefill_transitions=70, horizon=3
)
SAVE_FRAMES = 200
UPDATES_PER_FRAME = 8 / (2 * 8) / 2  # train ratio, batch of 2 x 8, 2 frames a step


def register() -> None:
    """Make the preset known; also called by processes that tests start."""
    if PRESET not in PRESETS:
        PRESETS.add(PRESET, SMALL)


def small_plan(
    conditions: tuple[str, ...] = ("none", "gain"),
    rules: tuple[str, ...] = ("passive", "recency:window_transitions=100"),
    seeds: tuple[int, ...] = (0,),
    **numbers,
) -> Plan:
    register()
    defaults = {
        "preset": PRESET,
        "trunk_frames": 1000,
        "branch_frames": 600,
        "shift_frame": 200,
        "evaluate_frames": 200,
        "n_episodes": 1,
        "save_frames": SAVE_FRAMES,
        "capacity_transitions": 2000,
    }
    cell = Cell(TASK, "dreamer", conditions, rules)
    return Plan("small", (cell,), seeds=seeds, **(defaults | numbers))


def rows_but_time(path) -> list[Evaluation]:
    return [dataclasses.replace(row, wall_s=None) for row in read_results(path)]
