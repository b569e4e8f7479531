"""Minari data sets: one HDF5 group an episode, with one observation more than actions.

episode_0/observations (T + 1, n)   or a group of arrays
episode_0/actions      (T, d)
episode_0/infos/…      (T + 1, …)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fallow.core.errors import FallowError
from fallow.logs.columns import Columns
from fallow.logs.readers.hdf5 import MAGIC, datasets, open_file
from fallow.logs.readers.reader import Reader
from fallow.logs.table import Array, Table, limit_columns

DATA_FILE = Path("data") / "main_data.hdf5"
PREFIX = "episode_"


def matches(path: Path, head: bytes) -> bool:
    """A data set's folder, or an HDF5 file of episodes."""
    if path.is_dir():
        return (path / DATA_FILE).is_file()
    if not head.startswith(MAGIC):
        return False
    try:
        with open_file(path) as file:
            return any(name.startswith(PREFIX) for name in file)
    except (OSError, FallowError):  # the reader says what is wrong
        return False


def read(path: Path, columns: Columns) -> Table:
    """Arrays of one or two dimensions that every episode has."""
    data_path = path / DATA_FILE if path.is_dir() else path
    with open_file(data_path) as file:
        names = sorted(
            (name for name in file if name.startswith(PREFIX)),
            key=lambda name: int(name.removeprefix(PREFIX)),
        )
        episodes = [dict(datasets(file[name])) for name in names]
        shared = [
            name
            for name, first in episodes[0].items()
            if len(first.shape) in (1, 2)
            and first.dtype.kind in "iufb"
            and all(name in episode for episode in episodes)
        ]
        arrays = {name: _array(name, [e[name] for e in episodes]) for name in shared}
    return Table(source=str(path), format="minari", arrays=arrays)


def _array(name: str, parts: Sequence[Any]) -> Array:
    width = 1 if len(parts[0].shape) == 1 else parts[0].shape[1]
    limit_columns(name, width)
    loaded = [np.asarray(part[:]).reshape(len(part), -1) for part in parts]
    lengths = np.array([len(part) for part in loaded])
    labels = (name,) if width == 1 else tuple(f"{name}[{i}]" for i in range(width))
    return Array(labels, lengths, lambda c: np.concatenate(loaded)[:, list(c)])


READER = Reader("minari", "Minari data sets (HDF5)", matches, read)
