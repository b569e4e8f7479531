"""Which columns a user asks for.

A choice is a list of items separated by commas. An item is the name of an array or of a
column (`qvel`, `left_hip_vel`), some columns of an array (`observations[11:17]`), or,
for a file with one table or one array of observations, places alone (`11:17`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fallow.core import options
from fallow.core.errors import FallowError, unknown
from fallow.core.text import printable
from fallow.logs.table import MIN_ROWS, Choice, LogTable

ACTION_NAMES = ("action", "actions", "act", "ctrl", "control", "command", "commands")
OBSERVATION_NAMES = ("observation", "observations", "obs", "state", "observation.state")
_ITEM = re.compile(r"^(?P<name>.*?)(\[(?P<inner>-?\d*(:-?\d*)?)\])?$")
_PLACES = re.compile(r"^-?\d*:-?\d*$|^\d+$")
SHOWN = 8
"""Names written out before the rest is counted."""
MAX_LAG_MS = 10_000
"""A command that acts later than this has nothing to do with the motion."""
MAX_NAME = 60
"""Characters of a name in a sentence."""


@dataclass(frozen=True)
class Columns:
    """Columns and options of reading a log; None is guessed, with a note."""

    velocity: str | None = None
    action: str | None = None
    episode: str | None = None
    """The column that numbers the episodes."""
    time: str | None = None
    """The column of times in seconds."""
    episode_steps: int | None = None
    """Cut a recording without episodes into pieces of so many rows."""
    position: str | None = None
    """Columns whose differences are the velocities, where none are recorded."""
    lag_ms: float | None = None
    """How long commands act after they are logged, in recordings; None: estimated."""
    max_memory_bytes: int | None = None
    """A log that needs more is refused; None: a quarter of the machine's memory."""

    def __post_init__(self) -> None:
        if self.episode_steps is not None:
            steps = options.integer(
                "columns", "episode_steps", self.episode_steps, MIN_ROWS
            )
            object.__setattr__(self, "episode_steps", steps)
            if self.episode is not None:
                raise FallowError("give --episode or --episode-steps, not both")
        if self.lag_ms is None:
            return
        is_number = isinstance(self.lag_ms, int | float)
        if not is_number or not abs(self.lag_ms) <= MAX_LAG_MS:
            raise FallowError(
                f"--lag-ms is {options.shown(self.lag_ms)}; it must be a number "
                f"between -{MAX_LAG_MS:,} and {MAX_LAG_MS:,}"
            )


def refuse(columns: Columns, source: str, *fields: str) -> None:
    """Raise if a choice is made that has no effect on a log, named by its fields."""
    for field in fields:
        if getattr(columns, field) is not None:
            raise FallowError(
                f"--{field.replace('_', '-')} has no effect on {source}: its format "
                "settles that; leave it out"
            )


def find(table: LogTable, text: str, flag: str) -> Choice:
    """Read a choice of columns; what is not there is named with what is."""
    whole = named(table, text.strip())
    if whole:  # a name may hold commas or brackets itself
        return whole
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise FallowError(f"{flag} names no columns; write names or places like 3:9")
    return tuple(column for item in items for column in _item(table, item, flag))


def names(table: LogTable, choice: Choice) -> tuple[str, ...]:
    """The names of chosen columns."""
    return tuple(table.arrays[array].columns[column] for array, column in choice)


def shown(table: LogTable, choice: Choice) -> str:
    """Chosen columns for people: names, or one slice of an array."""
    arrays = {array for array, _ in choice}
    places = [column for _, column in choice]
    if len(arrays) == 1 and places == list(range(places[0], places[-1] + 1)):
        array = arrays.pop()
        if not table.arrays[array].named and len(places) > 1:
            return f"{printable(array, MAX_NAME)}[{places[0]}:{places[-1] + 1}]"
    return _listed(names(table, choice))


def named(table: LogTable, name: str) -> Choice:
    """All columns of an array, or the first column of that name; () for neither."""
    if name in table.arrays:
        return tuple((name, i) for i in range(len(table.arrays[name].columns)))
    return tuple(
        (array, content.columns.index(name))
        for array, content in table.arrays.items()
        if name in content.columns
    )[:1]


def _item(table: LogTable, item: str, flag: str) -> Choice:
    if _PLACES.match(item):
        return _places(table, _main_array(table, flag), item, flag)
    if found := named(table, item):
        return found
    match = _ITEM.match(item)
    if match and match["inner"] is not None and match["name"] in table.arrays:
        return _places(table, match["name"], match["inner"], flag)
    known = list(table.arrays) if len(table.arrays) > 1 else []
    for content in table.arrays.values():
        known += content.columns if content.named or not known else ()
    shown_names = [printable(name, MAX_NAME) for name in known[: 3 * SHOWN]]
    if len(known) > 3 * SHOWN:
        shown_names.append(f"and {len(known) - 3 * SHOWN} more")
    raise unknown(f"column for {flag} in {table.source}", item, shown_names)


def _places(table: LogTable, array: str, text: str, flag: str) -> Choice:
    width = len(table.arrays[array].columns)
    start, colon, stop = text.partition(":")
    if colon:
        chosen = range(width)[
            slice(int(start) if start else None, int(stop) if stop else None)
        ]
        beyond = bool(stop) and int(stop) > width
    else:
        beyond = not start or not -width <= int(start) < width
        chosen = range(0) if beyond else range(width)[int(start) :][:1]
    if beyond or not chosen:
        raise FallowError(
            f"{flag} asks for '{text}' of the {width} columns of '{array}' in "
            f"{table.source}; places go from 0 to {width - 1}, the last one excluded"
        )
    return tuple((array, column) for column in chosen)


def _main_array(table: LogTable, flag: str) -> str:
    if len(table.arrays) == 1:
        return next(iter(table.arrays))
    wanted = ACTION_NAMES if flag == "--action" else OBSERVATION_NAMES
    for name in wanted:
        if name in table.arrays:
            return name
    raise FallowError(
        f"{flag} gives places, and {table.source} has no array to count them in; write "
        f"them as name[start:stop], with one of {_listed(list(table.arrays))}"
    )


def offer(table: LogTable) -> str:
    """The available columns, for a sentence that asks to choose some."""
    found: list[str] = []
    for name, content in table.arrays.items():
        if content.named:
            found += content.columns
        else:
            width = len(content.columns)
            found.append(name if width == 1 else f"{name}[0:{width}]")
    return _listed(found, 2 * SHOWN)


def _listed(names: Sequence[str], n_shown: int = SHOWN) -> str:
    rest = f" and {len(names) - n_shown} more" if len(names) > n_shown else ""
    return ", ".join(printable(name, MAX_NAME) for name in names[:n_shown]) + rest
