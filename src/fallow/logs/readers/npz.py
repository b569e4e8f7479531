"""NumPy archives: arrays by name, flat with episode marks or (episodes, steps, …)."""

import zipfile
from pathlib import Path

import numpy as np

from fallow.core.errors import FallowError
from fallow.core.text import printable
from fallow.logs.columns import Columns
from fallow.logs.limits import Budget
from fallow.logs.readers.arrays import Declared, NamedArrays, table_of_arrays
from fallow.logs.readers.reader import Reader
from fallow.logs.table import LogTable

SUFFIX = ".npy"


def matches(path: Path, head: bytes) -> bool:
    """Whether the file is a zip archive."""
    return head.startswith(b"PK\x03\x04")


def read(path: Path, columns: Columns, budget: Budget) -> LogTable:
    """Arrays of as many rows as the actions; others are left aside."""
    declared = _declared(path)

    def load(name: str) -> np.ndarray:
        with np.load(path, allow_pickle=False) as archive:
            return archive[name]

    arrays = NamedArrays(declared, load, budget)
    return table_of_arrays(arrays, columns, source=str(path), format="npz")


def _declared(path: Path) -> dict[str, Declared]:
    """The headers; an array of objects would be a pickle, and is refused."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.filename.endswith(".pkl"):
                _refuse(path, "a pickle")
            if not member.filename.endswith(SUFFIX):
                continue
            name = member.filename.removesuffix(SUFFIX)
            with archive.open(member) as file:
                shape, _, dtype = _header(file)
            if dtype.hasobject:
                _refuse(path, f"a pickle in '{printable(name, 60)}'")
            found[name] = Declared(shape, dtype)
    return found


def _header(file: object) -> tuple[tuple[int, ...], bool, np.dtype]:
    """The shape, the order and the type of an array, without its numbers."""
    version = np.lib.format.read_magic(file)  # type: ignore[arg-type]
    read_header = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    return read_header(file)  # type: ignore[arg-type]


def _refuse(path: Path, what: str) -> None:
    raise FallowError(
        f"{path} holds {what}, which could run any program, and is not opened; write "
        "plain arrays with numpy.savez"
    )


READER = Reader("npz", "NumPy archives of named arrays", matches, read)
