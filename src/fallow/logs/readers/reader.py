"""What a reader is."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fallow.core.errors import FallowError
from fallow.logs.columns import Columns
from fallow.logs.table import Table

HEAD_BYTES = 4096
"""Enough of a file to know its format."""
PICKLES = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))
"""How a pickle begins, by protocol."""


@dataclass(frozen=True)
class Reader:
    """One log format."""

    name: str
    summary: str
    matches: Callable[[Path, bytes], bool]
    """Whether a path, with these first bytes, is of this format."""
    read: Callable[[Path, Columns], Table]


def head_of(path: Path) -> bytes:
    """The first bytes of a file; none for a folder."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def needs(module: str, extra: str) -> Any:
    """Import an optional library, or say how to get it."""
    library = module.split(".")[0]
    try:
        importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise FallowError(
            f"this log needs the library '{library}'; install it with "
            f"pip install 'fallow[{extra}]'"
        ) from None
    return importlib.import_module(module)
