"""Checks of a plan: names exist and numbers are possible."""

import re
from collections import Counter
from typing import TYPE_CHECKING

from fallow.agents import AGENTS
from fallow.core import options
from fallow.core.errors import FallowError
from fallow.core.text import counted
from fallow.dynamics.conditions import Condition
from fallow.dynamics.tasks import ACTION_REPEAT, EPISODE_FRAMES, TASKS
from fallow.replay.ledger import MAX_TRANSITIONS, Ledger
from fallow.replay.rules import Rule
from fallow.study.devices import named_bytes

if TYPE_CHECKING:
    from fallow.study.plan import Cell, Plan

MAX_NAME = 100
NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_NAME - 1}}}")
"""It becomes the name of a folder."""
LIMITS = {
    "trunk_frames": (1, 10**10),
    "branch_frames": (1, 10**10),
    "shift_frame": (0, 10**10),
    "evaluate_frames": (1, 10**10),
    "offset_frames": (0, 10**10),
    "n_episodes": (1, 10_000),
    "save_frames": (1, 10**10),
    "capacity_transitions": (1, MAX_TRANSITIONS),
    "seeds_per_fleet": (0, options.MAX_SEEDS),
}
"""The smallest and the largest value of every number of a plan."""
TEXTS = ("name", "preset", "device")
MAX_BRANCHES = 100_000
"""Of a plan; more is taken for a typing error."""


def check_cell(cell: "Cell") -> None:
    """Raise if a name is unknown, or something is given twice or not at all."""
    for name in ("task", "agent", "trunk_set"):
        options.check_text("a cell", name, getattr(cell, name))
    for name in ("conditions", "rules"):
        for text in getattr(cell, name):
            options.check_text("a cell", f"one of its {name}", text)
    _ = TASKS[cell.task], AGENTS[cell.agent]
    for text in cell.conditions:
        if "shift_frame" in options.parse(text)[1]:
            raise FallowError(
                f"condition '{text}': in a study all changes come at one frame after "
                "the branch point; give it once, as the study's shift_frame"
            )
    for kind, texts in (("condition", cell.conditions), ("rule", cell.rules)):
        if not texts:
            raise FallowError(f"a cell of {cell.task} has no {kind}; give at least one")
        parsed = [
            str(Condition.parse(text) if kind == "condition" else Rule.parse(text))
            for text in texts
        ]
        for text in parsed:
            if parsed.count(text) > 1:
                raise FallowError(f"{kind} '{text}' is in a cell twice; give it once")


def check_plan(plan: "Plan") -> None:
    """Raise if a number is impossible or two numbers do not go together."""
    for name in TEXTS:
        options.check_text("a study", name, getattr(plan, name))
    if not NAME.fullmatch(plan.name):
        raise FallowError(
            f"a study is called '{options.shown(plan.name)}'; write its name with "
            f"letters, digits, - and _, {MAX_NAME} at most, a letter or digit first"
        )
    owner = f"study '{plan.name}'"
    if not plan.cells:
        raise FallowError(f"{owner} has no cells; give at least one")
    for name, (least, most) in LIMITS.items():
        options.check_int(owner, name, getattr(plan, name), least, most)
    named_bytes(plan.device)
    _check_seeds(plan, owner)
    _check_size(plan, owner)
    if plan.shift_frame >= plan.branch_frames:
        raise FallowError(
            f"{owner}: shift_frame is {plan.shift_frame:,} and a branch ends at "
            f"{plan.branch_frames:,}; let the change come earlier"
        )
    if plan.offset_frames >= plan.evaluate_frames:
        raise FallowError(
            f"{owner}: offset_frames is {plan.offset_frames:,} and evaluate_frames "
            f"{plan.evaluate_frames:,}; choose an offset below the interval"
        )
    if not plan.evaluation_frames:
        raise FallowError(
            f"{owner}: the first evaluation is at branch frame "
            f"{plan.offset_frames or plan.evaluate_frames:,} and a branch ends at "
            f"{plan.branch_frames:,}; choose smaller evaluate_frames or offset_frames"
        )
    for cell in plan.cells:
        _check_lengths(plan, cell, owner)
        _check_rules(plan, cell)
    counts = Counter(branch.id for branch in plan.branches())
    for branch in plan.branches():
        if counts[branch.id] > 1:
            raise FallowError(
                f"{owner}: {branch.condition} with {branch.rule} of {branch.agent} on "
                f"{branch.task} is in two cells of one trunk set; give it once"
            )


def _check_size(plan: "Plan", owner: str) -> None:
    """Raise if there are more branches than anyone can mean, before they are listed."""
    each = sum(len(cell.conditions) * len(cell.rules) for cell in plan.cells)
    if each * len(plan.seeds) > MAX_BRANCHES:
        raise FallowError(
            f"{owner} has {each * len(plan.seeds):,} branches and {MAX_BRANCHES:,} is "
            "the limit; split it"
        )


def n_worlds_of(agent: str, preset: str) -> int:
    """Number of parallel worlds of an agent and preset."""
    return int(getattr(AGENTS[agent].sizes(preset), "n_worlds", 1))


def _check_seeds(plan: "Plan", owner: str) -> None:
    if not plan.seeds:
        raise FallowError(
            f'{owner} has no seeds; give at least one, e.g. seeds = "0-4"'
        )
    if len(plan.seeds) > options.MAX_SEEDS:
        raise FallowError(
            f"{owner} has {len(plan.seeds):,} seeds and {options.MAX_SEEDS:,} is the "
            "limit; split it"
        )
    for seed in plan.seeds:
        options.check_int(owner, "a seed", seed, 0, 2**31 - 1)
    if len(set(plan.seeds)) < len(plan.seeds):
        raise FallowError(f"{owner} has a seed twice: {plan.seeds}; give each once")


def _check_lengths(plan: "Plan", cell: "Cell", owner: str) -> None:
    n_worlds = n_worlds_of(cell.agent, plan.preset)
    episodes = n_worlds * EPISODE_FRAMES
    if plan.trunk_frames % episodes:
        raise FallowError(
            f"{owner}: trunk_frames is {plan.trunk_frames:,}; {cell.agent} has "
            f"{counted(n_worlds, 'world')}, so episodes end at multiples of "
            f"{episodes:,}: choose one of these"
        )
    step = n_worlds * ACTION_REPEAT
    if plan.offset_frames % step:  # evaluations would fall between two steps
        raise FallowError(
            f"{owner}: offset_frames is {plan.offset_frames:,}; a step of "
            f"{cell.agent}'s worlds is {step} frames, so give a multiple of that"
        )


def _check_rules(plan: "Plan", cell: "Cell") -> None:
    """Raise if a rule needs more than the buffer holds."""
    ledger = Ledger(n_worlds_of(cell.agent, plan.preset), plan.capacity_transitions)
    for rule in cell.rules:
        Rule.parse(rule).check(ledger)
