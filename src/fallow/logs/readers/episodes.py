"""One group of arrays an episode, with as many rows as its actions or one more."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.text import printable
from fallow.logs.limits import Budget
from fallow.logs.readers.arrays import NUMBERS, Declared, array_of
from fallow.logs.table import Array

Load = Callable[[str], list[np.ndarray]]
"""The values of an array in every episode, by its name."""


def arrays_of_episodes(
    episodes: Sequence[Mapping[str, Declared]], load: Load, budget: Budget
) -> dict[str, Array]:
    """Arrays of one or two dimensions that every episode has, with the same columns.

    Raises:
        FallowError: there is no episode, or no array that all of them have.
    """
    source = budget.source
    if not episodes:
        raise FallowError(f"{source} holds no episode; record some first")
    shared = {
        name: first
        for name, first in episodes[0].items()
        if all(_alike(first, episode.get(name)) for episode in episodes)
    }
    if not shared:
        raise FallowError(
            f"{source}: no array of numbers is in every episode with the same columns; "
            "record the same in all"
        )
    found = {}
    for name, first in shared.items():
        parts = [episode[name] for episode in episodes]
        lengths = np.array([part.shape[0] for part in parts])
        width = _width(first)
        found[name] = array_of(
            name, width, lengths, _joined(name, width, parts, load, budget)
        )
    return found


def _alike(first: Declared, other: Declared | None) -> bool:
    return (
        other is not None
        and len(first.shape) in (1, 2)
        and len(other.shape) == len(first.shape)
        and first.dtype.kind in NUMBERS
        and other.dtype.kind in NUMBERS
        and _width(other) == _width(first)
    )


def _width(declared: Declared) -> int:
    return 1 if len(declared.shape) == 1 else declared.shape[1]


def _joined(
    name: str, width: int, parts: Sequence[Declared], load: Load, budget: Budget
) -> Callable[[], np.ndarray]:
    def joined() -> np.ndarray:
        n_bytes = 2 * sum(part.n_bytes for part in parts)  # the parts, and all together
        budget.take(n_bytes, f"'{printable(name, 60)}'")
        return np.concatenate([part.reshape(len(part), width) for part in load(name)])

    return joined
