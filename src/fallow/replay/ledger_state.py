"""All of a ledger as plain arrays and a JSON header, and back."""

from pathlib import Path
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.records import NO_REGIME
from fallow.replay.ledger import FREE, Ledger

BY_SLOT = ("world", "chunk", "key", "error", "visits", "stamp")
BELIEFS = ("label_probabilities", "label_mismatch")
HEADER = (
    "n_worlds",
    "capacity_transitions",
    "now",
    "version",
    "changes",
    "present_regime",
    "heads",
    "is_ring",
    "n_stamps",
    "running",
)
SEED = "seed"
"""Of the keys of episodes; files of algorithms 1 and 2 do not have it."""
LAGS = "_lags"
"""What files call the lags of worlds; arrays are called `book.…` there."""


def save(ledger: Ledger) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays of the slots in use, and a JSON header."""
    used = ledger.slots()
    arrays = {f"book.{name}": getattr(ledger, name)[used] for name in BY_SLOT}
    arrays["book.slot"] = used
    for name in BELIEFS:
        arrays[f"book.{name}"] = getattr(ledger, name)
    arrays |= ledger.episodes.save("episodes") | ledger.times.save()
    header = {name: getattr(ledger, name) for name in HEADER}
    header |= {LAGS: ledger.times.lags, "keys": ledger.keys.bit_generator.state}
    header[SEED] = int(ledger.seed)
    return arrays, header


def check_sizes(ledger: Ledger, header: dict[str, Any], where: Path) -> None:
    """Raise unless a ledger has the sizes of a saved one."""
    for name in ("n_worlds", "capacity_transitions"):
        if header[name] != getattr(ledger, name):
            raise FallowError(
                f"{where} has {name} {header[name]:,}, this buffer "
                f"{getattr(ledger, name):,}; make it with the same"
            )


def restore(
    ledger: Ledger, arrays: dict[str, np.ndarray], header: dict[str, Any]
) -> None:
    """Take back what `save` gave, into a ledger of the same sizes."""
    for name in HEADER:
        setattr(ledger, name, header[name])
    ledger.keys.bit_generator.state = header["keys"]
    ledger.seed = header.get(SEED, ledger.seed)
    used = arrays["book.slot"]
    for name in BY_SLOT:
        getattr(ledger, name)[:] = FREE
        getattr(ledger, name)[used] = arrays[f"book.{name}"]
    for name in BELIEFS:
        if f"book.{name}" in arrays:
            setattr(ledger, name, arrays[f"book.{name}"])
    ledger.episodes.restore("episodes", _with_new_columns(ledger, arrays))
    ledger.times.restore(arrays, header[LAGS])
    ledger.rebuild()


def _with_new_columns(
    ledger: Ledger, arrays: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Columns of episodes that files of earlier versions lack."""
    n_episodes = len(arrays["episodes.world"])
    missing = {"episodes.label": np.full(n_episodes, NO_REGIME, np.int16)}
    if "episodes.key" not in arrays:
        keys = [ledger.episode_key(episode) for episode in range(n_episodes)]
        missing["episodes.key"] = np.array(keys)
    return missing | arrays
