"""Which columns are actions, and which the velocities that they drive.

A choice is a list of items separated by commas. An item is the name of an array or of a
column (`qvel`, `left_hip_vel`), some columns of an array (`observations[11:17]`), or,
for a file with one table or one array of observations, just their places (`11:17`).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from fallow.core.errors import FallowError, unknown
from fallow.logs.table import Choice, Table

ACTION_NAMES = ("action", "actions", "act", "ctrl", "control", "command", "commands")
VELOCITY_NAMES = (
    *("velocity", "velocities", "joint_velocity", "joint_velocities", "joint_vel"),
    *("qvel", "dq", "qd"),
)
OBSERVATION_NAMES = ("observation", "observations", "obs", "state", "observation.state")
_WORD = r"(^|[\W_\d])({})([\W_\d]|$)"
_ACTIONS = (  # a command before what may also be a measurement
    re.compile(_WORD.format("actions?|ctrl|control|cmd|commands?") + r"|^act[\W_\d]"),
    re.compile(_WORD.format("torques?|efforts?") + r"|^[ua]([\W_\d]|$)"),
)
_VELOCITY = re.compile(_WORD.format("q?vel|velocity|dq|qd|v") + "|(rad|m|deg)/s")
_UNIT = re.compile(r"\[(rad|m|deg)(/s)?\]|\.(pos|vel|effort)$")
_ITEM = re.compile(r"^(?P<name>.*?)(\[(?P<inner>-?\d*(:-?\d*)?)\])?$")
_PLACES = re.compile(r"^-?\d*:-?\d*$|^\d+$")
SHOWN = 8
"""Names written out before the rest is counted."""


@dataclass(frozen=True)
class Columns:
    """What the user chose; None is guessed, and the guess is noted."""

    velocity: str | None = None
    action: str | None = None
    episode: str | None = None
    """The column that numbers the episodes."""
    time: str | None = None
    """The column of times in seconds."""
    episode_steps: int | None = None
    """Cut a recording without episodes into pieces of so many rows."""


def choose(table: Table, columns: Columns) -> tuple[Choice, Choice, tuple[str, ...]]:
    """The velocity and action columns of a table, and a note on what was guessed."""
    action, guessed = table.action, []
    if columns.action is not None:
        action = find(table, columns.action, "--action")
    elif action is None:
        action = _guess_action(table)
        guessed.append(f"actions: {shown(table, action)}")
    if columns.velocity is not None:
        velocity = find(table, columns.velocity, "--velocity")
    else:
        velocity = _known_velocity(table, action)
        if len(velocity) < len(action):
            velocity = _guess_velocity(table, action)
            guessed.append(f"velocities: {shown(table, velocity)}")
    if len(action) != len(velocity):
        raise FallowError(
            f"{table.source}: {len(action)} action columns ({shown(table, action)}) "
            f"and {len(velocity)} velocity columns ({shown(table, velocity)}); give "
            "each actuator the velocity it drives with --action and --velocity"
        )
    note = (f"guessed {'; '.join(guessed)}",) if guessed else ()
    return velocity, action, note


def _known_velocity(table: Table, action: Choice) -> Choice:
    """The velocities of actions where the format says them, whatever their order."""
    drives = dict(zip(table.action or (), table.velocity or (), strict=True))
    return tuple(drives[column] for column in action if column in drives)


def find(table: Table, text: str, flag: str) -> Choice:
    """Read a choice of columns; what is not there is named with what is."""
    whole = _named(table, text.strip())
    if whole:  # a name may hold commas or brackets itself
        return whole
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise FallowError(f"{flag} names no columns; write names or places like 3:9")
    return tuple(column for item in items for column in _item(table, item, flag))


def names(table: Table, choice: Choice) -> tuple[str, ...]:
    """The names of chosen columns."""
    return tuple(table.arrays[array].columns[column] for array, column in choice)


def shown(table: Table, choice: Choice) -> str:
    """Chosen columns for people: names, or one slice of an array."""
    arrays = {array for array, _ in choice}
    places = [column for _, column in choice]
    if len(arrays) == 1 and places == list(range(places[0], places[-1] + 1)):
        array = arrays.pop()
        if not table.arrays[array].named and len(places) > 1:
            return f"{array}[{places[0]}:{places[-1] + 1}]"
    every = names(table, choice)
    rest = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return ", ".join(every[:SHOWN]) + rest


def _named(table: Table, name: str) -> Choice:
    if name in table.arrays:
        return tuple((name, i) for i in range(len(table.arrays[name].columns)))
    return tuple(
        (array, content.columns.index(name))
        for array, content in table.arrays.items()
        if name in content.columns
    )[:1]


def _item(table: Table, item: str, flag: str) -> Choice:
    if _PLACES.match(item):
        return _places(table, _main_array(table, flag), item, flag)
    if found := _named(table, item):
        return found
    match = _ITEM.match(item)
    if match and match["inner"] is not None and match["name"] in table.arrays:
        return _places(table, match["name"], match["inner"], flag)
    known = list(table.arrays)
    if len(known) == 1:
        known = list(table.arrays[known[0]].columns)
    if len(known) > 3 * SHOWN:
        known = [*known[: 3 * SHOWN], f"and {len(known) - 3 * SHOWN} more"]
    raise unknown(f"column for {flag} in {table.source}", item, known)


def _places(table: Table, array: str, text: str, flag: str) -> Choice:
    width = len(table.arrays[array].columns)
    start, colon, stop = text.partition(":")
    if colon:
        chosen = range(width)[
            slice(int(start) if start else None, int(stop) if stop else None)
        ]
        beyond = stop and int(stop) > width
    else:
        chosen = range(int(start), int(start) + 1)
        beyond = int(start) >= width
    if beyond or not chosen:
        raise FallowError(
            f"{flag} asks for '{text}' of the {width} columns of '{array}' in "
            f"{table.source}; places go from 0 to {width - 1}, the last one excluded"
        )
    return tuple((array, column) for column in chosen)


def _main_array(table: Table, flag: str) -> str:
    if len(table.arrays) == 1:
        return next(iter(table.arrays))
    wanted = ACTION_NAMES if flag == "--action" else OBSERVATION_NAMES
    for name in wanted:
        if name in table.arrays:
            return name
    raise FallowError(
        f"{flag} gives places, and {table.source} has no array to count them in; write "
        f"them as name[start:stop], with one of {', '.join(table.arrays)}"
    )


def _all(table: Table) -> Iterable[tuple[str, int, str]]:
    for array, content in table.arrays.items():
        for column, label in enumerate(content.columns):
            yield array, column, label.lower()


def _guess_action(table: Table) -> Choice:
    for array in table.arrays:
        if array.lower().split("/")[-1].split(".")[-1] in ACTION_NAMES:
            return _named(table, array)
    for words in _ACTIONS:
        found = tuple((a, c) for a, c, label in _all(table) if words.search(label))
        if found:
            return found
    raise FallowError(
        f"{table.source} has no column that looks like an action; choose with --action "
        f"among {_offer(table)}"
    )


def _guess_velocity(table: Table, action: Choice) -> Choice:
    taken = set(action)
    for array in table.arrays:
        if array.lower().split("/")[-1].split(".")[-1] in VELOCITY_NAMES:
            return _matched(table, _named(table, array), action)
    found = tuple(
        (array, column)
        for array, column, label in _all(table)
        if (array, column) not in taken and _VELOCITY.search(label)
    )
    if found:
        return _matched(table, found, action)
    for array in OBSERVATION_NAMES:
        if array in table.arrays and not table.arrays[array].named:
            return _named(table, array)[-len(action) :]
    raise FallowError(
        f"{table.source} has no column that looks like a joint velocity; choose with "
        f"--velocity among {_offer(table)}"
    )


def _matched(table: Table, found: Choice, action: Choice) -> Choice:
    """The velocity of each action by joint name, or else the last ones.

    A floating base comes first in every format that has one.
    """
    stems = [_stem(name) for name in names(table, found)]
    wanted = [_stem(name) for name in names(table, action)]
    if all(stem and stems.count(stem) == 1 for stem in wanted):
        return tuple(found[stems.index(stem)] for stem in wanted)
    return found[-len(action) :]


def _stem(label: str) -> str:
    """A label without the words that say what is measured: `left_hip_vel`: lefthip."""
    words = re.split(r"[\W_]+", _UNIT.sub("", label.lower()))
    plain = {*ACTION_NAMES, *VELOCITY_NAMES, *OBSERVATION_NAMES}
    plain |= {
        "cmd",
        "torque",
        "effort",
        "vel",
        "v",
        "u",
        "a",
        "data",
        "joint",
        "states",
    }
    return "".join(word for word in words if word not in plain)


def _offer(table: Table) -> str:
    every = [label for content in table.arrays.values() for label in content.columns]
    arrays = list(table.arrays) if len(table.arrays) > 1 else every
    rest = f" and {len(arrays) - SHOWN} more" if len(arrays) > SHOWN else ""
    return ", ".join(arrays[:SHOWN]) + rest
