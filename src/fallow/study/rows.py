"""Rows of results as studies read them, whatever version wrote the table."""

from dataclasses import replace
from functools import cache
from pathlib import Path

from fallow.core import legacy
from fallow.core.legacy import ALGORITHM
from fallow.core.results import ResultRow, read_results
from fallow.dynamics.conditions import Condition
from fallow.dynamics.tasks import TASKS


def read_rows(path: str | Path, unfinished: bool = False) -> list[ResultRow]:
    """The rows of a table; those of earlier algorithms with their defaults written out.

    Without a last line that has no end, if `unfinished`.

    Raises:
        FallowError: there is no table, or it is damaged.
    """
    return [_modern(row) for row in read_results(path, unfinished)]


def _modern(row: ResultRow) -> ResultRow:
    """A row in the texts of today."""
    if row.algorithm not in legacy.WITH_CHUNKS:
        return row
    condition = row.condition
    if row.algorithm == 1:
        condition = modern_condition(condition, row.task)
    rule = legacy.rule(row.rule)
    return replace(row, condition=condition, rule=rule, algorithm=ALGORITHM)


@cache
def modern_condition(text: str, task: str) -> str:
    """A condition of algorithm 1 as it is written today."""
    n_actuators = len(TASKS[task].body.actuator_velocity)
    return str(Condition.parse(legacy.condition(text, n_actuators)))
