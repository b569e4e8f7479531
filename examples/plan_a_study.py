"""Plan a paired study in Python, and see what it would take.

    python examples/plan_a_study.py

To run or resume it: `run_study(plan, "runs/mine")`.
"""

from fallow.study import Cell, Plan
from fallow.study.estimate import estimate

plan = Plan(
    name="mine",
    cells=(
        Cell(
            task="cartpole-swingup",
            agent="dreamer",
            conditions=("none", "gain", "recurring:period_frames=10000"),
            rules=("passive", "recency:window_transitions=5000"),
        ),
    ),
    preset="tiny",
    seeds=(0, 1),
    trunk_frames=40_000,
    branch_frames=60_000,
    shift_frame=20_000,
    capacity_transitions=100_000,
)

first = plan.branches()[-1]
print(f"{first.condition} with {first.rule}: in its worlds {first.world_condition}")
print("\n".join(estimate(plan).lines()))
