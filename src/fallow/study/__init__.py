"""The paired study: a plan, trunks, branches, engines, and one table of results.

    from fallow.study import Cell, Plan
    from fallow.study.engines import run_study

    cell = Cell("cartpole-swingup", "dreamer", ("none", "gain"), ("passive", "reset"))
    run_study(Plan("mine", (cell,), preset="tiny", seeds=(0, 1)), "runs/mine")

Reading a plan and its results imports no jax; running one does.
"""

from fallow.study.plan import Cell, Plan
from fallow.study.planned import PlannedBranch, PlannedTrunk

__all__ = ["Cell", "Plan", "PlannedBranch", "PlannedTrunk"]
