"""From a table and a choice of columns to a log."""

from dataclasses import replace

import numpy as np

from fallow.core.errors import FallowError
from fallow.logs import differences
from fallow.logs.columns import Columns, names
from fallow.logs.guess import choose
from fallow.logs.limits import Budget
from fallow.logs.log import Log, common_step
from fallow.logs.table import Chosen, LogTable, Paired

COPIES = 4
"""Arrays of the size of the actions that an estimate holds at once."""


def assemble(table: LogTable, columns: Columns, budget: Budget | None = None) -> Log:
    """Choose the columns, load them, and line actions up with velocities.

    Raises:
        FallowError: columns cannot be chosen, or do not fit together.
    """
    chosen = choose(table, columns)
    paired = pair_up(table, chosen, budget)
    n_transitions = paired.n_velocities - 1
    start_step = table.start_step
    if start_step is None or len(start_step) != len(n_transitions):
        start_step = np.cumsum(n_transitions) - n_transitions
    step_s = _control_step(table, paired.step_s)
    return Log(
        source=table.source,
        format=table.format,
        actuators=names(table, chosen.action),
        velocity=paired.velocity,
        action=paired.action,
        n_transitions=n_transitions,
        start_step=start_step,
        control_step_s=step_s,
        regime=table.regime,
        gain=_gain(table, len(chosen.action)),
        notes=table.notes + chosen.notes + paired.notes,
    )


def pair_up(table: LogTable, chosen: Chosen, budget: Budget | None = None) -> Paired:
    """The chosen columns, velocities lined up with actions; they may hold NaN.

    Raises:
        FallowError: they do not fit together, or are not numbers.
    """
    pair = table.pair or (lambda chosen: _rows(table, chosen, budget))
    paired = pair(chosen)
    return replace(
        paired,
        velocity=_numbers(table, "velocity", paired.velocity),
        action=_numbers(table, "action", paired.action),
    )


def _rows(table: LogTable, chosen: Chosen, budget: Budget | None) -> Paired:
    """Rows that are paired already: action t stands beside velocity t.

    A format with as many velocities as actions lacks what each episode's last action
    led to, so that action is left out.
    """
    if budget is not None:
        n_rows = int(table.arrays[chosen.action[0][0]].lengths.sum())
        n_bytes = n_rows * len(chosen.action) * np.dtype(float).itemsize
        budget.take(COPIES * n_bytes, "actions and velocities")
    velocity, n_velocities = table.load(chosen.velocity)
    action, n_actions = table.load(chosen.action)
    _check_rows(table, n_velocities, n_actions)
    if np.array_equal(n_velocities, n_actions):
        last = np.cumsum(n_actions)[n_actions > 0] - 1
        action = np.delete(action, last, axis=0)
    paired = Paired(velocity, action, n_velocities, table.step_s)
    return _differenced(table, paired) if chosen.is_position else paired


def _differenced(table: LogTable, paired: Paired) -> Paired:
    """Positions turned into velocities; each episode loses its first row."""
    step_s = _control_step(table, table.step_s)
    position = _numbers(table, "position", paired.velocity)
    ends = np.cumsum(paired.n_velocities)
    velocity = [
        differences.backward(part, step_s or 1.0)
        for part in np.split(position, ends[:-1])
        if len(part)
    ]
    n_actions = np.maximum(paired.n_velocities - 1, 0)
    first = (np.cumsum(n_actions) - n_actions)[n_actions > 0]
    by_step = "" if step_s else ", and counts them by the step"
    return Paired(
        velocity=np.concatenate(velocity) if velocity else position,
        action=np.delete(paired.action, first, axis=0),
        n_velocities=n_actions,
        step_s=table.step_s,
        notes=(differences.NOTE + by_step,),
    )


def _control_step(table: LogTable, step_s: np.ndarray | None) -> float | None:
    """The time between two rows in seconds; None if it is not known or no number."""
    found = table.control_step_s
    if step_s is not None:
        found = common_step(table.source, step_s)
    return found if found is not None and 0 < found < np.inf else None


def _check_rows(
    table: LogTable, n_velocities: np.ndarray, n_actions: np.ndarray
) -> None:
    if len(n_velocities) != len(n_actions):
        raise FallowError(
            f"{table.source}: velocities of {len(n_velocities)} episodes and actions "
            f"of {len(n_actions)}; record both in every episode"
        )
    excess = n_velocities - n_actions
    fits = (excess == excess[0]) & np.isin(excess, (0, 1)) if len(excess) else excess
    if not np.all(fits):
        episode = int(np.flatnonzero(~fits)[0])
        raise FallowError(
            f"{table.source}: episode {episode} has {n_actions[episode]} actions and "
            f"{n_velocities[episode]} velocities; there must be as many, or one "
            "velocity more, in every episode"
        )


def _numbers(table: LogTable, name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "iufb":
        raise FallowError(
            f"{table.source}: the {name} columns hold {values.dtype} and must hold "
            "numbers; choose other columns"
        )
    if values.dtype.kind == "f" and 4 <= values.dtype.itemsize <= 8:
        return values
    return values.astype(np.float64)


def _gain(table: LogTable, n_actuators: int) -> np.ndarray | None:
    if table.gain is None or table.gain.shape[1] != n_actuators:
        return None
    return table.gain
