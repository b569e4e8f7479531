"""D4RL files: flat HDF5 arrays, and flags where episodes end.

observations (n, c), actions (n, d), terminals (n,), timeouts (n,), infos/qvel (n, v)
"""

import functools
from pathlib import Path

from fallow.core.errors import FallowError
from fallow.logs.columns import Columns
from fallow.logs.known_environments import layout_of
from fallow.logs.limits import Budget
from fallow.logs.readers import hdf5
from fallow.logs.readers.arrays import NamedArrays, table_of_arrays
from fallow.logs.readers.reader import Reader
from fallow.logs.table import LogTable


def matches(path: Path, head: bytes) -> bool:
    """Any HDF5 file that is not a Minari one."""
    return head.startswith(hdf5.MAGIC)


def read(path: Path, columns: Columns, budget: Budget) -> LogTable:
    """Every array that has a row for each action."""
    with hdf5.open_file(path) as file:
        declared = {name: hdf5.declared(array) for name, array in hdf5.datasets(file)}
        environment = hdf5.environment_of(file.attrs)
    if not environment and layout_of(path.stem):
        environment = path.stem
    load = functools.partial(hdf5.load, path, budget=budget)
    arrays = NamedArrays(declared, load, budget)
    if not any(d.shape for d in arrays.declared.values()):
        raise FallowError(f"{path} holds no arrays of numbers; it is not a log")
    about = {"source": str(path), "format": "d4rl", "environment": environment}
    return table_of_arrays(arrays, columns, **about)


READER = Reader("d4rl", "D4RL files (HDF5)", matches, read)
