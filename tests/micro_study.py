"""A study so small that it runs in seconds, shared by the tests and their processes."""

import dataclasses
import os
import sys
from pathlib import Path

from small_dreamer import MICRO

from fallow.agents.dreamer.config import PRESETS
from fallow.agents.fleet import Fleet
from fallow.core.results import ResultRow, read_results
from fallow.study import Cell, Plan

PRESET = "micro-study"
SMALL = dataclasses.replace(
    MICRO, n_worlds=1, train_ratio=4, prefill_transitions=70, horizon=3
)
SAVE_FRAMES = 200
UPDATES_PER_SAVE = 25  # 100 steps, a quarter of one each: 4 replayed of 2 x 8
CAPACITY = 2000
EVERYTHING = f"recency:window_transitions={CAPACITY}"


def register() -> None:
    """Make the preset known; also called by processes that tests start."""
    if PRESET not in PRESETS:
        PRESETS.add(PRESET, SMALL)


register()


def small_plan(
    conditions: tuple[str, ...] = ("none", "gain:g=1.0", "recurring:period_frames=200"),
    rules: tuple[str, ...] = ("passive", EVERYTHING),
    seeds: tuple[int, ...] = (0,),
    **numbers,
) -> Plan:
    defaults = {
        "preset": PRESET,
        "trunk_frames": 1000,
        "branch_frames": 500,
        "shift_frame": 200,
        "evaluate_frames": 200,  # where checkpoints are written, too
        "n_episodes": 1,
        "save_frames": SAVE_FRAMES,
        "capacity_transitions": CAPACITY,
    }
    cell = Cell("cartpole-swingup", "dreamer", conditions, rules)
    return Plan("small", (cell,), seeds=seeds, **(defaults | numbers))


TRACKED_PLAN = small_plan(rules=("passive", EVERYTHING, "adaptive"))
"""With a tracker in every third branch."""


def rows_but_time(path: Path) -> list[ResultRow]:
    return [dataclasses.replace(row, wall_s=None) for row in read_results(path)]


def count_updates(path: str) -> None:
    """From now on, every update of every branch adds a byte to a file."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    step = Fleet.step

    def counted(fleet: Fleet):
        before = fleet.learners.n_updates
        result = step(fleet)
        os.write(
            file, b"." * ((fleet.learners.n_updates - before) * len(fleet.branches))
        )
        return result

    Fleet.step = counted


def in_worker() -> None:
    """What a worker of a cluster does first; importing this registered the preset."""
    count_updates(os.environ["COUNTER"])


if __name__ == "__main__":  # python micro_study.py FOLDER COUNTER
    from fallow.agents.compiling import keep_compiled
    from fallow.study.engines import run_study

    keep_compiled()
    count_updates(sys.argv[2])
    run_study(TRACKED_PLAN, sys.argv[1])
