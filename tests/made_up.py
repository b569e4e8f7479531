"""Results of made-up studies, whose J and D are known before any of our code runs.

`branch` and `table` make rows with a given J; `rows` makes those of levels as in the
paper's Table I, and `folder` writes them as an engine does, without histories.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fallow.core.results import ResultRow, write_results
from fallow.dynamics import Condition
from fallow.report.theory import stale_shares
from fallow.study import Cell, Plan
from fallow.study.store import Study, write_plan

SHIFT_FRAME, TRUNK_FRAMES = 40_000, 200_000
FRAMES = tuple(range(10_000, 130_001, 10_000))
AFTER = FRAMES[4:]
"""The nine evaluations after the shift."""
SEEDS = (0, 1, 2, 3, 4)
SPREAD = (-2.0, -1.0, 0.0, 1.0, 2.0)
"""How far each seed's J is from the mean, in units of a rule's own spread."""
TABLE1 = {
    "gain": {"passive": 177, "recency": 323, "graded": 163, "wmar": 387},
    "damage": {"passive": 232, "recency": 404, "graded": 246, "wmar": 418},
    "recurring": {"passive": 481, "recency": 290, "graded": 464, "wmar": 484},
    "none": {"passive": 936, "recency": 735, "graded": 936, "wmar": 816},
}
UNITS = {"passive": 20.0, "recency": 10.0, "graded": 20.0, "wmar": -5.0}
"""Spread of J over seeds: seed s is SPREAD[s] units above the mean."""
SWEEP = {
    "gain:g=0.9": -120,
    "gain:g=0.7": -80,
    "gain:g=0.3": 15,
    "recurring:period_frames=10000": -287,
    "recurring:period_frames=40000": -150,
    "recurring:period_frames=60000": -100,
    "recurring:period_frames=80000": -19,
}
"""Recency advantage of further conditions; their Passive is at 400."""
AUC = {10_000: 0.55, 20_000: 0.56, 40_000: 0.58, 60_000: 0.69, 80_000: 0.89}


def branch(
    condition: str,
    rule: str,
    seed: int,
    j: float,
    climb: float = 4.0,
    **changes: object,
) -> list[ResultRow]:
    """A branch whose mean return since the shift is `j`; `climb` each time."""
    rows = []
    for index, frame in enumerate(FRAMES):
        regime = 0
        if frame >= 40_000 and condition.startswith("recurring"):
            regime = 1 - (frame - 40_000) // 20_000 % 2
        elif frame >= 40_000 and condition != "none":
            regime = 1
        mean = j + climb * (index - 8) if frame > 40_000 else 900.0
        values = {
            "task": "walker-walk", "agent": "dreamer", "preset": "lean",
            "condition": condition, "rule": rule, "seed": seed, "trunk": f"t{seed}",
            "trunk_fingerprint": "",
            "frame": 200_000 + frame, "branch_frame": frame, "regime": regime,
            "updates": frame // 4, "mean_return": mean, "returns": (mean, mean),
            "auc": 1.0 if regime and condition != "recurring" else None,
        }  # fmt: skip
        rows.append(ResultRow(**(values | changes)))
    return rows


def table(
    values: Mapping[tuple[str, str], tuple[float, ...]], **changes: object
) -> list[ResultRow]:
    """Rows of branches: (condition, rule) to J of seeds 0, 1, …"""
    return [
        row
        for (condition, rule), js in values.items()
        for seed, j in enumerate(js)
        for row in branch(condition, rule, seed, j, **changes)
    ]


@dataclass(frozen=True)
class Level:
    """J of one condition and rule."""

    condition: str
    rule: str
    mean: float
    unit: float


def table1() -> list[Level]:
    """Sixteen levels."""
    return [
        Level(condition, rule, mean, UNITS[rule])
        for condition, rules in TABLE1.items()
        for rule, mean in rules.items()
    ]


PAIR = [level for level in table1() if level.condition == "gain"][:2]
"""Passive and Recency at half gain."""


def sweeps() -> list[Level]:
    """Passive, Recency of 10k and, where it recurs, of 20k: half the loss."""
    found = []
    for condition, advantage in SWEEP.items():
        found.append(Level(condition, "passive", 400, 20.0))
        found.append(Level(condition, "recency", 400 + advantage, 10.0))
        if condition.startswith("recurring"):
            wide = "recency:window_transitions=20000"
            found.append(Level(condition, wide, 400 + advantage / 2, 10.0))
    return found


def rows(
    levels: Iterable[Level],
    seeds: Sequence[int] = SEEDS,
    frames: Sequence[int] = FRAMES,
    task: str = "walker-walk",
) -> list[ResultRow]:
    """All evaluations; the mean over those from 50k on is exactly the level's J."""
    return [
        _row(level, seed, frame, task)
        for level in levels
        for seed in seeds
        for frame in frames
    ]


def _row(level: Level, seed: int, frame: int, task: str) -> ResultRow:
    schedule = Condition.parse(level.condition).schedule
    regime = schedule.regime(schedule.segment(frame))
    j = level.mean + SPREAD[seed % 5] * level.unit
    if frame <= SHIFT_FRAME:
        value = 930.0 - (150 if level.rule.startswith("recency") else 0) + seed
    else:  # rises around its mean: -4 to 4 over the nine evaluations
        value = j + 10 * ((frame - SHIFT_FRAME) // 10_000 - 5)
    return ResultRow(
        task=task,
        agent="dreamer",
        preset="lean",
        condition=level.condition,
        rule=level.rule,
        seed=seed,
        trunk=f"trunk-{seed}",
        trunk_fingerprint="",
        frame=TRUNK_FRAMES + frame,
        branch_frame=frame,
        regime=-1 if regime is None else regime,
        updates=frame // 4,
        mean_return=value,
        returns=tuple(value + d for d in (-9, -7, -5, -3, -1, 1, 3, 5, 7, 9)),
        auc=_auc(level.condition, frame),
        stale_share=_stale_share(level, frame),
        wall_s=frame / 100,
    )


def _auc(condition: str, frame: int) -> float | None:
    schedule = Condition.parse(condition).schedule
    if schedule.shift_frame is None or frame < SHIFT_FRAME:
        return None
    period = schedule.segment_frames
    return 1.0 if period is None else AUC.get(period, 0.6)


def _stale_share(level: Level, frame: int) -> float:
    window = 20_000 if "20000" in level.rule else 10_000
    shares = stale_shares(Condition.parse(level.condition), TRUNK_FRAMES, frame, window)
    if level.rule.startswith("recency"):
        return shares.rho_w
    return (shares.rho + shares.rho_w) / 2 if level.rule == "wmar" else shares.rho


def folder(
    path: Path,
    evaluations: Sequence[ResultRow],
    seeds: Sequence[int] = SEEDS,
    plan: Plan | None = None,
    **numbers: object,
) -> Path:
    """A study's folder as an engine leaves it, without histories."""
    plan = plan or plan_of(path.name, evaluations, seeds, **numbers)
    study = Study(path, plan, plan.trunks(), plan.branches(), (), path.parent)
    write_plan(study)
    trunks = {(t.task, t.seed, t.trunk_set): t.id for t in plan.trunks()}
    write_results(
        path / "results.csv",
        [
            replace(row, trunk=trunks.get((row.task, row.seed, "A"), row.trunk))
            for row in evaluations
        ],
    )
    return path


def plan_of(
    name: str, evaluations: Sequence[ResultRow], seeds: Sequence[int], **numbers
) -> Plan:
    """A plan that asks for just these rows: a cell for each task and condition."""
    rules: dict[tuple[str, str], dict[str, None]] = {}
    for row in evaluations:
        rules.setdefault((row.task, row.condition), {})[row.rule] = None
    cells = tuple(
        Cell(task, "dreamer", (condition,), tuple(each))
        for (task, condition), each in rules.items()
    )
    return Plan(name, cells, seeds=tuple(seeds), **numbers)


def known_advantage(condition: str) -> tuple[float, float]:
    """Mean and standard error of D by hand: the units differ by 10, so does D."""
    gap = UNITS["recency"] - UNITS["passive"]
    each = np.array(SPREAD) * gap
    if condition in TABLE1:
        mean = TABLE1[condition]["recency"] - TABLE1[condition]["passive"]
    else:
        mean = SWEEP[condition]
    return float(mean), float(np.sqrt((each**2).sum() / 4 / 5))
