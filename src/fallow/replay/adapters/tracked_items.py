"""What a tracker reads of the items of a TorchRL buffer."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tensordict import is_tensor_collection

from fallow.core.errors import FallowError, unknown
from fallow.replay.labeler import Tracked
from fallow.replay.storage import Field


@dataclass(frozen=True)
class TrackedStep:
    """The inputs of the tracker from one item."""

    fields: dict[str, np.ndarray]
    is_first: bool = False
    is_last: bool = False


UNTRACKED = TrackedStep({})


class TrackedItems:
    """Finds velocities, actions and the ends of episodes in items.

    Raises:
        FallowError: the number of velocities cannot be known from their columns.
    """

    def __init__(self, tracked: Tracked) -> None:
        self._velocity, self._columns = _explicit(tracked.velocity)
        self._action = tracked.action.partition("[")[0]
        inner = tracked.action.partition("[")[2]
        self._action_columns = _explicit(tracked.action)[1] if inner else None
        d = len(self._columns)
        self.fields = {"velocity": Field((d,)), "action": Field((d,))}
        self.tracked = replace(
            tracked, velocity="velocity", action="action", action_leads=False
        )
        self._is_first, self._last_id = True, -1

    def steps(self, data: Any) -> Iterator[TrackedStep]:
        """One step for each item of a tensordict, oldest first."""
        if not is_tensor_collection(data):
            raise FallowError(
                f"items are a {type(data).__name__} and the tracker reads keys of "
                "tensordicts; write tensordicts, or choose another rule"
            )
        velocity = self._rows(data, self._velocity)[:, self._columns]
        action = self._rows(data, self._action)
        if self._action_columns is not None:
            action = action[:, self._action_columns]
        if velocity.shape != action.shape:
            raise FallowError(
                f"{velocity.shape[1]} velocities and {action.shape[1]} actions are "
                "tracked; name the velocity that each action drives"
            )
        ends, ids = self._ends(data), data.get(("collector", "traj_ids"), None)
        numbers = [0] * len(data) if ids is None else ids.reshape(len(data)).tolist()
        for v, a, end, number in zip(velocity, action, ends, numbers, strict=True):
            is_first = self._is_first or number != self._last_id
            yield TrackedStep({"velocity": v[None], "action": a[None]}, is_first, end)
            self._is_first, self._last_id = end, number

    def _rows(self, data: Any, key: str) -> np.ndarray:
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
