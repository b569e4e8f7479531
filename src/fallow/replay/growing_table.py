"""A table that grows: columns of one length, one row an entry."""

from typing import Any

import numpy as np


class GrowingTable:
    """Columns that grow together, one row an entry."""

    def __init__(self, **columns: Any) -> None:
        self._columns = {name: np.zeros(64, dtype) for name, dtype in columns.items()}
        self.n = 0

    def append(self, **values: Any) -> int:
        """Add an entry; returns its index."""
        if self.n == len(next(iter(self._columns.values()))):
            for name, column in self._columns.items():
                self._columns[name] = np.concatenate([column, np.zeros_like(column)])
        for name, value in values.items():
            self._columns[name][self.n] = value
        self.n += 1
        return self.n - 1

    def __getitem__(self, name: str) -> np.ndarray:
        """A live view of one column."""
        return self._columns[name][: self.n]

    def save(self, prefix: str) -> dict[str, np.ndarray]:
        """All columns, named with a prefix."""
        return {f"{prefix}.{name}": self[name].copy() for name in self._columns}

    def restore(self, prefix: str, saved: dict[str, np.ndarray]) -> None:
        """Take back what `save` gave."""
        for name, column in self._columns.items():
            values = saved[f"{prefix}.{name}"]
            self.n = len(values)
            room = np.zeros(max(64, 2 * self.n), column.dtype)
            room[: self.n] = values
            self._columns[name] = room
