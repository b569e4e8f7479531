"""From a table and a choice of columns to a log."""

import numpy as np

from fallow.core.errors import FallowError
from fallow.logs.columns import Columns, choose, names
from fallow.logs.log import Log, common_step
from fallow.logs.table import Table


def assemble(table: Table, columns: Columns) -> Log:
    """Choose the columns, load them, and line actions up with velocities.

    A format with as many velocities as actions lacks what each episode's last action
    led to, so that action is left out.
    """
    velocity_choice, action_choice, notes = choose(table, columns)
    velocity, n_velocities = table.load(velocity_choice)
    action, n_actions = table.load(action_choice)
    _check_rows(table, n_velocities, n_actions)
    if np.array_equal(n_velocities, n_actions):
        kept = np.ones(len(action), bool)
        kept[np.cumsum(n_actions)[n_actions > 0] - 1] = False
        action = action[kept]
    n_transitions = n_velocities - 1
    start_step = table.start_step
    if start_step is None:
        start_step = np.cumsum(n_transitions) - n_transitions
    step_s = table.control_step_s
    if table.step_s is not None:
        step_s = common_step(table.source, table.step_s)
    return Log(
        source=table.source,
        format=table.format,
        actuators=names(table, action_choice),
        velocity=_numbers(table, "velocity", velocity),
        action=_numbers(table, "action", action),
        n_transitions=n_transitions,
        start_step=start_step,
        control_step_s=step_s,
        regime=table.regime,
        gain=_gain(table, len(action_choice)),
        notes=table.notes + notes,
    )


def _check_rows(table: Table, n_velocities: np.ndarray, n_actions: np.ndarray) -> None:
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


def _numbers(table: Table, name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "iufb":
        raise FallowError(
            f"{table.source}: the {name} columns hold {values.dtype} and must hold "
            "numbers; choose other columns"
        )
    if values.dtype.kind == "f" and values.dtype.itemsize >= 4:
        return values
    return values.astype(np.float64)


def _gain(table: Table, n_actuators: int) -> np.ndarray | None:
    if table.gain is None or table.gain.shape[1] != n_actuators:
        return None
    return table.gain
