"""The table of evaluations: a row for each branch and frame, as csv."""

import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fallow.agents.fleet import Fleet

COLUMNS = (
    "task", "agent", "preset", "condition", "rule", "seed", "frame", "regime",
    "updates", "mean_return", "returns",
)  # fmt: skip


class Results:
    """The table of evaluations of one fleet, a row for each branch and frame."""

    def __init__(self, path: Path, names: dict[str, str]) -> None:
        self.path = path
        self._names = names  # task, agent and preset, the same in every row
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _write(path, [])

    def add(self, fleet: Fleet, returns: np.ndarray) -> None:
        """Append what an evaluation of all branches gave."""
        regimes = fleet.worlds.regime
        rows = [
            {
                **self._names,
                **dataclasses.asdict(branch),
                "frame": fleet.frame,
                "regime": int(regime),
                "updates": fleet.n_updates,
                "mean_return": round(float(own.mean()), 3),
                "returns": " ".join(f"{value:.2f}" for value in own),
            }
            for branch, own, regime in zip(
                fleet.branches, returns, regimes, strict=True
            )
        ]
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, COLUMNS).writerows(rows)

    def keep_until(self, frame: int) -> None:
        """Drop what came after a checkpoint; it will come again."""
        kept = [row for row in read_results(self.path) if row["frame"] <= frame]
        _write(self.path, kept)


def read_results(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a table, with numbers as numbers."""
    whole = ("seed", "frame", "regime", "updates")
    with Path(path).open(newline="") as file:
        return [
            {k: int(v) if k in whole else v for k, v in row.items()}
            | {"mean_return": float(row["mean_return"])}
            for row in csv.DictReader(file)
        ]


def merged(tables: Sequence[Path], path: Path) -> Path:
    """One table of several."""
    _write(path, [row for table in tables for row in read_results(table)])
    return path


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
