"""What a tracker reads of the items of a TorchRL buffer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tensordict import is_tensor_collection

from fallow.core.errors import FallowError, unknown
from fallow.replay.adapters.trajectories import Trajectories
from fallow.replay.labeler import Tracked
from fallow.replay.storage import Field

ID = ("collector", "traj_ids")
"""Where collectors of TorchRL note the trajectory of an item."""


@dataclass(frozen=True)
class TrackedStep:
    """The inputs of the tracker from one item."""

    fields: dict[str, np.ndarray]
    trajectory: int = 0
    is_first: bool = False
    """Whether it follows no other item, or one of another trajectory."""
    is_last: bool = False


UNTRACKED = TrackedStep({})


class TrackedItems:
    """Finds velocities, actions and trajectories in items.

    Raises:
        FallowError: the number of velocities cannot be known from their columns.
    """

    def __init__(self, tracked: Tracked, running: Sequence[int] = ()) -> None:
        self._given = tracked
        self._velocity, self._columns = _explicit(tracked.velocity)
        self._action = tracked.action.partition("[")[0]
        inner = tracked.action.partition("[")[2]
        self._action_columns = _explicit(tracked.action)[1] if inner else None
        d = len(self._columns)
        self.fields = {"velocity": Field((d,)), "action": Field((d,))}
        self.tracked = replace(
            tracked, velocity="velocity", action="action", action_leads=False
        )
        self.trajectories = Trajectories(running)
        self._before: int | None = None  # the trajectory that the last item left open

    def again(self, running: Sequence[int]) -> "TrackedItems":
        """One that has seen nothing but trajectories which are running."""
        return TrackedItems(self._given, running)

    def steps(self, data: Any) -> Iterator[TrackedStep]:
        """One step for each item of a tensordict, oldest first.

        All items are checked before the first step.
        """
        _check(data)
        observation = self._rows(data, self._velocity)
        velocity = _columns_of(observation, self._velocity, self._columns)
        action = self._rows(data, self._action)
        if self._action_columns is not None:
            action = _columns_of(action, self._action, self._action_columns)
        if velocity.shape != action.shape:
            raise FallowError(
                f"{velocity.shape[1]} velocities and {action.shape[1]} actions are "
                "tracked; name the velocity that each action drives"
            )
        for key, values in ((self._velocity, velocity), (self._action, action)):
            if not np.isfinite(values).all():
                raise FallowError(
                    f"{key} holds NaN or infinity and no item was stored; replace it"
                )
        rows = zip(velocity, action, self._ends(data), strict=True)
        places = self._places(data, observation)
        for (v, a, is_last), place in zip(rows, places, strict=True):
            number = self.trajectories.of(*place[:2])
            is_first = number != self._before
            step = {"velocity": v[None], "action": a[None]}
            yield TrackedStep(step, number, is_first, is_last)
            self.trajectories.leads(number, place[2], is_last)
            self._before = None if is_last else number

    def _places(
        self, data: Any, observation: np.ndarray
    ) -> Iterator[tuple[int | None, bytes | None, bytes | None]]:
        """Of each item: its id, or else where it begins and where it leads."""
        ids = data.get(ID, None)
        if ids is not None:
            for number in ids.reshape(len(data)).tolist():
                yield number, None, None
        elif data.get(("next", self._velocity), None) is None:
            yield from ((None, None, None) for _ in range(len(data)))
        else:
            after = self._rows(data, ("next", self._velocity))
            for one, other in zip(observation, after, strict=True):
                yield None, one.tobytes(), other.tobytes()

    def _rows(self, data: Any, key: Any) -> np.ndarray:
        values = data.get(key, None)
        if values is None:
            names = [str(name) for name in data.keys()]  # noqa: SIM118
            raise unknown("key to track", key, names)
        rows = values.detach().cpu().reshape(len(data), -1)
        return rows.numpy().astype(np.float32)

    def _ends(self, data: Any) -> list[bool]:
        for key in (("next", "done"), "done"):
            flags = data.get(key, None)
            if flags is not None:
                return flags.reshape(len(data), -1).any(dim=1).tolist()
        raise FallowError(
            "items have neither ('next', 'done') nor 'done', and the tracker must know "
            "where episodes end; write one of them"
        )


def _check(data: Any) -> None:
    """Raise unless data are a tensordict of single steps."""
    if not is_tensor_collection(data):
        raise FallowError(
            f"items are a {type(data).__name__} and the tracker reads keys of "
            "tensordicts; write tensordicts, or choose another rule"
        )
    if data.ndim > 1:
        raise FallowError(
            f"the batch has shape {tuple(data.shape)} and the tracker reads single "
            "steps; extend with data.reshape(-1)"
        )


def _columns_of(rows: np.ndarray, key: str, columns: list[int]) -> np.ndarray:
    width = rows.shape[1]
    if max(columns) >= width:
        raise FallowError(
            f"column {max(columns)} of '{key}' is tracked, and it has {width} columns"
        )
    return rows[:, columns]


def _explicit(text: str) -> tuple[str, list[int]]:
    """A key and its columns from `key[3:9]` or `key[3,5,8]`."""
    key, _, inner = text.strip().rstrip("]").partition("[")
    try:
        if ":" in inner:
            first, last = (int(part) for part in inner.split(":"))
            columns = list(range(first, last))
        else:
            columns = [int(part) for part in inner.split(",")]
    except ValueError:
        columns = []
    if not columns or min(columns) < 0:
        raise FallowError(
            f"'{text}' does not say how many columns are tracked; write them as "
            "observation[3:9] or observation[3,5,8]"
        )
    return key, columns
