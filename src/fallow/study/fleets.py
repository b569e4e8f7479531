"""Which branches are trained together, and the cost of each fleet.

On an accelerator rounding depends on which branches share a fleet, so the fleets are
saved with the plan. They are split by seed only, so compared branches are trained in
one program. There, all cells of one agent on one task share a fleet, whatever their
trunks.

Until the body changes, branches of one trunk and one rule are the same run. A fleet
trains that *prefix* once for all their conditions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fallow.core.errors import FallowError
from fallow.dynamics.conditions import Condition
from fallow.dynamics.tasks import ACTION_REPEAT
from fallow.study.checks import n_worlds_of
from fallow.study.devices import GIB, HERE, named_bytes
from fallow.study.plan import Cell, Plan
from fallow.study.planned import PlannedBranch, PlannedTrunk, identity


@dataclass(frozen=True)
class Cost:
    """The cost of one trunk and one branch of a cell."""

    trunk_updates: int
    branch_updates: int
    branch_bytes: int
    """Device memory of a branch."""
    update_flops: float
    prefix_updates: int = 0
    """Of the branch's updates, those before the change, made once for all branches of
    one prefix; 0: every branch makes its own, as studies of earlier versions do."""


@dataclass(frozen=True)
class PlannedFleet:
    """All conditions and rules of some seeds, in cells of one agent on one task."""

    id: str
    trunks: tuple[PlannedTrunk, ...]
    branches: tuple[PlannedBranch, ...]
    cost: Cost

    @cached_property
    def prefixes(self) -> tuple[PlannedBranch, ...]:
        """The first branch of every prefix, which stands for all that share it."""
        found: dict[Any, PlannedBranch] = {}
        for branch in self.branches:
            found.setdefault(_prefix_key(branch), branch)
        return tuple(found.values())

    def prefix_of(self, branch: PlannedBranch) -> int:
        """Index of a branch's prefix."""
        keys = [_prefix_key(prefix) for prefix in self.prefixes]
        return keys.index(_prefix_key(branch))

    def stages(self) -> tuple[tuple[str, int, int], ...]:
        """What it trains in turn: name, how many together, updates of each."""
        cost = self.cost
        after = cost.branch_updates - cost.prefix_updates
        shared = ("prefixes", len(self.prefixes), cost.prefix_updates)
        return (
            ("trunks", len(self.trunks), cost.trunk_updates),
            *([shared] if cost.prefix_updates else []),
            ("branches", len(self.branches), after),
        )

    @property
    def n_updates(self) -> int:
        """Of all its prefixes and branches, without trunks."""
        return sum(company * each for _, company, each in self.stages()[1:])

    @property
    def n_bytes(self) -> int:
        """Device memory of the fleet."""
        return self.cost.branch_bytes * len(self.branches)


def _prefix_key(branch: PlannedBranch) -> tuple[Any, ...]:
    """Equal for branches that are the same run until their conditions change."""
    condition = Condition.parse(branch.world_condition)
    return branch.trunk, branch.rule, condition.regime(0)


def fleets_of(plan: Plan) -> tuple[PlannedFleet, ...]:
    """All fleets of a plan, sized for the device that it names.

    Whether one seed's branches fit at all is for `check_fit` to say.
    """
    fleets = []
    for cells in _together(plan):
        cost = cost_of(plan, cells[0])
        size = _n_seeds(plan, cells, cost)
        for start in range(0, len(plan.seeds), size):
            fleets.append(_fleet(plan, cells, plan.seeds[start : start + size], cost))
    return tuple(fleets)


def _together(plan: Plan) -> list[list[Cell]]:
    """Cells whose branches are trained together."""
    if _is_processor(plan):
        return [[cell] for cell in plan.cells]
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in plan.cells:
        groups.setdefault((cell.task, cell.agent), []).append(cell)
    return list(groups.values())


def cost_of(plan: Plan, cell: Cell) -> Cost:
    """Updates, memory and operations of a cell's trunks and branches."""
    from fallow.agents import memory
    from fallow.agents.fleet import build_agent

    agent = build_agent(cell.task, cell.agent, plan.preset)
    trunk = updates_until(agent.schedule, plan.trunk_frames)
    total = updates_until(agent.schedule, plan.trunk_frames + plan.branch_frames)
    shared = updates_until(agent.schedule, prefix_end(plan, cell.agent))
    return Cost(
        trunk_updates=trunk,
        branch_updates=total - trunk,
        branch_bytes=memory.branch_bytes(agent, plan.capacity_transitions),
        update_flops=agent.update_flops(),
        prefix_updates=shared - trunk,
    )


def prefix_end(plan: Plan, agent: str) -> int:
    """Frame of the agent's clock at which prefixes end: the last before the change.

    The step that reaches the change already belongs to the branches.
    """
    step = n_worlds_of(agent, plan.preset) * ACTION_REPEAT
    change = plan.trunk_frames + plan.shift_frame
    return max((change - 1) // step * step, plan.trunk_frames)


def updates_until(schedule: Any, frame: int) -> int:
    """Updates that a branch has made when it reaches a frame."""
    n_steps = math.ceil(frame / (schedule.n_worlds * ACTION_REPEAT))
    return int(schedule.updates_due(n_steps))


def device_bytes(plan: Plan) -> int:
    """Memory of the device that a plan names.

    Raises:
        FallowError: the name is unknown.
    """
    n_bytes = named_bytes(plan.device)
    if n_bytes is None:
        from fallow.agents import memory

        return memory.device_bytes()
    return n_bytes


def _usable_bytes(plan: Plan) -> float:
    """The part of that memory which fleets may use."""
    from fallow.agents.memory import USABLE

    return USABLE * device_bytes(plan)


def check_fit(plan: Plan, fleets: Sequence[PlannedFleet]) -> None:
    """Raise if a fleet needs more memory than the device gives."""
    limit = _usable_bytes(plan)
    for fleet in fleets:
        if fleet.n_bytes > limit:
            seeds = ", ".join(dict.fromkeys(str(trunk.seed) for trunk in fleet.trunks))
            raise FallowError(
                f"the {len(fleet.branches)} branches of seed {seeds} need about "
                f"{fleet.n_bytes / GIB:.1f} GiB and device '{plan.device}' gives "
                f"{limit / GIB:.1f}; a seed's rules and conditions are not split, so "
                "choose a smaller preset, seeds_per_fleet or capacity_transitions, or "
                "name another device"
            )


def _n_seeds(plan: Plan, cells: Sequence[Cell], cost: Cost) -> int:
    """How many seeds of some cells share a fleet."""
    if plan.seeds_per_fleet:
        return min(plan.seeds_per_fleet, len(plan.seeds))
    if _is_processor(plan):
        return 1
    n_branches = sum(len(cell.conditions) * len(cell.rules) for cell in cells)
    limit = _usable_bytes(plan)
    most = max(1, int(limit // (cost.branch_bytes * n_branches)))
    return math.ceil(len(plan.seeds) / math.ceil(len(plan.seeds) / most))


def _is_processor(plan: Plan) -> bool:
    """Whether the device is a CPU, where batching branches is no faster."""
    if plan.device != HERE:
        return plan.device == "cpu"
    from fallow.agents.compiling import on_processor

    return on_processor()


def _fleet(
    plan: Plan, cells: Sequence[Cell], seeds: tuple[int, ...], cost: Cost
) -> PlannedFleet:
    branches = tuple(
        branch for cell in cells for branch in plan.branches_of(cell, seeds)
    )
    fleet = PlannedFleet(
        id=identity("fleet", {"branches": [branch.id for branch in branches]}),
        trunks=tuple(
            dict.fromkeys(plan.trunk(cell, seed) for cell in cells for seed in seeds)
        ),
        branches=branches,
        cost=cost,
    )
    if len(fleet.prefixes) < len(branches):
        return fleet
    return replace(fleet, cost=replace(cost, prefix_updates=0))  # nothing is shared
