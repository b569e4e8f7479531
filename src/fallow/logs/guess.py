"""Which columns are actions, and which the velocities that they drive.

What the user chose comes first, then what the format says, then what is known of the
environment, then names. A place alone (the last columns of an observation) is never
taken for a velocity: in Gymnasium's Ant those are contact forces.
"""

import re
from collections.abc import Iterator, Sequence

from fallow.core.errors import FallowError
from fallow.core.text import counted, printable
from fallow.logs.columns import (
    ACTION_NAMES,
    OBSERVATION_NAMES,
    SHOWN,
    Columns,
    find,
    named,
    names,
    offer,
    shown,
)
from fallow.logs.known_environments import layout_of
from fallow.logs.table import Choice, Chosen, LogTable

VELOCITY_NAMES = (
    *("velocity", "velocities", "joint_velocity", "joint_velocities", "joint_vel"),
    *("qvel", "dq", "qd"),
)
POSITION_NAMES = (
    *("position", "positions", "joint_position", "joint_positions", "joint_pos"),
    *("qpos", "q"),
)
COMMAND_PARTS = ("effort", "acceleration", "velocity", "data", "position")
"""Of a command that has several: what is nearest to a change of velocity first."""
_WORD = r"(^|[\W_\d])({})([\W_\d]|$)"
_COMMAND = re.compile(
    _WORD.format("actions?|ctrl|control|cmd|commands?") + r"|^act[\W_\d]"
)
_EFFORT = re.compile(_WORD.format("torques?|efforts?") + r"|^[ua]([\W_\d]|$)")
_VELOCITY = re.compile(_WORD.format("q?vel|velocity|dq|qd|v") + "|(rad|m|deg)/s")
_POSITION = re.compile(_WORD.format("q?pos|position|angle|q"))
_UNIT = re.compile(r"\[(rad|m|deg)(/s)?\]|\.(pos|vel|effort)$")
_INNER = re.compile(r"\[(?P<joint>[^\]]*[a-z][^\]]*)\]$")
_PLAIN = {
    *(*ACTION_NAMES, *OBSERVATION_NAMES, *VELOCITY_NAMES, *POSITION_NAMES),
    *("cmd", "torque", "effort", "vel", "pos", "v", "u", "a", "data"),
    *("joint", "states", "target"),
}
"""Words of a label that say what is measured, not of which joint."""


def choose(table: LogTable, columns: Columns) -> Chosen:
    """The columns of a table, with a note on what was guessed.

    Raises:
        FallowError: a choice does not fit, or the names say too little.
    """
    action, guessed, known = table.action, [], ""
    if columns.action is not None:
        action = find(table, columns.action, "--action")
    elif action is None:
        action = _guess_action(table)
        guessed.append(f"actions: {shown(table, action)}")
    if columns.velocity is not None and columns.position is not None:
        raise FallowError("give --velocity or --position, not both")
    is_position = columns.position is not None
    if columns.velocity is not None:
        velocity = find(table, columns.velocity, "--velocity")
    elif columns.position is not None:
        velocity = find(table, columns.position, "--position")
    elif velocity := _by_environment(table, action):
        environment = printable(table.environment, 60)
        known = f"velocities of {environment}: {shown(table, velocity)}"
    else:
        velocity, is_position, note = _velocity_of(table, action)
        guessed += [note] if note else []
    if not action:
        raise FallowError(f"{table.source}: the actions have no columns")
    if len(action) != len(velocity):
        raise FallowError(
            f"{table.source}: {counted(len(action), 'action column')} "
            f"({shown(table, action)}) and {counted(len(velocity), 'velocity column')} "
            f"({shown(table, velocity)}); give each actuator the velocity it drives "
            "with --action and --velocity"
        )
    notes = (f"guessed {'; '.join(guessed)}" if guessed else "", known)
    return Chosen(action, velocity, is_position, tuple(filter(None, notes)))


def _velocity_of(table: LogTable, action: Choice) -> tuple[Choice, bool, str]:
    """The velocities, whether they are positions, and what to note about a guess."""
    drives = dict(zip(table.action or (), table.velocity or (), strict=True))
    if all(column in drives for column in action):
        return tuple(drives[column] for column in action), False, ""
    if velocity := _by_name(table, action, VELOCITY_NAMES, _VELOCITY, "--velocity"):
        return velocity, False, f"velocities: {shown(table, velocity)}"
    if velocity := _by_name(table, action, POSITION_NAMES, _POSITION, "--position"):
        return velocity, True, f"positions: {shown(table, velocity)}"
    known = ""
    if table.environment:
        known = f" of the environment '{printable(table.environment, 60)}'"
    raise FallowError(
        f"{table.source}: no column{known} is known or named as a joint velocity; "
        f"choose with --velocity (or --position) among {offer(table)}"
    )


def _by_environment(table: LogTable, action: Choice) -> Choice:
    """The velocities in the observations of a known environment; () of others."""
    layout = layout_of(table.environment)
    if layout is None or len({array for array, _ in action}) != 1:
        return ()
    n_actions = len(table.arrays[action[0][0]].columns)
    for array, content in table.arrays.items():
        width = len(content.columns)
        if n_actions != len(layout.dofs) or content.named:
            continue
        if _last(array) in OBSERVATION_NAMES and width in layout.first:
            start = layout.first[width]
        elif _last(array) == "qvel" and width == layout.n_dofs:
            start = 0
        else:
            continue
        return tuple((array, start + layout.dofs[column]) for _, column in action)
    return ()


def _guess_action(table: LogTable) -> Choice:
    for array in table.arrays:
        if _last(array) in ACTION_NAMES:
            return named(table, array)
    for topic, parts in _commands(table).items():
        for part in COMMAND_PARTS:
            if part in parts:
                return named(table, f"{topic}.{part}")
    for words in (_COMMAND, _EFFORT):
        found = tuple((a, c) for a, c, label in _labels(table) if words.search(label))
        if found:
            return found
    raise FallowError(
        f"{table.source} has no column that looks like an action; choose with --action "
        f"among {offer(table)}"
    )


def _commands(table: LogTable) -> dict[str, list[str]]:
    """The parts of each topic of a recording that carries commands."""
    found: dict[str, list[str]] = {}
    for array, content in table.arrays.items():
        topic, dot, part = array.rpartition(".")
        if content.is_command or (dot and _is_command(topic.split("/")[-1])):
            found.setdefault(topic, []).append(part)
    return found


def _is_command(name: str) -> bool:
    return _COMMAND.search(name.lower()) is not None


def _by_name(
    table: LogTable,
    action: Choice,
    array_names: Sequence[str],
    words: re.Pattern[str],
    flag: str,
) -> Choice:
    """Columns paired with actions by joint name, or as many in the same order.

    Raises:
        FallowError: columns with such names exist, and none can be paired.
    """
    taken, commands = set(action), _commands(table)
    arrays = [
        array
        for array, content in table.arrays.items()
        if array.rpartition(".")[0] not in commands and not content.is_command
    ]
    groups = [named(table, a) for a in arrays if _last(a) in array_names]
    groups = groups or [()]
    labelled = tuple(
        (array, column)
        for array, column, label in _labels(table)
        if array in arrays and (array, column) not in taken and words.search(label)
    )
    groups += [sum(groups, ()), labelled]
    for group in groups:
        if paired := _paired(table, group, action):
            return paired
    found = next((group for group in groups if group), ())
    if found:
        hint = ",".join(names(table, found[-len(action) :])[:SHOWN])
        raise FallowError(
            f"{table.source}: {shown(table, found)} could be the velocities of "
            f"{len(action)} actions ({shown(table, action)}), and names do not say "
            f"which belongs to which; choose with {flag}, e.g. {flag} "
            f"'{printable(hint, 100)}'"
        )
    return ()


def _paired(table: LogTable, found: Choice, action: Choice) -> Choice:
    """By joint name; else in order, where there are as many and no name objects."""
    stems, wanted = _stems(table, found), _stems(table, action)
    if all(stem and stems.count(stem) == 1 for stem in wanted):
        return tuple(found[stems.index(stem)] for stem in wanted)
    if len(found) != len(action):
        return ()
    pairs = zip(wanted, stems, strict=True)
    return found if all(w == s or w not in stems for w, s in pairs) else ()


def _stems(table: LogTable, choice: Choice) -> list[str]:
    """The joint of each column; empty of one that has only a place in its array."""
    has_name = [
        table.arrays[array].named or len(table.arrays[array].columns) == 1
        for array, _ in choice
    ]
    labels = zip(names(table, choice), has_name, strict=True)
    return [_stem(label) if named else "" for label, named in labels]


def _labels(table: LogTable) -> Iterator[tuple[str, int, str]]:
    for array, content in table.arrays.items():
        for column, label in enumerate(content.columns):
            yield array, column, label.lower()


def _last(array: str) -> str:
    return array.lower().split("/")[-1].split(".")[-1]


def _stem(label: str) -> str:
    """A label without the words that say what is measured: `left_hip_vel`: lefthip."""
    text = _UNIT.sub("", label.lower())
    if inner := _INNER.search(text):
        text = inner["joint"]
    words = re.split(r"[\W_]+", text)
    return "".join(word for word in words if word not in _PLAIN)
