"""Rows of results as studies read them, whatever version wrote the table."""

import dataclasses
from functools import cache
from pathlib import Path

from fallow.core import legacy
from fallow.core.results import ResultRow, is_of_algorithm_1, read_results
from fallow.dynamics.conditions import Condition
from fallow.dynamics.tasks import TASKS


def read_rows(path: str | Path, unfinished: bool = False) -> list[ResultRow]:
    """The rows of a table; those of algorithm 1 with its defaults written out.

    Without a last line that has no end, if `unfinished`.

    Raises:
        FallowError: there is no table, or it is damaged.
    """
    rows = read_results(path, unfinished)
    if not is_of_algorithm_1(path):
        return rows
    return [
        dataclasses.replace(row, condition=modern_condition(row.condition, row.task))
        for row in rows
    ]


@cache
def modern_condition(text: str, task: str) -> str:
    """A condition of algorithm 1 as it is written today."""
    n_actuators = len(TASKS[task].body.actuator_velocity)
    return str(Condition.parse(legacy.condition(text, n_actuators)))
