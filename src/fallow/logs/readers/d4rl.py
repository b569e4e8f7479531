"""D4RL files: flat HDF5 arrays, and flags where episodes end.

observations (n, c), actions (n, d), terminals (n,), timeouts (n,), infos/qvel (n, v)
"""

from pathlib import Path

import numpy as np

from fallow.core.errors import FallowError
from fallow.logs.columns import Columns
from fallow.logs.readers.flat import episode_lengths, episode_regime, episode_steps_s
from fallow.logs.readers.hdf5 import MAGIC, datasets, open_file
from fallow.logs.readers.reader import Reader
from fallow.logs.table import Table, of_array


def matches(path: Path, head: bytes) -> bool:
    """Any HDF5 file that is not a Minari one."""
    return head.startswith(MAGIC)


def read(path: Path, columns: Columns) -> Table:
    """Every array that has a row for each action."""
    with open_file(path) as file:
        found = {n: a for n, a in datasets(file) if a.shape and a.dtype.kind in "iufb"}
        if not found:
            raise FallowError(f"{path} holds no arrays of numbers; it is not a log")
        actions = found.get("actions")
        n_rows = (
            max(len(a) for a in found.values()) if actions is None else len(actions)
        )
        rows = {
            name: np.asarray(array[:])
            for name, array in found.items()
            if len(array.shape) <= 2 and len(array) == n_rows
        }
    observations = found.get("observations")
    if observations is not None and "observations" not in rows:
        raise FallowError(
            f"{path} has {n_rows} actions and another number of observations; there "
            "must be as many"
        )
    marks = {name: a for name, a in rows.items() if a.ndim == 1}
    source = str(path)
    lengths = episode_lengths(source, marks, marks.__getitem__, n_rows, columns)
    kept = int(lengths.sum())
    return Table(
        source=source,
        format="d4rl",
        arrays={name: of_array(name, a[:kept], lengths) for name, a in rows.items()},
        step_s=episode_steps_s(marks, marks.__getitem__, lengths, columns),
        regime=episode_regime(marks, marks.__getitem__, lengths),
    )


READER = Reader("d4rl", "D4RL files (HDF5)", matches, read)
