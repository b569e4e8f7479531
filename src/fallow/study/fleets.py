"""Which branches are trained together, and what that costs.

Company changes rounding on an accelerator, so the fleets are saved with the plan.
They are split by seed only: whatever is compared was trained in one program. There,
all cells of one agent on one task share a fleet, whatever their trunks.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fallow.core.errors import FallowError
from fallow.dynamics.tasks import ACTION_REPEAT
from fallow.study.devices import GIB, HERE, named_bytes
from fallow.study.plan import Cell, Plan, PlannedBranch, PlannedTrunk, identity


@dataclass(frozen=True)
class Cost:
    """What one trunk and one branch of a cell take."""

    trunk_updates: int
    branch_updates: int
    branch_bytes: int
    """Device memory of a branch."""
    update_flops: float


@dataclass(frozen=True)
class PlannedFleet:
    """All conditions and rules of some seeds, in cells of one agent on one task."""

    id: str
    trunks: tuple[PlannedTrunk, ...]
    branches: tuple[PlannedBranch, ...]
    cost: Cost

    @property
    def n_updates(self) -> int:
        """Of all its branches, without trunks."""
        return self.cost.branch_updates * len(self.branches)

    @property
    def n_bytes(self) -> int:
        """Device memory of the fleet."""
        return self.cost.branch_bytes * len(self.branches)


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
    return Cost(
        trunk_updates=trunk,
        branch_updates=total - trunk,
        branch_bytes=memory.branch_bytes(agent, plan.capacity_transitions),
        update_flops=agent.update_flops(),
    )


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
    """What fleets may plan with of that."""
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
    return PlannedFleet(
        id=identity("fleet", {"branches": [branch.id for branch in branches]}),
        trunks=tuple(
            dict.fromkeys(plan.trunk(cell, seed) for cell in cells for seed in seeds)
        ),
        branches=branches,
        cost=cost,
    )
