"""What a plan must hold: names that exist and numbers that are possible."""

from typing import TYPE_CHECKING

from fallow.agents import AGENTS
from fallow.core import options
from fallow.core.errors import FallowError
from fallow.dynamics.conditions import Condition
from fallow.dynamics.tasks import EPISODE_FRAMES, TASKS
from fallow.replay.book import Book
from fallow.replay.rules import Rule

if TYPE_CHECKING:
    from fallow.study.plan import Cell, Plan

AT_LEAST_1 = (
    "trunk_frames",
    "branch_frames",
    "evaluate_frames",
    "n_episodes",
    "save_frames",
    "capacity_transitions",
)


def check_cell(cell: "Cell") -> None:
    """Raise if a name is unknown, or something is given twice or not at all."""
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
    owner = f"study '{plan.name}'"
    if not plan.name or not all(c.isalnum() or c in "-_." for c in plan.name):
        raise FallowError(f"{owner}: write its name with letters, digits, - and _")
    if not plan.cells:
        raise FallowError(f"{owner} has no cells; give at least one")
    for name in AT_LEAST_1:
        options.whole(owner, name, getattr(plan, name), at_least=1)
    for name in ("shift_frame", "seeds_per_fleet"):
        options.whole(owner, name, getattr(plan, name), at_least=0)
    _check_seeds(plan, owner)
    if plan.shift_frame >= plan.branch_frames:
        raise FallowError(
            f"{owner}: shift_frame is {plan.shift_frame:,} and a branch ends at "
            f"{plan.branch_frames:,}; let the change come earlier"
        )
    if plan.branch_frames < plan.evaluate_frames // 2:
        raise FallowError(
            f"{owner}: the first evaluation is at branch frame "
            f"{plan.evaluate_frames // 2:,} and a branch ends at "
            f"{plan.branch_frames:,}; choose smaller evaluate_frames"
        )
    for cell in plan.cells:
        _check_lengths(plan, cell, owner)
        _check_rules(plan, cell)
    ids = [branch.id for branch in plan.branches()]
    for branch in plan.branches():
        if ids.count(branch.id) > 1:
            raise FallowError(
                f"{owner}: {branch.condition} with {branch.rule} of {branch.agent} on "
                f"{branch.task} is in two cells of one trunk set; give it once"
            )


def n_worlds_of(agent: str, preset: str) -> int:
    """Worlds that an agent of a preset lives in at once."""
    return int(getattr(AGENTS[agent].sizes(preset), "n_worlds", 1))


def _check_seeds(plan: "Plan", owner: str) -> None:
    if not plan.seeds:
        raise FallowError(
            f'{owner} has no seeds; give at least one, e.g. seeds = "0-4"'
        )
    for seed in plan.seeds:
        options.whole(owner, "a seed", seed, at_least=0)
    if len(set(plan.seeds)) < len(plan.seeds):
        raise FallowError(f"{owner} has a seed twice: {plan.seeds}; give each once")


def _check_lengths(plan: "Plan", cell: "Cell", owner: str) -> None:
    n_worlds = n_worlds_of(cell.agent, plan.preset)
    whole = n_worlds * EPISODE_FRAMES
    if plan.trunk_frames % whole:
        raise FallowError(
            f"{owner}: trunk_frames is {plan.trunk_frames:,}; {cell.agent} has "
            f"{n_worlds} worlds, so that whole episodes end at multiples of {whole:,}: "
            "choose one of these"
        )


def _check_rules(plan: "Plan", cell: "Cell") -> None:
    """Rules know themselves what a buffer of a size can hold."""
    book = Book(n_worlds_of(cell.agent, plan.preset), plan.capacity_transitions)
    for rule in cell.rules:
        Rule.parse(rule).check(book)
