"""Which transitions are stale, and how well age predicts it: the age–staleness AUC.

An episode belongs to the regime in force when it ends, a running one to the present
regime; its transitions are stale while that differs from the regime now. The AUC is
the chance that a random stale transition is older than a random fresh one, eq. (2):

    AUC = Pr[age_stale > age_fresh] + 1/2 Pr[age_stale = age_fresh]

over transitions, and None where one kind is missing. The functions below count stale
and fresh transitions in *cells* of time, chosen such that the pairs within a cell
average one half; one sum of integers over cells then gives the AUC without rounding.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fallow.core.errors import FallowError

MAX_TRANSITIONS = 2**32 - 1
"""Twice the number of (stale, fresh) pairs must fit a signed integer of 64 bits."""


@dataclass(frozen=True)
class Timeline:
    """The k episodes of a full history, whatever a rule keeps of them.

    Each stored one transition at every step of [start_step, end_step) of the agent's
    step clock, so that episodes of worlds that run at once overlap.
    """

    start_step: np.ndarray  # (k,)
    end_step: np.ndarray  # (k,)
    label: np.ndarray  # (k,), the regime in force at the last transition

    def __post_init__(self) -> None:
        start_step, end_step = _intervals(self.start_step, self.end_step)
        label = _sized("label", _regimes("label", self.label), start_step.size)
        vars(self).update(start_step=start_step, end_step=end_step, label=label)


def is_stale(label: Any, regime_now: int) -> np.ndarray:
    """Whether episodes with these labels (k,) are stale under the regime now: (k,)."""
    return _regimes("label", label) != _regimes("regime_now", [regime_now])


def age_auc(age: Any, stale: Any) -> float | None:
    """Eq. (2) for transitions in any order, `age` (n,) in any unit, `stale` (n,).

    A cell is one age. O(n log n).
    """
    age = np.asarray(age)
    if age.ndim != 1 or age.dtype.kind not in "iuf":
        raise FallowError(f"age is {_shown(age)}; give a row of numbers")
    if not np.isfinite(age).all():
        raise FallowError(
            f"age holds {age[~np.isfinite(age)][0]}; ages are finite numbers: leave "
            "transitions of unknown age out"
        )
    stale = _flags(stale, age.size)
    ages, cell = np.unique(age, return_inverse=True)
    n_stale = np.bincount(cell[stale], minlength=ages.size)
    n_fresh = np.bincount(cell[~stale], minlength=ages.size)
    return _cells_auc(n_stale[::-1], n_fresh[::-1])


def interval_auc(start_step: Any, end_step: Any, stale: Any) -> float | None:
    """Eq. (2) for segments (k,) that store one transition at each step of [start, end).

    Segments of worlds that run at once overlap; two transitions of one step have one
    age. A cell lies between neighbouring ends of segments: s stale and f fresh
    transitions at each of its L steps. Of its s f L^2 pairs, s f L tie, and of the
    others the stale one is older in half, so they average one half. O(k log k).
    """
    start_step, end_step = _intervals(start_step, end_step)
    stale = _flags(stale, start_step.size)
    edges = np.unique(np.concatenate([start_step, end_step]))

    def n_in_cells(kind: np.ndarray) -> np.ndarray:
        change = np.zeros(edges.size, np.int64)
        np.add.at(change, np.searchsorted(edges, start_step[kind]), 1)
        np.add.at(change, np.searchsorted(edges, end_step[kind]), -1)
        return change.cumsum()[:-1] * np.diff(edges)

    return _cells_auc(n_in_cells(stale), n_in_cells(~stale))


def auc_at(timeline: Timeline, step: int, regime_now: int) -> float | None:
    """Eq. (2) at one step of a history: transitions stored before `step` count.

    An episode that then still runs is cut there and belongs to `regime_now`.
    """
    begun = timeline.start_step < step
    ended = timeline.end_step <= step
    stale = is_stale(timeline.label, regime_now) & ended
    end_step = np.minimum(timeline.end_step, step)
    return interval_auc(timeline.start_step[begun], end_step[begun], stale[begun])


def mean_auc(aucs: Iterable[float | None]) -> float | None:
    """The mean of the AUCs that are defined; None if none is."""
    defined = [auc for auc in aucs if auc is not None]
    return float(np.mean(defined)) if defined else None


def _cells_auc(n_stale: np.ndarray, n_fresh: np.ndarray) -> float | None:
    """Eq. (2) from the transitions of each kind in cells (k,), oldest first.

    2 x wins = sum_i n_stale_i (2 sum_{j > i} n_fresh_j + n_fresh_i)
    """
    all_stale, all_fresh = int(n_stale.sum()), int(n_fresh.sum())
    if all_stale == 0 or all_fresh == 0:
        return None
    n_later = all_fresh - n_fresh.cumsum()
    return int(n_stale @ (2 * n_later + n_fresh)) / (2 * all_stale * all_fresh)


def _intervals(start_step: Any, end_step: Any) -> tuple[np.ndarray, np.ndarray]:
    start, end = _integers("start_step", start_step), _integers("end_step", end_step)
    _sized("end_step", end, start.size)
    length = end - start
    if (length < 1).any():
        raise FallowError(
            f"end_step - start_step holds {length.min()}; a segment has 1 transition "
            "or more: leave empty ones out"
        )
    if length.sum(dtype=float) > MAX_TRANSITIONS:
        raise FallowError(
            f"end_step - start_step adds up to {length.sum(dtype=float):g} "
            f"transitions; at most {MAX_TRANSITIONS} can be counted: use a shorter "
            "history"
        )
    return start, end


def _regimes(name: str, values: Any) -> np.ndarray:
    regimes = _integers(name, values)
    if (regimes < 0).any():
        raise FallowError(
            f"{name} holds {regimes.min()}; regimes are 0 or more: only conditions "
            "with regimes have stale transitions"
        )
    return regimes


def _integers(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise FallowError(f"{name} is {_shown(array)}; give a row of whole numbers")
    return array.astype(np.int64)


def _flags(stale: Any, size: int) -> np.ndarray:
    array = np.asarray(stale)
    if array.ndim != 1 or not np.isin(array, (0, 1)).all():
        raise FallowError(f"stale is {_shown(array)}; give a row of True and False")
    return _sized("stale", array, size).astype(bool)


def _sized(name: str, array: np.ndarray, size: int) -> np.ndarray:
    if array.size != size:
        raise FallowError(f"{name} has {array.size} entries and must have {size}")
    return array


def _shown(array: np.ndarray) -> str:
    return f"{array.tolist()}" if array.size <= 8 else f"{array.dtype} {array.shape}"
