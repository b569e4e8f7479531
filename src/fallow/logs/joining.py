"""Joins the history of a trunk with that of one of its branches."""

from pathlib import Path

from fallow.core.errors import FallowError
from fallow.logs.assemble import assemble
from fallow.logs.columns import Columns
from fallow.logs.compact import with_columns
from fallow.logs.history import Header, History, read_history
from fallow.logs.log import Log
from fallow.logs.readers.history import table_of

SHARED = (
    "columns",
    "actuators",
    "actuator_velocity",
    "control_step_s",
    "frames_per_step",
)
"""Fields in which the headers of two parts of one run must agree."""


def joined(trunk: History, branch: History) -> History:
    """The trunk's episodes, then the branch's, under the branch's header.

    If one was compacted, only columns that both have are left.

    Raises:
        FallowError: the two were not recorded alike, or the trunk's is damaged.
    """
    if trunk.damage:
        raise FallowError(
            f"a branch cannot continue from a damaged trunk: {trunk.damage}"
        )
    trunk, branch = _common(trunk, branch), _common(branch, trunk)
    for name in SHARED:
        _check_alike(name, trunk.header, branch.header)
    return History(branch.header, trunk.episodes + branch.episodes, branch.damage)


def read_joined(
    trunk: str | Path, branch: str | Path, most_episodes: int | None = None
) -> Log:
    """The log of a trunk and a branch of it, cut after `most_episodes` if given.

    Raises:
        FallowError: a history is missing, or the two do not belong together.
    """
    whole = joined(read_history(trunk), read_history(branch))
    cut = History(whole.header, whole.episodes[:most_episodes], whole.damage)
    return assemble(table_of(cut, str(branch)), Columns())


def _common(history: History, other: History) -> History:
    """A history without the columns that another one has not."""
    names, header = other.header.columns, history.header
    kept = [i for i, name in enumerate(header.columns) if name in names]
    if len(kept) == len(header.columns) or not {*header.actuator_velocity} <= {*kept}:
        return history
    return with_columns(history, kept)


def _check_alike(name: str, trunk: Header, branch: Header) -> None:
    one, other = getattr(trunk, name), getattr(branch, name)
    if one != other:
        raise FallowError(
            f"the trunk's history has {name} {one} and the branch's {other}; give the "
            "history of the trunk that the branch continues"
        )
