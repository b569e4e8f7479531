"""The interface of a reader."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fallow.core.errors import FallowError
from fallow.core.extras import load
from fallow.core.text import printable
from fallow.logs.columns import Columns
from fallow.logs.limits import Budget, is_regular, require_regular
from fallow.logs.table import LogTable

HEAD_BYTES = 4096
"""Enough of a file to know its format."""
MAX_JSON_BYTES = 16 << 20
"""Of a description beside the data; lists of episodes take some megabytes."""
MAX_REASON = 300
"""Characters of a library's own message."""
PICKLES = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))
"""How a pickle begins, by protocol."""


@dataclass(frozen=True)
class Reader:
    """One log format."""

    name: str
    summary: str
    matches: Callable[[Path, bytes], bool]
    """Whether a path, with these first bytes, is of this format."""
    read: Callable[[Path, Columns, Budget], LogTable]
    """Takes the memory that it needs from the budget before it loads anything."""


def head_of(path: Path) -> bytes:
    """The first bytes of a file; none for a folder, a pipe or an unreadable file."""
    if not is_regular(path):
        return b""
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def read_json(path: Path) -> Any:
    """A small JSON file beside the data.

    Raises:
        FallowError: it is larger than a description can be.
    """
    size = require_regular(path).stat().st_size
    if size > MAX_JSON_BYTES:
        raise FallowError(
            f"{path} has {size:,} bytes and {MAX_JSON_BYTES:,} is the limit of a "
            "description; is it the right file?"
        )
    return json.loads(path.read_text(encoding="utf-8"))


def needs(module: str, extra: str) -> Any:
    """Import an optional library, or raise with the command that installs it."""
    return load(module, extra, "this log")


def reason_of(error: BaseException) -> str:
    """A library's error about a broken file, as part of a sentence."""
    if isinstance(error, PermissionError):
        return "permission denied"
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return printable(text, MAX_REASON)
