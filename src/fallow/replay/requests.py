"""Checks of what a buffer is asked: worlds, episodes and labels that exist."""

from typing import Any

import numpy as np

from fallow.core import options
from fallow.core.errors import FallowError
from fallow.core.records import NO_REGIME
from fallow.replay.ledger import FREE, Ledger
from fallow.replay.storage import IS_FIRST

MAX_REGIME = int(np.iinfo(np.int16).max)
"""The largest label that a ledger stores."""


def world_of(ledger: Ledger, owner: str, world: Any) -> int:
    """The index of a world that exists."""
    world = options.integer(owner, "world", world, at_least=0)
    if world >= ledger.n_worlds:
        raise FallowError(f"there is no world {world}; there are {ledger.n_worlds}")
    return world


def regime_of(regime: Any) -> int:
    """A label that can be stored."""
    if type(regime) is int and NO_REGIME <= regime <= MAX_REGIME:
        return regime
    return options.integer("buffer", "regime", regime, NO_REGIME, MAX_REGIME)


def labels_of(ledger: Ledger, episodes: Any, regimes: Any) -> tuple[np.ndarray, ...]:
    """Finished episodes, and one regime for each or one for all."""
    chosen = _integers("episodes", episodes, 0, ledger.episodes.n - 1)
    labels = _integers("regimes", regimes, NO_REGIME, MAX_REGIME)
    if labels.ndim and labels.shape != chosen.shape:
        raise FallowError(
            f"{labels.size} regimes for {chosen.size} episodes; give one for each"
        )
    running = np.intersect1d(chosen, [e for e in ledger.running if e != FREE])
    if len(running):
        raise FallowError(
            f"episode {running[0]} is still running and gets the regime in force when "
            "it ends; call end_episode first, or set_present_regime"
        )
    return chosen, labels


def episode_of(episode: dict[str, Any]) -> int:
    """The length of one whole episode, given as fields."""
    begins = np.flatnonzero(episode.get(IS_FIRST, ()))
    if begins.any():
        raise FallowError(
            f"is_first is set at row {begins[begins > 0][0]}, where another episode "
            "begins; call add_episode once for each"
        )
    lengths = {len(values) for values in episode.values()}
    length = lengths.pop() if len(lengths) == 1 else 0
    if length == 0:
        raise FallowError("an episode needs fields of one length, 1 or more")
    return length


def _integers(name: str, given: Any, low: int, high: int) -> np.ndarray:
    """Whole numbers from `low` to `high`, in an array."""
    values = np.asarray(given)
    if values.dtype.kind not in "iu" or ((values < low) | (values > high)).any():
        raise FallowError(
            f"{name} are {options.shown(given)}; give whole numbers from {low} to "
            f"{high:,}"
        )
    return values
