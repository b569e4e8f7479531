"""The table that a fleet in training writes, going on where a checkpoint was."""

from pathlib import Path
from typing import Any

import numpy as np

from fallow.agents.fleet import Fleet
from fallow.results import Evaluation, append_results, read_results, write_results


class Results:
    """The table of evaluations of one fleet, a row for each branch and frame."""

    def __init__(self, path: Path, names: dict[str, Any]) -> None:
        self.path = path
        self._names = names  # task, agent and preset, the same in every row
        if not path.exists():
            write_results(path, [])

    def add(self, fleet: Fleet, returns: np.ndarray) -> None:
        """Append what an evaluation of all branches gave."""
        rows = [
            Evaluation(
                **self._names,
                condition=branch.condition,
                rule=branch.rule,
                seed=branch.seed,
                trunk="",
                frame=fleet.frame,
                branch_frame=fleet.frame,
                regime=int(regime),
                updates=fleet.n_updates,
                mean_return=float(own.mean()),
                returns=tuple(float(one) for one in own),
            )
            for branch, own, regime in zip(
                fleet.branches, returns, fleet.worlds.regime, strict=True
            )
        ]
        append_results(self.path, rows)

    def keep_until(self, frame: int) -> None:
        """Drop what came after a checkpoint; it will come again."""
        write_results(
            self.path, [row for row in read_results(self.path) if row.frame <= frame]
        )
