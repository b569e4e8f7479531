"""A log format: JSON lines, one step a line, `{"episode": 0, "action": [], ...}`."""

import json
from pathlib import Path

import numpy as np

from fallow.logs.columns import Columns
from fallow.logs.limits import Budget
from fallow.logs.readers import READERS, Reader
from fallow.logs.readers.arrays import Declared, NamedArrays, table_of_arrays
from fallow.logs.table import LogTable


def matches(path: Path, head: bytes) -> bool:
    """Whether a file with these first bytes is of this format."""
    return path.suffix == ".jsonl" and head.startswith(b"{")


def read(path: Path, columns: Columns, budget: Budget) -> LogTable:
    """The file's arrays; memory is taken from the budget before anything is loaded."""
    budget.check(8 * path.stat().st_size, "its text")
    lines = path.read_text(encoding="utf-8").splitlines()
    steps = [json.loads(line) for line in lines]
    arrays = {name: np.array([step[name] for step in steps]) for name in steps[0]}
    declared = {
        name: Declared(array.shape, array.dtype) for name, array in arrays.items()
    }
    named = NamedArrays(declared, arrays.__getitem__, budget)
    return table_of_arrays(named, columns, source=str(path), format="jsonl")


READERS.add("jsonl", Reader("jsonl", "JSON lines, one step a line", matches, read))
